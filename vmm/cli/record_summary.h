/* SPDX-License-Identifier: Apache-2.0 */
/* A run in short, from the first line of its record and the one that tells its end. */
#ifndef MVAGENT_CLI_RECORD_SUMMARY_H
#define MVAGENT_CLI_RECORD_SUMMARY_H

#include <cjson/cJSON.h>
#include <stdbool.h>

struct record_summary {
	cJSON *start; /* never NULL */
	cJSON *end;   /* NULL: it goes on, or the record was cut */
	bool running;
};

/* 0, -ENOENT (there is none), or -errno; -EPROTO: it is no record. Destroy in every case. */
int record_summary_read(struct record_summary *summary, int store_fd, const char *run);
void record_summary_destroy(struct record_summary *summary);

/* For `mvagent runs`: as text, and as a value of JSON. */
void record_summary_print(const struct record_summary *summary, const char *run);
cJSON *record_summary_json(const struct record_summary *summary, const char *run);

#endif

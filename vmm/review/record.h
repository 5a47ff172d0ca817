/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.json: what a run was, and on which directories. The supervisor writes it when the run starts
 * and once more when it has ended.
 *
 *     {"version": "0.1.0", "command": ["make", "test"], "started": "2026-11-29T19:46:33Z",
 *      "ended": "2026-11-29T19:51:02Z", "exit": 0,
 *      "hide": ["*.pem"], "show": [], "protect": [],
 *      "shares": [{"host": "/home/u/repo", "device": "2049", "inode": "1311",
 *                  "upper": "share0/upper", "base": "share0/base", "mode": "review"}]}
 *
 * "ended" and "exit" are null while it runs. "hide", "show" and "protect" are the patterns that the
 * user added to the built-in ones. Texts from outside are escaped as paths in base are.
 */
#ifndef MVAGENT_REVIEW_RECORD_H
#define MVAGENT_REVIEW_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "vmm/base/limits.h"

/* A list of texts; the array ends with NULL. */
struct review_texts {
	unsigned int count;
	char **texts;
};

struct review_record_share {
	char *host_path; /* absolute, without links in it */
	dev_t device;
	uint64_t inode;
	char *upper; /* relative to the run's directory */
	char *base;
};

struct review_record {
	struct review_texts command;
	time_t started;
	time_t ended;    /* 0: not yet */
	int exit_status; /* counts when it has ended */
	struct review_texts hide, show, protect;
	unsigned int share_count;
	struct review_record_share shares[LIMIT_SHARES];
};

/* Replaces run.json in a run's directory, so that either the old or the new one is there whatever
 * happens. 0 or -errno. */
int review_record_write(const struct review_record *record, int run_fd);

/* Reads it; destroy in every case. 0, -errno, or -EPROTO when it is not what was written. */
int review_record_read(struct review_record *record, int run_fd);

/* Frees the texts: only of a record that was read. */
void review_record_destroy(struct review_record *record);

/* "2026-11-29T19:46:33Z". */
#define REVIEW_TIME_BYTES 21
void review_time_format(time_t time, char text[REVIEW_TIME_BYTES]);

#endif

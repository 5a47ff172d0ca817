/* SPDX-License-Identifier: Apache-2.0 */
/* What the command tried to reach by the network card, which leads nowhere: for -v and --json. */
#ifndef MVAGENT_CLI_NETWORK_REPORT_H
#define MVAGENT_CLI_NETWORK_REPORT_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "vmm/base/limits.h"
#include "vmm/wire/frame.h"
#include "vmm/wire/monitor.h"

#define NETWORK_REPORT_FRAMES (FRAME_CLASSES * LIMIT_FRAMES_OF_A_CLASS)

struct network_report {
	unsigned int frame_count;
	struct frame_summary frames[NETWORK_REPORT_FRAMES]; /* the first of each kind, in order */
};

#define NETWORK_SENTENCE_BYTES 512

/* Adds what mvagent-vmm sent, if it is a summary and there is room. */
void network_report_add_frame(struct network_report *report, const void *bytes, size_t length);

/* Says in words what a frame was for. */
void network_report_describe(const struct frame_summary *frame, char text[NETWORK_SENTENCE_BYTES]);

/* Adds the object "network". */
void network_report_add_json(const struct network_report *report,
			     const struct monitor_counters *counters, cJSON *root);

/* Prints it at LOG_VERBOSE. */
void network_report_log(const struct network_report *report,
			const struct monitor_counters *counters);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What --json writes: how the run ended, for programs. */
#ifndef MVAGENT_CLI_REPORT_H
#define MVAGENT_CLI_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/cli/cgroup.h"
#include "vmm/cli/network_report.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/report_file.h"
#include "vmm/wire/monitor.h"

/* Moments of a run, clock_monotonic_ns(); 0: not reached. */
enum report_moment {
	MOMENT_BEGIN,   /* mvagent started */
	MOMENT_RUNNING, /* first KVM_RUN */
	MOMENT_HELLO,   /* the guest's init asked for its command */
	MOMENT_STARTED, /* the command's execve succeeded */
	MOMENT_EXITED,  /* the command and all it started are gone, everything is synced */
	MOMENT_END,     /* nothing of the run is left */
	MOMENT_COUNT,
};

struct report {
	struct outcome outcome;
	bool machine_ended; /* mvagent-vmm said how */
	enum monitor_reason machine_reason;
	char machine_text[MONITOR_TEXT_BYTES + 1];
	bool has_boot_counters;
	struct monitor_counters boot_counters; /* up to the command's start */
	struct monitor_counters counters;      /* of the whole run */
	struct network_report network;         /* what the command tried to reach */
	uint32_t memory_percent; /* of the guest's own were in use: the last warning; 0: none */
	bool memory_ran_out;     /* and its kernel ended a process */
	bool has_cgroup;
	struct cgroup_use cgroup; /* what --cgroup counted */
	uint64_t moments[MOMENT_COUNT];
};

/* The reason's name in --json. */
const char *report_reason_name(enum monitor_reason reason);

/* Milliseconds from one moment to another, or -1 when one was not reached. */
double report_milliseconds(const struct report *report, enum report_moment from,
			   enum report_moment to);

/* Writes one line of JSON. 0 or -errno with the sentence printed. */
int report_write_json(const struct report *report, const struct report_file *file);

/* Prints timings and counts at LOG_VERBOSE. */
void report_log(const struct report *report);

#endif

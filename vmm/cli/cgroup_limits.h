/* SPDX-License-Identifier: Apache-2.0 */
/* What --cgroup says: how much of the host a run may take, all its processes together. */
#ifndef MVAGENT_CLI_CGROUP_LIMITS_H
#define MVAGENT_CLI_CGROUP_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* 0: no limit. */
struct cgroup_limits {
	uint64_t memory_mib;  /* memory.max; swap is not used */
	uint64_t pids;        /* pids.max: processes and threads */
	uint64_t cpu_percent; /* cpu.max: 100 is one processor */
	uint64_t io_mib;      /* io.max: MiB a second, read and written, each */
};

/* Adds what @text says to @limits: "memory=SIZE,pids=NUMBER,cpu=PERCENT%,io=SIZE", each at most
 * once. 0 or -EINVAL with the sentence printed. */
int cgroup_limits_parse(struct cgroup_limits *limits, const char *text);

/* Whether the machine fits in: a limit below the guest's own memory would have the kernel kill it
 * in the middle of its work. 0 or -EINVAL with the sentence printed. */
int cgroup_limits_check(const struct cgroup_limits *limits, uint64_t guest_memory_mib);

bool cgroup_limits_any(const struct cgroup_limits *limits);

#endif

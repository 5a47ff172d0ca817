/* SPDX-License-Identifier: Apache-2.0 */
/* A control group (cgroup v2) for the processes of one run, where the user may have one: below the
 * group that mvagent itself is in, or one above it, as far as they are the user's to write
 * (Documentation/admin-guide/cgroup-v2.rst, "Delegation"). */
#ifndef MVAGENT_CLI_CGROUP_H
#define MVAGENT_CLI_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/cli/cgroup_limits.h"

struct cgroup {
	int parent_fd; /* -1: there is none */
	int fd;
	int procs_fd; /* whoever writes "0" there is in; for the processes to be started */
	char name[32];
	char path[PATH_MAX];
};

#define CGROUP_NONE ((struct cgroup){.parent_fd = -1, .fd = -1, .procs_fd = -1})

/* What a group has used; 0 also where its controllers do not tell. */
struct cgroup_use {
	uint64_t memory_peak_bytes;
	uint64_t cpu_us;
	uint64_t kills; /* processes that the kernel killed at the limit of memory */
};

/* Makes a group with those limits. Reads and writes of the disks that hold @share_fds are limited.
 * 0 or -errno with the sentence printed. */
int cgroup_make(struct cgroup *cgroup, const struct cgroup_limits *limits, const int *share_fds,
		unsigned int share_count);

/* Once its processes are gone: tells what they used, and removes the group. */
void cgroup_end(struct cgroup *cgroup, struct cgroup_use *use);

/* Removes the groups of runs whose mvagent was killed; how many. */
unsigned int cgroup_sweep(void);

/* For `mvagent doctor`: which limits can be set here, and where, or why none. */
bool cgroup_describe(char *text, size_t size);

#endif

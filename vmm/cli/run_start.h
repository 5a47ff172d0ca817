/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a run and the sockets between them. */
#ifndef MVAGENT_CLI_RUN_START_H
#define MVAGENT_CLI_RUN_START_H

#include "vmm/cli/installation.h"
#include "vmm/cli/run_inputs.h"
#include "vmm/cli/run_options.h"
#include "vmm/cli/run_shares.h"
#include "vmm/cli/supervisor.h"

/* [0] is the supervisor's or mvagent-vmm's end, [1] the other; -1: not open. */
struct run_sockets {
	int monitor[2];
	int control[2];
	int streams[STREAM_COUNT][2];
	int blk[2];
	int fs[LIMIT_SHARES][2];
	int reports[LIMIT_SHARES][2]; /* of mvagent-fs, for the record */
	int notify[LIMIT_SHARES][2];  /* between mvagent-vmm and mvagent-fs */
	int names[2];                 /* to the guest's resolver */
	int lend[2];                  /* between mvagent-vmm and mvagent-relay */
	int sign[2];                  /* between mvagent-relay and mvagent-sign */
	int events[2];                /* from these three */
	int secret[2];                /* between these two */
};

void run_sockets_init(struct run_sockets *sockets);

/* Makes those that a run with so many shares needs, and those of a relay and of
 * mvagent-secret. 0 or -errno with the
 * sentence printed. */
int run_sockets_create(struct run_sockets *sockets, unsigned int share_count, bool relay,
		       bool secret, bool sign);

/* Closes all but the supervisor's own ends: a process that ends must be seen as hung up. */
void run_sockets_close_children_ends(struct run_sockets *sockets);

/* What the processes are made from; all of it stays the caller's. */
struct run_parts {
	const struct run_options *options;
	const struct installation *installation;
	const struct guest_identity *identity;
	const struct run_shares *shares;
	const struct run_inputs *inputs;
	const struct run_sockets *sockets;
	int cgroup_fd;   /* for the processes, as in struct process_plan */
	char *authority; /* LIMIT_AUTHORITY_BYTES; gets its certificate when there are secrets */
};

/* Starts them all. 0 or -errno with the sentence printed; then some may run, as the supervisor's
 * process_count says. */
int run_start(const struct run_parts *parts, struct supervisor *supervisor);

#endif

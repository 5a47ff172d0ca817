/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MVAGENT_CLI_RUN_H
#define MVAGENT_CLI_RUN_H

#include <limits.h>

#include "vmm/cli/run_options.h"
#include "vmm/cli/supervisor.h"
#include "vmm/review/layout.h"

/* `mvagent run`: returns the exit status. */
int run_command(int argc, char **argv);

/* How long the probes of a review may take. */
#define PROBE_SECONDS 240U

/* A run in which the guest's init tries things (guest/probe.h) in place of a command. */
struct run_probe {
	const char *number;                      /* that comes back with the answers */
	const char *const *items;                /* what to try; NULL-terminated */
	int user_fds[STREAM_COUNT];              /* its streams */
	char record_name[REVIEW_RUN_NAME_BYTES]; /* of the run; what became of it */
	char store[PATH_MAX];
	cJSON *variables;    /* array: names of what the command is given */
	cJSON *placeholders; /* object: NAME: what it has in place of a secret */
};

/* Runs it under @options, which are taken over; @argv: the command line, for the record. Returns
 * the exit status, 0 when the guest says that it has tried all. */
int run_probe(struct run_probe *probe, struct run_options *options, int argc, char **argv);

#endif

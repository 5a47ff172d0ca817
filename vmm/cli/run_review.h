/* SPDX-License-Identifier: Apache-2.0 */
/* What a run with shares under review leaves behind: its directory below the state directory
 * (vmm/review/layout.h), made before the machine starts and completed when it has ended. */
#ifndef MVAGENT_CLI_RUN_REVIEW_H
#define MVAGENT_CLI_RUN_REVIEW_H

#include "vmm/cli/run_shares.h"
#include "vmm/review/record.h"
#include "vmm/review/store.h"

struct run_review {
	int store_fd;
	int run_fd; /* locked; -1: there is none */
	char name[REVIEW_RUN_NAME_BYTES];
	struct review_record record;   /* its texts belong to the options and shares */
	char uppers[LIMIT_SHARES][32]; /* the record's paths */
	char bases[LIMIT_SHARES][32];
	char *patterns[3][LIMIT_RUN_RULES + 1]; /* the record's lists */
};

void run_review_init(struct run_review *review);

/* Makes the directory when a share is under review, with the descriptors for mvagent-fs in @shares.
 * 0 or -errno with the sentence printed. */
int run_review_begin(struct run_review *review, const struct run_options *options,
		     struct run_shares *shares);

/* The run has ended: says what waits for review; when that is nothing, the directory goes. */
void run_review_end(struct run_review *review, int exit_status);

void run_review_destroy(struct run_review *review);

#endif

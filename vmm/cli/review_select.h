/* SPDX-License-Identifier: Apache-2.0 */
/* What a review command is about: which run, and which paths in its shares. */
#ifndef MVAGENT_CLI_REVIEW_SELECT_H
#define MVAGENT_CLI_REVIEW_SELECT_H

#include <limits.h>

#include "vmm/cli/review_options.h"
#include "vmm/cli/review_policy.h"
#include "vmm/review/review_run.h"

struct review_selection {
	struct run_policy policy;
	struct review_run run;  /* with its shares open, unless it is applied or discarded */
	bool none;              /* nothing is there that could be meant */
	char current[PATH_MAX]; /* the directory that relative PATHs begin at */
	/* PATHs for each share of the run, relative to it; allocated. */
	struct review_paths paths[LIMIT_SHARES];
	bool skipped[LIMIT_SHARES]; /* the user named paths, and none in this share */
};

/* Finds the run that the options name, or the one that is meant, and says which. 0 or -errno with
 * the sentence printed. Destroy in every case. */
int review_select(struct review_selection *selection, const struct review_options *options);
void review_selection_destroy(struct review_selection *selection);

#endif

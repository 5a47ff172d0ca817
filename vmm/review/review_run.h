/* SPDX-License-Identifier: Apache-2.0 */
/* A run that is looked at: what is on record of it, and its shares. */
#ifndef MVAGENT_REVIEW_REVIEW_RUN_H
#define MVAGENT_REVIEW_REVIEW_RUN_H

#include "vmm/review/change.h"
#include "vmm/review/record.h"
#include "vmm/review/store.h"

enum review_state {
	REVIEW_RUNNING,   /* or another command works on it */
	REVIEW_OPEN,      /* has changes, or could have */
	REVIEW_APPLIED,   /* all of them */
	REVIEW_DISCARDED, /* what was not applied */
};

struct review_run {
	int fd;
	char name[REVIEW_RUN_NAME_BYTES];
	struct review_record record;
	enum review_state state;
	unsigned int share_count; /* that are open */
	struct review_share shares[LIMIT_SHARES];
};

/* Opens a run. @lock: keeps others from it for as long as it is open, if nobody else does. 0 or
 * -errno with the sentence printed. Close in every case. */
int review_run_open(struct review_run *run, int store_fd, const char *name, bool lock);
void review_run_close(struct review_run *run);

/* Opens the run's shares, on the host and in its directory. @policy must live as long. @moved: do
 * not mind that the host's directory is another one than then. 0 or -errno with the sentence
 * printed. */
int review_run_open_shares(struct review_run *run, const struct review_policy *policy, bool moved);

/* How many changes there are in all shares. 0 or -errno with the sentence printed. */
int review_run_count_changes(const struct review_run *run, size_t *count);

/* Sets a mark, and removes what was changed. 0 or -errno with the sentence printed; whatever
 * happens after the mark was set, the run's changes count for nothing any more. */
int review_run_finish(struct review_run *run, const char *mark);

#endif

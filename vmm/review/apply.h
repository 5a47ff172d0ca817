/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the guest's changes in the host's tree. */
#ifndef MVAGENT_REVIEW_APPLY_H
#define MVAGENT_REVIEW_APPLY_H

#include "vmm/review/change.h"

/* Is told of each change that was made. */
typedef void apply_told(void *context, const struct review_change *change);

/*
 * Makes all changes of a list, none of which may have a problem: directories and contents first,
 * deletions then, deepest first. What was made is on the disk before upper/ forgets it, so that
 * after a crash it is found to be made already. Stops at the first change that fails; *@failed is
 * it, NULL when what failed is no single change. -ESTALE: the host's object changed after it was
 * judged. 0 or -errno.
 */
int review_apply(const struct review_share *share, struct review_changes *changes, apply_told *told,
		 void *context, const struct review_change **failed);

#endif

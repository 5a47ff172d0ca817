/* SPDX-License-Identifier: Apache-2.0 */
/* Changes as a unified diff in git's format, which `git apply` takes, and as git's --stat. */
#ifndef MVAGENT_REVIEW_DIFF_H
#define MVAGENT_REVIEW_DIFF_H

#include "vmm/review/change.h"
#include "vmm/review/output.h"

/* Prints all changes. What the format has no words for (directories, fifos, what cannot be read)
 * are lines that begin with "# "; git passes over them. 0 or -errno with the sentence printed. */
int review_diff_print(struct review_output *output, const struct review_share *share,
		      const struct review_changes *changes);

/* Prints a line with the count of changed lines for each change, and their sum. 0 or -errno with
 * the sentence printed. */
int review_diff_print_stat(struct review_output *output, const struct review_share *share,
			   const struct review_changes *changes);

#endif

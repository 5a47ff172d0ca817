/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks through the share while the guest boots, for what names alone do not tell: hidden files
 * with a second name, by which they must be hidden too; git repositories under names that no rule
 * knows; and where symbolic links under hidden or protected names lead. Tells the user what is
 * hidden.
 */
#ifndef MVAGENT_FS_SCAN_H
#define MVAGENT_FS_SCAN_H

#include "vmm/fs/identity_set.h"
#include "vmm/fs/policy.h"

struct scan;

struct scan_result {
	struct identity_set links; /* hidden files with other names: device and number alone */
	struct identity_set repositories; /* directories that are one under some other name */
	struct identity_set closed;       /* directories that could not be looked into */
	uint64_t hidden_count;            /* names */
	uint64_t protected_count;
	uint64_t removed_count; /* files that were in the making */
};

/* Starts, on a thread of its own. @root_fd stays the caller's; @root_path is its path for who made
 * symbolic links that begin with it (NULL: the one it has now), as long as the scan lasts. @policy,
 * to which the ends of symbolic links are added, must not be used before the end. @clean: remove
 * files that are in the making (review_is_temporary) and nobody's. 0 or -errno. */
int scan_start(struct scan **scan, int root_fd, const char *root_path, struct policy *policy,
	       bool clean);

/* Waits for the end, says what was found, and frees the scan. *@result is the caller's. 0, or
 * -errno with the sentence printed: not everything was seen. */
int scan_finish(struct scan *scan, struct scan_result *result);

/* The same at once, and without a word but for an error. */
int scan_run(struct scan_result *result, int root_fd, struct policy *policy, bool clean);

void scan_result_destroy(struct scan_result *result);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory: runs that can be reviewed, see layout.h. */
#ifndef MVAGENT_REVIEW_STORE_H
#define MVAGENT_REVIEW_STORE_H

#include <limits.h>
#include <stdbool.h>

#include "vmm/review/layout.h"
#include "vmm/review/tree.h"

/* The path of .../mvagent/NAME in the user's state directory, which may not be there. 0 or
 * -ENAMETOOLONG. */
int review_state_path(char path[PATH_MAX], const char *name);

/* Makes it with all directories above it, closed to all others. Changes @path meanwhile. 0 or
 * -errno. */
int review_state_make(char *path);

/* A name for a run that begins now. 0 or -EIO. */
int review_make_run_name(char name[REVIEW_RUN_NAME_BYTES]);

/* The path of .../mvagent/runs, which may not be there. 0 or -ENAMETOOLONG. */
int review_store_path(char path[PATH_MAX]);

/* Opens .../mvagent/runs, and makes it when @create is set. fd, -ENOENT when it is not there, or
 * -errno with the sentence printed. */
int review_store_open(bool create);

/* Makes the directory of a new run, locks it, and gives its name. The lock is held until the
 * descriptor and all copies of it are closed. fd or -errno. */
int review_store_create_run(int store_fd, char name[REVIEW_RUN_NAME_BYTES]);

/* Makes shareN/ and shareN/upper/ of a run, N being @index; @mode is that of the host's directory.
 * *@directory_fd and *@upper_fd are for mvagent-fs. 0 or -errno. */
int review_store_create_share(int run_fd, unsigned int index, mode_t mode, int *directory_fd,
			      int *upper_fd);

/* The names of all runs that are on record, oldest first. 0 or -errno; destroy in every case. */
int review_store_list(int store_fd, struct tree_names *names);

/* The names of those that are not: of processes that were killed as they made one, or that are just
 * making it. */
int review_store_list_unborn(int store_fd, struct tree_names *names);

/* Opens a run's directory. fd or -errno. */
int review_store_open_run(int store_fd, const char *name);

/* Locks an open run against others, for as long as the descriptor is open. 0, -EWOULDBLOCK when it
 * is still running or another command works on it, or -errno. */
int review_run_lock(int run_fd);

/* Whether somebody holds such a lock. */
bool review_run_is_locked(int run_fd);

/* Makes the file @mark, durable. 0 or -errno. */
int review_run_set_mark(int run_fd, const char *mark);
bool review_run_has_mark(int run_fd, const char *mark);

#endif

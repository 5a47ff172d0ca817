/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAB_TREE_H
#define LAB_TREE_H

#include <stdbool.h>

/* The user that --user runs the command as. */
#define LAB_UID  1000u
#define LAB_GID  1000u
#define LAB_HOME "/tmp/home"

/* What differs from one lab to the next; the strings stay the caller's. */
struct tree_wishes {
	const char *modules; /* on the real host: the directory that holds lib/modules/VERSION */
	const char *cwd;     /* shown read-only where /tmp, /run or /dev would hide it */
	char **read_only;    /* more such directories, then NULL */
	char **read_write;   /* directories to mount writable from the tags rw0, rw1, ..., then NULL
			      */
	bool as_user;
};

/*
 * Report one sentence to the driver and stop the lab host. Defined by the agent; never returns.
 */
void agent_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/*
 * Build the file tree of the lab host and make it the root directory: the real host's top-level
 * directories, read-only over 9p, with the lab's own /proc, /sys, /dev, /run, /tmp and /scratch.
 * Failures end the lab through agent_fail().
 */
void tree_enter(const struct tree_wishes *wishes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Between scan.c, scan_walk.c, which goes through the share, and scan_link.c, which follows
 * symbolic links. */
#ifndef MVAGENT_FS_SCAN_INTERNAL_H
#define MVAGENT_FS_SCAN_INTERNAL_H

#include <pthread.h>
#include <stddef.h>

#include "vmm/base/limits.h"
#include "vmm/fs/scan.h"

/* The first few paths of many. */
struct scan_list {
	unsigned long count;
	char text[512];
};

/* One directory on the way down. */
struct scan_level {
	int fd; /* O_PATH; -1: closed to have few open, and opened again when need be */
	size_t path_length;
	bool hidden;     /* it, or one above it */
	bool repository; /* to git, whatever its name is */
	struct policy_state state;
	char *names; /* of directories in it, that are still to be entered from next on */
	size_t size;
	size_t room;
	size_t next;
};

struct scan {
	pthread_t thread;
	int root_fd;
	struct policy *policy;
	const char *root_path; /* or NULL */
	bool clean;
	uid_t user;
	int error; /* the sentence is printed */
	struct scan_list hidden;
	struct scan_list tracked; /* hidden and in git's index */
	struct scan_list closed;
	struct scan_list led; /* where symbolic links lead */
	struct scan_list removed;
	struct scan_result result;
	/* Ends of symbolic links, each of which is looked through once more as what it is now. */
	char *ends[LIMIT_POLICY_PATHS];
	unsigned int end_count;
	unsigned int depth;
	char *path; /* of the directory or entry at work */
	size_t path_room;
	struct scan_level levels[LIMIT_FS_DEPTH];
};

/* Remembers an error, with its sentence, unless there was one before. */
void scan_fail(struct scan *scan, int error, const char *path);

/* Follows the symbolic link @name, whose path is scan->path: where it leads within the share,
 * @verdict, which is what the rules say of its name, holds from now on. */
void scan_follow(struct scan *scan, const char *name, const struct policy_verdict *verdict);

void scan_list_add(struct scan_list *list, const char *path);

/* Goes through the share, and through what symbolic links lead to. */
void scan_all(struct scan *scan);

/* Gives up the level at the top. */
void scan_pop(struct scan *scan);

#endif

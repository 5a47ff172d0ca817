/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/fs/path.h"
#include "vmm/fs/scan_internal.h"

#define LINK_HOPS 40 /* MAXSYMLINKS of Linux */

/* A path on its way to be without symbolic links. */
struct link_walk {
	struct scan *scan;
	const char *origin;  /* the link it began with: a path */
	char root[PATH_MAX]; /* of the share, for links that begin with it */
	char path[PATH_MAX]; /* from the share's root: so far there is no link in it */
	char rest[PATH_MAX]; /* what follows */
	unsigned int hops;
};

static int link_read_root(struct link_walk *walk)
{
	char proc[32];
	ssize_t length;

	if (walk->scan->root_path) {
		snprintf(walk->root, sizeof(walk->root), "%s", walk->scan->root_path);
		return 0;
	}
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", walk->scan->root_fd);
	length = readlink(proc, walk->root, sizeof(walk->root) - 1);
	if (length < 0)
		return -errno;
	walk->root[length] = '\0';
	return 0;
}

/* Puts @target in front of what follows. 0; -ENAMETOOLONG; 1: it leads out of the share. */
static int link_enter(struct link_walk *walk, const char *target)
{
	char rest[PATH_MAX];
	size_t root = strlen(walk->root);
	int length;

	if (++walk->hops > LINK_HOPS)
		return 1; /* a circle, which nobody can follow */
	if (*target == '/') {
		if (root == 0)
			return 1; /* it is not known */
		if (strncmp(target, walk->root, root) != 0 ||
		    (target[root] != '/' && target[root] != '\0'))
			return 1;
		target += root;
		walk->path[0] = '\0';
	}
	length = snprintf(rest, sizeof(rest), "%s/%s", target, walk->rest);
	if (length < 0 || (size_t)length >= sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(walk->rest, rest, (size_t)length + 1);
	return 0;
}

/* Drops the last name of the path. Whether there was one. */
static bool link_go_up(struct link_walk *walk)
{
	char *slash = strrchr(walk->path, '/');

	if (!walk->path[0])
		return false;
	*(slash ? slash : walk->path) = '\0';
	return true;
}

/* Adds a name to the path. *@target is where it leads if it is a symbolic link, or empty. 0 or
 * -errno. */
static int link_go_down(struct link_walk *walk, const char *name, char target[PATH_MAX])
{
	FD_CLEANUP int directory = walk->path[0] ? path_open_name(walk->scan->root_fd, walk->path)
						 : fcntl(walk->scan->root_fd, F_DUPFD_CLOEXEC, 0);
	FD_CLEANUP int fd = directory < 0 ? -1 : path_open_name(directory, name);
	size_t at = strlen(walk->path);
	int added = snprintf(walk->path + at, sizeof(walk->path) - at, "%s%s", at ? "/" : "", name);
	ssize_t length;

	*target = '\0';
	if (added < 0 || (size_t)added >= sizeof(walk->path) - at)
		return -ENAMETOOLONG;
	/* What is not there may come to be. */
	if (fd < 0)
		return 0;
	length = readlinkat(fd, "", target, PATH_MAX - 1);
	target[length < 0 ? 0 : length] = '\0';
	return 0;
}

/* The rules' verdict on a link holds for @path, too. 1, 0: it does anyway; or -errno. */
static int link_add(struct link_walk *walk, const char *path, const struct policy_verdict *verdict)
{
	struct scan *scan = walk->scan;
	struct policy_verdict now;
	int error;

	policy_examine_path(scan->policy, path, &now);
	/* What is as hidden or protected by itself needs no more. */
	if ((now.hidden || !verdict->hidden) && (now.protected || !verdict->protected) &&
	    !verdict->protected_if_old && !policy_state_has_begun(&verdict->state))
		return 0;
	error = policy_add_path(scan->policy, path, walk->origin, verdict);
	return error ? error : 1;
}

/* One name of what follows. 0, 1: it leads out of the share; or -errno. */
static int link_step(struct link_walk *walk, const char *name)
{
	const struct policy_verdict keep = {.protected = true};
	char target[PATH_MAX], path[PATH_MAX];
	int error;

	if (strcmp(name, ".") == 0 || !*name)
		return 0;
	if (strcmp(name, "..") == 0)
		return link_go_up(walk) ? 0 : 1;
	error = link_go_down(walk, name, target);
	if (error || !*target)
		return error;
	/* A link on the way must go on leading there. */
	memcpy(path, walk->path, sizeof(path));
	link_go_up(walk);
	if (strcmp(path, walk->origin) != 0)
		error = link_add(walk, path, &keep);
	return error < 0 ? error : link_enter(walk, target);
}

/* Follows what follows to its end. 0, 1 or -errno. */
static int link_walk_rest(struct link_walk *walk)
{
	char name[LIMIT_FS_NAME_BYTES + 1];
	int error = 0;

	while (!error && walk->rest[0]) {
		size_t length = strcspn(walk->rest, "/");
		const char *behind = walk->rest + length + (walk->rest[length] == '/');

		if (length >= sizeof(name))
			return 1;
		memcpy(name, walk->rest, length);
		name[length] = '\0';
		memmove(walk->rest, behind, strlen(behind) + 1);
		error = link_step(walk, name);
	}
	return error;
}

/* What the link leads to is to be looked through as what it is now. */
static int link_note_end(struct scan *scan, const char *path)
{
	for (unsigned int i = 0; i < scan->end_count; i++)
		if (strcmp(scan->ends[i], path) == 0)
			return 0;
	if (scan->end_count == LIMIT_POLICY_PATHS)
		return -E2BIG;
	scan->ends[scan->end_count] = strdup(path);
	if (!scan->ends[scan->end_count])
		return -ENOMEM;
	scan->end_count++;
	scan_list_add(&scan->led, path);
	return 0;
}

void scan_follow(struct scan *scan, const char *name, const struct policy_verdict *verdict)
{
	struct link_walk *walk = calloc(1, sizeof(*walk));
	int length, error = 0;
	const char *slash;

	if (!walk) {
		scan_fail(scan, -ENOMEM, scan->path);
		return;
	}
	walk->scan = scan;
	walk->origin = scan->path;
	slash = strrchr(scan->path, '/');
	length = snprintf(walk->path, sizeof(walk->path), "%.*s",
			  slash ? (int)(slash - scan->path) : 0, scan->path);
	if (length < 0 || (size_t)length >= sizeof(walk->path))
		error = -ENAMETOOLONG;
	if (!error)
		error = link_read_root(walk);
	snprintf(walk->rest, sizeof(walk->rest), "%s", name);
	if (!error)
		error = link_walk_rest(walk);
	if (!error && !walk->path[0])
		log_warning("the symbolic link %s leads to the share itself, which is neither "
			    "hidden nor protected for that",
			    scan->path);
	if (!error && walk->path[0]) {
		error = link_add(walk, walk->path, verdict);
		if (error > 0)
			error = link_note_end(scan, walk->path);
	}
	if (error < 0)
		scan_fail(scan, error, scan->path);
	free(walk);
}

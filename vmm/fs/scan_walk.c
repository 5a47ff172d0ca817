/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/fs/dirent.h"
#include "vmm/fs/git_place.h"
#include "vmm/fs/path.h"
#include "vmm/fs/scan_internal.h"
#include "vmm/review/layout.h"

#define SCAN_OPEN         16U /* directories that are open at once */
#define SCAN_NAMES_BYTES  4096U
#define SCAN_LEFT_SECONDS 10

void scan_fail(struct scan *scan, int error, const char *path)
{
	if (!scan->error)
		log_errno(error,
			  "cannot look through the share for what to hide and protect, at %s",
			  *path ? path : "its root");
	scan->error = scan->error ? scan->error : error;
}

static struct scan_level *scan_top(struct scan *scan)
{
	return &scan->levels[scan->depth - 1];
}

/* Makes the path that of @name in the level's directory. Whether there was memory. */
static bool scan_set_path(struct scan *scan, const struct scan_level *level, const char *name)
{
	size_t length = level->path_length, wanted = length + strlen(name) + 2;

	if (wanted > scan->path_room) {
		char *grown = realloc(scan->path, 2 * wanted);

		if (!grown) {
			scan_fail(scan, -ENOMEM, "");
			return false;
		}
		scan->path = grown;
		scan->path_room = 2 * wanted;
	}
	sprintf(scan->path + length, "%s%s", length && *name ? "/" : "", name);
	return true;
}

/* The descriptor of a level: opened again by the names on the way, without those far above. It
 * stays the level's. fd or -errno. */
static int scan_level_fd(struct scan *scan, unsigned int number)
{
	unsigned int above = number;

	while (scan->levels[above].fd < 0)
		above--; /* the first is open */
	for (; above < number; above++) {
		const struct scan_level *level = &scan->levels[above];
		char name[LIMIT_FS_NAME_BYTES + 1];
		size_t from = level->path_length + (level->path_length ? 1 : 0);
		int fd;

		snprintf(name, sizeof(name), "%.*s",
			 (int)(scan->levels[above + 1].path_length - from), scan->path + from);
		fd = path_open_name(level->fd, name);
		if (above > 0 && above + SCAN_OPEN < number)
			fd_close(&scan->levels[above].fd);
		if (fd < 0)
			return fd;
		scan->levels[above + 1].fd = fd;
	}
	return scan->levels[number].fd;
}

/* A hidden file: does it have another name? */
static void scan_note_link(struct scan *scan, int directory_fd, const char *name)
{
	struct inode_identity identity;
	struct statx status;

	if (path_look(directory_fd, name, &status) || !S_ISREG(status.stx_mode) ||
	    status.stx_nlink < 2)
		return;
	identity = inode_identity_of(&status);
	identity.birth_ns = 0;
	identity.type = 0;
	if (identity_set_add(&scan->result.links, &identity))
		scan_fail(scan, -ENOSPC, scan->path);
}

/* Adds the name of a directory to those that are to be entered. */
static bool scan_add_name(struct scan_level *level, const char *name)
{
	size_t length = strlen(name) + 1;

	if (level->size + length > level->room) {
		size_t room = 2 * level->room + SCAN_NAMES_BYTES;
		char *grown = realloc(level->names, room);

		if (!grown)
			return false;
		level->names = grown;
		level->room = room;
	}
	memcpy(level->names + level->size, name, length);
	level->size += length;
	return true;
}

/* Whether nobody is making that file any more. Of what cannot be locked, the age has to tell. */
static bool scan_is_left(int directory_fd, const char *name, const struct statx *status)
{
	FD_CLEANUP int fd = -1;
	struct timespec now;

	if (S_ISREG(status->stx_mode)) {
		fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec - status->stx_ctime.tv_sec > SCAN_LEFT_SECONDS;
}

/* Removes what was in the making when its maker was killed: a copy, or what a copy has replaced. */
static void scan_clean(struct scan *scan, int directory_fd, const char *name)
{
	struct statx status;

	if (path_look(directory_fd, name, &status) || status.stx_uid != scan->user ||
	    !scan_is_left(directory_fd, name, &status))
		return;
	if (unlinkat(directory_fd, name, S_ISDIR(status.stx_mode) ? AT_REMOVEDIR : 0))
		return;
	scan->result.removed_count++;
	if (scan_set_path(scan, scan_top(scan), name))
		scan_list_add(&scan->removed, scan->path);
}

static void scan_entry(struct scan *scan, struct scan_level *level, const char *name,
		       unsigned char type)
{
	struct policy_verdict verdict;
	struct statx status;
	bool hidden;

	if (review_is_temporary(name)) {
		if (scan->clean)
			scan_clean(scan, level->fd, name);
		return;
	}
	policy_examine(scan->policy, &level->state, name, &verdict);
	hidden = level->hidden || verdict.hidden;
	scan->result.hidden_count += verdict.hidden && !level->hidden;
	scan->result.protected_count += !hidden && (verdict.protected || verdict.protected_if_old);
	if (type == DT_UNKNOWN && path_look(level->fd, name, &status) == 0)
		type = (unsigned char)IFTODT(status.stx_mode);
	if (type == DT_DIR && !scan_add_name(level, name))
		scan_fail(scan, -ENOMEM, "");
	if ((!hidden && type != DT_LNK) || !scan_set_path(scan, level, name))
		return;
	if (verdict.hidden && !level->hidden)
		scan_list_add(&scan->hidden, scan->path);
	if (hidden && type == DT_REG)
		scan_note_link(scan, level->fd, name);
	verdict.hidden = hidden;
	if (type == DT_LNK && (hidden || verdict.protected || verdict.protected_if_old ||
			       policy_state_has_begun(&verdict.state)))
		scan_follow(scan, name, &verdict);
}

/* Whether the rules know the directory at the top for a repository by its name. */
static bool scan_is_known(const struct scan *scan)
{
	enum git_directory found = GIT_DIRECTORY_OPEN;
	size_t end = strlen(scan->path), start;
	unsigned int level = scan->depth;
	struct git_walk walk = {0};
	char name[LIMIT_FS_NAME_BYTES + 1];

	for (; found == GIT_DIRECTORY_OPEN && end > 0; end = start ? start - 1 : 0) {
		for (start = end; start > 0 && scan->path[start - 1] != '/';)
			start--;
		snprintf(name, sizeof(name), "%.*s", (int)(end - start), scan->path + start);
		level -= level > 0 ? 1 : 0;
		found = git_walk_up(&walk, scan->levels[level].repository ? ".git" : name);
	}
	if (found == GIT_DIRECTORY_OPEN && scan->levels[0].repository)
		found = git_walk_up(&walk, ".git");
	return found == GIT_DIRECTORY_REPOSITORY;
}

/* A directory with the parts of a repository: the rules for repositories hold in it. */
static void scan_note_repository(struct scan *scan, struct scan_level *level)
{
	struct inode_identity identity;
	struct statx status;

	if (scan_is_known(scan) || path_status(level->fd, &status))
		return;
	identity = inode_identity_of(&status);
	if (identity_set_add(&scan->result.repositories, &identity))
		scan_fail(scan, -ENOSPC, scan->path);
	level->repository = true;
	policy_enter_repository(scan->policy, &level->state);
}

/* Lists the directory at the top twice: what it is decides what its names mean. */
static void scan_list(struct scan *scan, DIR *directory)
{
	struct scan_level *level = scan_top(scan);
	const struct dirent *entry;
	unsigned int parts = 0;

	while ((entry = readdir(directory)) != NULL)
		parts |= git_part_of(entry->d_name);
	if (git_parts_are_repository(parts))
		scan_note_repository(scan, level);
	rewinddir(directory);
	while (!scan->error && (entry = readdir(directory)) != NULL)
		if (!dirent_is_dot(entry->d_name))
			scan_entry(scan, level, entry->d_name, entry->d_type);
	scan_set_path(scan, level, "");
}

/* What the guest might open to itself (chmod) and nobody has looked into stays closed to it. */
static void scan_close(struct scan *scan, int fd)
{
	struct inode_identity identity;
	struct statx status;

	if (path_status(fd, &status) || (status.stx_uid != scan->user && scan->user != 0))
		return;
	identity = inode_identity_of(&status);
	if (identity_set_add(&scan->result.closed, &identity))
		scan_fail(scan, -ENOSPC, scan->path);
	scan_list_add(&scan->closed, scan->path);
}

void scan_pop(struct scan *scan)
{
	struct scan_level *level = scan_top(scan);

	free(level->names);
	fd_close(&level->fd);
	scan->depth--;
}

/* Goes down into the directory @fd, which is taken over; its path is scan->path. */
static void scan_push(struct scan *scan, int fd, bool hidden, const struct policy_state *state)
{
	struct scan_level *level = &scan->levels[scan->depth];
	DIR *directory = NULL;
	int opened;

	if (scan->depth == LIMIT_FS_DEPTH) {
		scan_close(scan, fd);
		fd_close(&fd);
		return;
	}
	*level = (struct scan_level){
		.fd = fd, .path_length = strlen(scan->path), .hidden = hidden, .state = *state};
	scan->depth++;
	opened = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOATIME);
	if (opened < 0 && errno == EPERM)
		opened = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (opened >= 0)
		directory = fdopendir(opened);
	if (directory) {
		scan_list(scan, directory);
		closedir(directory);
	} else if (errno == EACCES) {
		scan_close(scan, fd);
	} else if (errno != ENOENT && errno != ENOTDIR) {
		scan_fail(scan, -errno, scan->path);
		fd_close(&opened);
	}
	if (scan->depth > SCAN_OPEN + 1)
		fd_close(&scan->levels[scan->depth - SCAN_OPEN].fd);
}

/* Enters the next directory of the level at the top. What is mounted there (EACCES) is not part of
 * the share; what has gone meanwhile is not there. */
static void scan_enter_next(struct scan *scan)
{
	struct scan_level *level = scan_top(scan);
	const char *name = level->names + level->next;
	struct policy_verdict verdict;
	int fd = scan_level_fd(scan, scan->depth - 1);

	level->next += strlen(name) + 1;
	fd = fd < 0 ? fd : path_open_name(fd, name);
	if (!scan_set_path(scan, level, name) || fd == -EACCES || fd == -ENOENT || fd == -ENOTDIR ||
	    fd == -ESTALE) {
		scan_set_path(scan, level, "");
		return;
	}
	policy_examine(scan->policy, &level->state, name, &verdict);
	if (fd < 0)
		scan_fail(scan, fd, scan->path);
	else
		scan_push(scan, fd, level->hidden || verdict.hidden, &verdict.state);
}

/* Goes through everything below the directory that was pushed last. */
static void scan_walk(struct scan *scan)
{
	while (scan->depth) {
		struct scan_level *level = scan_top(scan);

		scan_set_path(scan, level, "");
		if (level->next < level->size && !scan->error)
			scan_enter_next(scan);
		else
			scan_pop(scan);
	}
}

/* What a symbolic link leads to is hidden or protected by now: looked through as that. */
static void scan_end(struct scan *scan, const char *path)
{
	const struct scan_level top = {0};
	struct policy_verdict verdict;
	struct statx status;
	int fd = path_open_name(scan->root_fd, path);

	if (fd < 0 || path_status(fd, &status) || !scan_set_path(scan, &top, path)) {
		fd_close(&fd);
		return;
	}
	policy_examine_path(scan->policy, path, &verdict);
	if (S_ISDIR(status.stx_mode)) {
		scan_push(scan, fd, verdict.hidden, &verdict.state);
		scan_walk(scan);
		return;
	}
	if (verdict.hidden)
		scan_note_link(scan, scan->root_fd, path);
	fd_close(&fd);
}

void scan_all(struct scan *scan)
{
	const struct policy_state root = policy_root_state();
	const struct scan_level top = {0};
	int fd = path_open_name(scan->root_fd, ".");

	if (fd < 0) {
		scan_fail(scan, fd, "");
		return;
	}
	if (!scan_set_path(scan, &top, "")) {
		fd_close(&fd);
		return;
	}
	scan_push(scan, fd, false, &root);
	scan_walk(scan);
	for (unsigned int i = 0; i < scan->end_count; i++)
		scan_end(scan, scan->ends[i]);
}

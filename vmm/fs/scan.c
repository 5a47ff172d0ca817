/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/fs/git_index.h"
#include "vmm/fs/path.h"

#define SCAN_NAMED       4U /* how many are named in a message */
#define SCAN_INDEX_BYTES (1UL << 30)

/* The first few paths of many. */
struct scan_list {
	unsigned long count;
	char text[512];
};

/* One directory on the way down. */
struct scan_level {
	DIR *directory;
	size_t path_length;
	bool hidden; /* it, or one above it */
	struct policy_state state;
};

struct scan {
	pthread_t thread;
	int root_fd;
	const struct policy *policy;
	int error;
	struct scan_list hidden;
	struct scan_list tracked; /* hidden and in git's index */
	struct identity_set links;
	unsigned int depth;
	struct scan_level levels[LIMIT_FS_DEPTH];
	char path[PATH_MAX];
};

static void scan_list_add(struct scan_list *list, const char *path)
{
	size_t length = strlen(list->text);

	if (list->count++ < SCAN_NAMED)
		snprintf(list->text + length, sizeof(list->text) - length, "%s%s",
			 length ? ", " : "", path);
	else if (list->count == SCAN_NAMED + 1)
		snprintf(list->text + length, sizeof(list->text) - length, ", ...");
}

/* Goes down into @name of @directory_fd. What cannot be opened is nothing the guest can open
 * either; what is mounted there is not part of the share. */
static void scan_enter(struct scan *scan, int directory_fd, const char *name, bool hidden,
		       const struct policy_state *state)
{
	struct scan_level *level = &scan->levels[scan->depth];
	int fd, path_fd;

	if (scan->depth == LIMIT_FS_DEPTH)
		return;
	path_fd = path_open_name(directory_fd, name);
	if (path_fd == -EMFILE || path_fd == -ENFILE)
		scan->error = path_fd;
	if (path_fd < 0)
		return;
	fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOATIME);
	if (fd < 0 && errno == EPERM)
		fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd_close(&path_fd);
	if (fd < 0)
		return;
	level->directory = fdopendir(fd);
	if (!level->directory) {
		fd_close(&fd);
		return;
	}
	level->path_length = strlen(scan->path);
	level->hidden = hidden;
	level->state = *state;
	scan->depth++;
}

/* A hidden file: does it have another name? */
static void scan_note_link(struct scan *scan, int directory_fd, const char *name)
{
	struct inode_identity identity;
	struct statx status;

	if (statx(directory_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, PATH_STATX_MASK,
		  &status) ||
	    !S_ISREG(status.stx_mode) || status.stx_nlink < 2)
		return;
	identity = inode_identity_of(&status);
	identity.birth_ns = 0;
	identity.type = 0;
	if (identity_set_add(&scan->links, &identity))
		scan->error = -ENOSPC;
}

static void scan_entry(struct scan *scan, struct scan_level *level, const struct dirent *entry)
{
	int directory_fd = dirfd(level->directory);
	size_t length = level->path_length;
	struct policy_verdict verdict;
	bool hidden;

	policy_examine(scan->policy, &level->state, entry->d_name, &verdict);
	hidden = level->hidden || verdict.hidden;
	if (!hidden && entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
		return;
	if (length + strlen(entry->d_name) + 2 > sizeof(scan->path))
		return;
	snprintf(scan->path + length, sizeof(scan->path) - length, "%s%s", length ? "/" : "",
		 entry->d_name);
	if (verdict.hidden && !level->hidden)
		scan_list_add(&scan->hidden, scan->path);
	if (hidden && (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN))
		scan_note_link(scan, directory_fd, entry->d_name);
	if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)
		scan_enter(scan, directory_fd, entry->d_name, hidden, &verdict.state);
}

static void scan_walk(struct scan *scan)
{
	const struct policy_state root = policy_root_state();

	scan_enter(scan, scan->root_fd, ".", false, &root);
	while (scan->depth) {
		struct scan_level *level = &scan->levels[scan->depth - 1];
		const struct dirent *entry = readdir(level->directory);

		scan->path[level->path_length] = '\0';
		if (!entry) {
			closedir(level->directory);
			scan->depth--;
		} else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
			scan_entry(scan, level, entry);
		}
	}
}

static void scan_tracked(void *context, const char *path)
{
	struct scan *scan = context;
	struct policy_verdict verdict;

	policy_examine_path(scan->policy, path, &verdict);
	if (verdict.hidden)
		scan_list_add(&scan->tracked, path);
}

/* A repository without an index, or none at all, tracks nothing. */
static void scan_git(struct scan *scan)
{
	FD_CLEANUP int git = path_open_name(scan->root_fd, ".git");
	FD_CLEANUP int path_fd = git < 0 ? -1 : path_open_name(git, "index");
	FD_CLEANUP int proc = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	FD_CLEANUP int fd = -1;
	struct statx status;
	void *bytes;

	if (path_fd < 0 || proc < 0 || path_status(path_fd, &status) || !S_ISREG(status.stx_mode) ||
	    !status.stx_size || status.stx_size > SCAN_INDEX_BYTES)
		return;
	fd = path_reopen(proc, path_fd, O_RDONLY);
	if (fd < 0)
		return;
	/* Read, not mapped: the host may cut the file off meanwhile. */
	bytes = malloc(status.stx_size);
	if (bytes && fd_pread_full(fd, bytes, status.stx_size, 0) == 0)
		git_index_read(bytes, status.stx_size, scan_tracked, scan);
	free(bytes);
}

static void *scan_run(void *context)
{
	struct scan *scan = context;

	scan_walk(scan);
	if (scan->hidden.count)
		scan_git(scan);
	return NULL;
}

int scan_start(struct scan **result, int root_fd, const struct policy *policy)
{
	struct scan *scan = calloc(1, sizeof(*scan));
	int error;

	if (!scan)
		return -ENOMEM;
	scan->policy = policy;
	scan->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	if (scan->root_fd < 0) {
		error = -errno;
		free(scan);
		return error;
	}
	error = pthread_create(&scan->thread, NULL, scan_run, scan);
	if (error) {
		fd_close(&scan->root_fd);
		free(scan);
		return -error;
	}
	*result = scan;
	return 0;
}

static void scan_report(const struct scan *scan)
{
	if (scan->hidden.count)
		log_warning("%lu name%s in the share %s hidden from the guest: %s",
			    scan->hidden.count, scan->hidden.count == 1 ? "" : "s",
			    scan->hidden.count == 1 ? "is" : "are", scan->hidden.text);
	if (scan->tracked.count)
		log_warning("git tracks what is hidden and will show it as deleted in the guest: "
			    "%s (--show PATTERN lets the guest see it)",
			    scan->tracked.text);
}

int scan_finish(struct scan *scan, struct identity_set *links)
{
	int error = -pthread_join(scan->thread, NULL);

	if (!error)
		error = scan->error;
	scan_report(scan);
	identity_set_destroy(links);
	*links = scan->links;
	fd_close(&scan->root_fd);
	free(scan);
	return error;
}

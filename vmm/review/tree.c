/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vmm/base/fd.h"

static int tree_openat2(int directory_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned int)flags | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};
	int fd;

	/* openat2(2): EAGAIN when a rename elsewhere disturbed the walk. */
	for (int attempt = 0; attempt < 64; attempt++) {
		fd = (int)syscall(SYS_openat2, directory_fd, path, &how, sizeof(how));
		if (fd >= 0)
			return fd;
		if (errno != EAGAIN && errno != EINTR)
			break;
	}
	return -errno;
}

int tree_open_entry(int directory_fd, const char *name)
{
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/'))
		return -EINVAL;
	return tree_openat2(directory_fd, name, O_PATH);
}

/* Opens a directory whose path is longer than PATH_MAX in steps that are not. */
static int tree_descend(int root_fd, const char *path, size_t length, int flags)
{
	char step[PATH_MAX];
	int FD_CLEANUP here = -1;

	while (length >= sizeof(step)) {
		size_t end = sizeof(step) - 1;
		int next;

		while (end && path[end] != '/')
			end--;
		if (!end)
			return -ENAMETOOLONG;
		memcpy(step, path, end);
		step[end] = '\0';
		next = tree_openat2(here < 0 ? root_fd : here, step, O_PATH | O_DIRECTORY);
		if (next < 0)
			return next;
		fd_close(&here);
		here = next;
		path += end + 1;
		length -= end + 1;
	}
	memcpy(step, path, length);
	step[length] = '\0';
	return tree_openat2(here < 0 ? root_fd : here, length ? step : ".", flags | O_DIRECTORY);
}

int tree_open_directory(int root_fd, const char *path, int flags)
{
	return tree_descend(root_fd, path, strlen(path), flags);
}

int tree_open_parent(int root_fd, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');

	*name = slash ? slash + 1 : path;
	return tree_descend(root_fd, path, slash ? (size_t)(slash - path) : 0, O_PATH);
}

int tree_reopen(int fd)
{
	struct review_object object = {0};
	char path[32];
	int opened, error = tree_status(fd, &object);

	if (error)
		return error;
	if (!S_ISREG(object.mode) && !S_ISDIR(object.mode))
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return opened < 0 ? -errno : opened;
}

static int64_t tree_nanoseconds(const struct statx_timestamp *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

int tree_status(int fd, struct review_object *object)
{
	struct statx status;

	if (statx(fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS,
		  &status))
		return -errno;
	*object = (struct review_object){
		.mode = status.stx_mode,
		.rdev = makedev(status.stx_rdev_major, status.stx_rdev_minor),
		.device = makedev(status.stx_dev_major, status.stx_dev_minor),
		.inode = status.stx_ino,
		.links = status.stx_nlink,
		.size = status.stx_size,
		.mtime_ns = tree_nanoseconds(&status.stx_mtime),
		.ctime_ns = tree_nanoseconds(&status.stx_ctime),
		.owner = status.stx_uid,
		.group = status.stx_gid,
	};
	return 0;
}

int tree_look(int directory_fd, const char *name, struct review_object *object)
{
	int FD_CLEANUP fd = tree_open_entry(directory_fd, name);

	if (fd == -ENOENT) {
		*object = (struct review_object){0};
		return 0;
	}
	return fd < 0 ? fd : tree_status(fd, object);
}

int tree_look_path(int root_fd, const char *path, struct review_object *object)
{
	const char *name;
	int FD_CLEANUP directory_fd = tree_open_parent(root_fd, path, &name);

	if (directory_fd == -ENOENT || directory_fd == -ENOTDIR || directory_fd == -ELOOP) {
		*object = (struct review_object){0};
		return 0;
	}
	return directory_fd < 0 ? directory_fd : tree_look(directory_fd, name, object);
}

int tree_open_file(int root_fd, const char *path)
{
	const char *name;
	int FD_CLEANUP directory_fd = tree_open_parent(root_fd, path, &name);
	int FD_CLEANUP fd = -1;
	struct review_object object = {0};
	int error;

	if (directory_fd < 0)
		return directory_fd;
	fd = tree_open_entry(directory_fd, name);
	if (fd < 0)
		return fd;
	error = tree_status(fd, &object);
	if (error)
		return error;
	return S_ISREG(object.mode) ? tree_reopen(fd) : -EINVAL;
}

ssize_t tree_read_link(int root_fd, const char *path, char target[LIMIT_FS_SYMLINK_BYTES + 1])
{
	const char *name;
	int FD_CLEANUP directory_fd = tree_open_parent(root_fd, path, &name);
	int FD_CLEANUP fd = -1;
	ssize_t length;

	if (directory_fd < 0)
		return directory_fd;
	fd = tree_open_entry(directory_fd, name);
	if (fd < 0)
		return fd;
	length = readlinkat(fd, "", target, LIMIT_FS_SYMLINK_BYTES + 1);
	if (length < 0)
		return errno == ENOENT ? -EINVAL : -errno;
	if (length > LIMIT_FS_SYMLINK_BYTES)
		return -ENAMETOOLONG;
	target[length] = '\0';
	return length;
}

static int compare_names(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

static int tree_names_add(struct tree_names *names, size_t *room, const char *name)
{
	if (names->count == LIMIT_REVIEW_CHANGES)
		return -E2BIG;
	if (names->count == *room) {
		size_t wanted = *room ? 2 * *room : 64;
		char **grown = reallocarray(names->names, wanted, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		names->names = grown;
		*room = wanted;
	}
	names->names[names->count] = strdup(name);
	if (!names->names[names->count])
		return -ENOMEM;
	names->count++;
	return 0;
}

int tree_list(int directory_fd, struct tree_names *names)
{
	int copy = fcntl(directory_fd, F_DUPFD_CLOEXEC, 0);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;
	size_t room = 0;
	int error = 0;

	*names = (struct tree_names){0};
	if (!directory) {
		error = -errno;
		fd_close(&copy);
		return error;
	}
	rewinddir(directory); /* the position is shared with @directory_fd */
	while (!error) {
		errno = 0;
		entry = readdir(directory);
		if (!entry) {
			error = -errno;
			break;
		}
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			error = tree_names_add(names, &room, entry->d_name);
	}
	closedir(directory);
	if (names->count)
		qsort(names->names, names->count, sizeof(*names->names), compare_names);
	return error;
}

void tree_names_destroy(struct tree_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct tree_names){0};
}

bool tree_names_have(const struct tree_names *names, const char *name)
{
	return names->count &&
	       bsearch(&name, names->names, names->count, sizeof(*names->names), compare_names);
}

int tree_pending_push(struct tree_pending **list, const char *path, int tag)
{
	size_t length = strlen(path) + 1;
	struct tree_pending *pending = malloc(sizeof(*pending) + length);

	if (!pending)
		return -ENOMEM;
	pending->next = *list;
	pending->tag = tag;
	memcpy(pending->path, path, length);
	*list = pending;
	return 0;
}

struct tree_pending *tree_pending_pop(struct tree_pending **list)
{
	struct tree_pending *pending = *list;

	*list = pending->next;
	return pending;
}

int tree_change_mode(int fd, mode_t mode)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, mode) ? -errno : 0;
}

bool review_object_same(const struct review_object *one, const struct review_object *other)
{
	if (one->mode != other->mode || one->inode != other->inode || one->device != other->device)
		return false;
	/* A directory changes with every name in it. */
	return one->mode == 0 || S_ISDIR(one->mode) ||
	       (one->size == other->size && one->mtime_ns == other->mtime_ns &&
		one->rdev == other->rdev);
}

int tree_compare_paths(const char *one, const char *other)
{
	while (*one && *one == *other) {
		one++;
		other++;
	}
	if (*one == *other)
		return 0;
	/* A slash sorts before every other byte. */
	if (*one == '/' || *other == '/')
		return !*one ? -1 : !*other ? 1 : *one == '/' ? -1 : 1;
	return (unsigned char)*one < (unsigned char)*other ? -1 : 1;
}

bool tree_path_is_within(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return length == 0 || (strncmp(path, directory, length) == 0 &&
			       (path[length] == '\0' || path[length] == '/'));
}

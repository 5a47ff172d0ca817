/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"

int path_check_name(const char *name)
{
	if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    strchr(name, '/'))
		return -EINVAL;
	if (strlen(name) > LIMIT_FS_NAME_BYTES)
		return -ENAMETOOLONG;
	return 0;
}

static int path_openat2(int directory_fd, const char *name, uint64_t flags, mode_t mode)
{
	struct open_how how = {
		.flags = flags | O_NOFOLLOW | O_CLOEXEC,
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};
	int fd;

	/* openat2(2): EAGAIN when a rename elsewhere disturbed the walk; one component hardly can.
	 */
	for (int attempt = 0; attempt < 16; attempt++) {
		fd = (int)syscall(SYS_openat2, directory_fd, name, &how, sizeof(how));
		if (fd >= 0)
			return fd;
		if (errno != EAGAIN && errno != EINTR)
			break;
	}
	return errno == EXDEV ? -EACCES : -errno;
}

int path_open_name(int directory_fd, const char *name)
{
	return path_openat2(directory_fd, name, O_PATH, 0);
}

int path_create_name(int directory_fd, const char *name, int flags, mode_t mode)
{
	return path_openat2(directory_fd, name,
			    (uint64_t)flags | O_CREAT | O_EXCL | O_NOCTTY | O_NONBLOCK, mode);
}

int path_create_unnamed(int directory_fd, int flags, mode_t mode)
{
	return path_openat2(directory_fd, ".", (uint64_t)flags | O_TMPFILE, mode);
}

int path_status(int fd, struct statx *status)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, PATH_STATX_MASK, status) ? -errno
											   : 0;
}

struct path_number path_number(int fd)
{
	struct path_number number;

	snprintf(number.text, sizeof(number.text), "%d", fd);
	return number;
}

int path_reopen(int proc_fd, int fd, int flags)
{
	int opened =
		openat(proc_fd, path_number(fd).text, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return opened < 0 ? -errno : opened;
}

bool path_is_empty(int proc_fd, int directory_fd, const char *name)
{
	FD_CLEANUP int path_fd = path_open_name(directory_fd, name);
	int fd = path_fd < 0 ? -1 : path_reopen(proc_fd, path_fd, O_RDONLY | O_DIRECTORY);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	unsigned int entries = 0;

	if (!directory) {
		fd_close(&fd);
		return false;
	}
	while (entries < 3 && readdir(directory))
		entries++; /* "." and ".." are two */
	closedir(directory);
	return entries < 3;
}

/* Opens the regular file @name to read, if it is one that is small enough. fd or -errno. */
static int path_open_small_file(int proc_fd, int directory_fd, const char *name,
				struct statx *status)
{
	FD_CLEANUP int path_fd = path_open_name(directory_fd, name);
	int error = path_fd < 0 ? path_fd : path_status(path_fd, status);

	if (!error && (!S_ISREG(status->stx_mode) || status->stx_size > LIMIT_FS_COMPARE_BYTES))
		error = -EINVAL;
	return error ? error : path_reopen(proc_fd, path_fd, O_RDONLY);
}

bool path_same_file_contents(int proc_fd, int directory_fd, const char *name,
			     int other_directory_fd, const char *other_name)
{
	struct statx status, other_status;
	FD_CLEANUP int fd = path_open_small_file(proc_fd, directory_fd, name, &status);
	FD_CLEANUP int other_fd =
		path_open_small_file(proc_fd, other_directory_fd, other_name, &other_status);
	char bytes[4096], other_bytes[4096];

	if (fd < 0 || other_fd < 0 || status.stx_size != other_status.stx_size ||
	    status.stx_mode != other_status.stx_mode)
		return false;
	for (uint64_t at = 0; at < status.stx_size; at += sizeof(bytes)) {
		size_t length = (size_t)bytes_minimum(status.stx_size - at, sizeof(bytes));

		if (fd_pread_full(fd, bytes, length, (off_t)at) ||
		    fd_pread_full(other_fd, other_bytes, length, (off_t)at) ||
		    memcmp(bytes, other_bytes, length) != 0)
			return false;
	}
	return true;
}

/* Opens @inode by the name it has in @directory_fd, if that is still the same inode. */
static int path_revive(struct inode_table *table, struct inode *inode, int directory_fd)
{
	struct inode_identity identity;
	struct statx status;
	int error = inode_reserve_fd(table);
	int fd;

	if (error)
		return error;
	fd = path_open_name(directory_fd, inode->name);
	if (fd < 0) {
		inode_return_fd(table);
		return fd == -EMFILE || fd == -ENFILE ? -ENFILE : -ESTALE;
	}
	error = path_status(fd, &status);
	identity = inode_identity_of(&status);
	if (error || !inode_same_file(&identity, &inode->identity)) {
		fd_close(&fd);
		inode_return_fd(table);
		return -ESTALE;
	}
	inode_adopt_fd(table, inode, fd);
	return 0;
}

int path_inode_fd(struct inode_table *table, struct inode *inode)
{
	/*
	 * Each round opens one more directory on the way down. The chain of parents can be a circle
	 * when the host moved directories between two look-ups; the bound ends it. Opening one may
	 * close another far above, which is not needed any more once its child is open.
	 */
	while (inode->fd < 0) {
		struct inode *child = inode;
		struct inode *parent = inode_find(table, child->parent);
		unsigned int depth = 0;
		int error;

		while (parent && parent->fd < 0 && depth++ < LIMIT_FS_DEPTH) {
			child = parent;
			parent = inode_find(table, child->parent);
		}
		if (!parent || parent->fd < 0)
			return -ESTALE;
		inode_touch(table, parent);
		error = path_revive(table, child, parent->fd);
		if (error)
			return error;
	}
	inode_touch(table, inode);
	return inode->fd;
}

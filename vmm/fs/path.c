/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/review/layout.h"

/* How long a directory that was in the share is taken to be there. */
#define PATH_WITHIN_MS 100U

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

int path_look(int directory_fd, const char *name, struct statx *status)
{
	return statx(directory_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, PATH_STATX_MASK,
		     status)
		       ? -errno
		       : 0;
}

struct path_number path_number(int fd)
{
	struct path_number number;
	char digits[sizeof(number.text)];
	unsigned int rest = (unsigned int)fd, count = 0, length = 0;

	/* What printf would do, for each request that opens something. */
	do {
		digits[count++] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	while (count)
		number.text[length++] = digits[--count];
	number.text[length] = '\0';
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

bool path_is_opaque(int fd)
{
	char value;

	/* The working directory is /proc/self/fd. */
	return getxattr(path_number(fd).text, REVIEW_XATTR_OPAQUE, &value, 1) == 1 && value == 'y';
}

static int path_open_one(int directory_fd, const char *name, struct path_entry *entry)
{
	int error;

	entry->fd = path_open_name(directory_fd, name);
	if (entry->fd < 0)
		return entry->fd;
	error = path_status(entry->fd, &entry->status);
	if (error)
		fd_close(&entry->fd);
	return error;
}

/* A directory that the upper layer has: is it in the lower one as well? */
static void path_open_lower(int lower_fd, const char *name, struct path_entry *entry)
{
	struct statx status;

	if (lower_fd < 0 || !S_ISDIR(entry->status.stx_mode) || path_is_opaque(entry->fd))
		return;
	entry->lower_fd = path_open_name(lower_fd, name);
	if (entry->lower_fd < 0)
		return;
	if (path_status(entry->lower_fd, &status) || !S_ISDIR(status.stx_mode)) {
		fd_close(&entry->lower_fd);
		return;
	}
	entry->layers = INODE_MERGED;
	entry->lower = inode_number_of(&status);
}

int path_open_entry(const struct inode *directory, const char *name, struct path_entry *entry)
{
	int error;

	*entry = (struct path_entry){.fd = -1, .lower_fd = -1, .layers = directory->layers};
	error = path_open_one(directory->fd, name, entry);
	if (directory->layers == INODE_LOWER)
		return error;
	entry->layers = INODE_UPPER;
	if (error == -ENOENT && directory->layers == INODE_MERGED) {
		entry->layers = INODE_LOWER;
		return path_open_one(directory->lower_fd, name, entry);
	}
	if (error)
		return error;
	if (review_is_whiteout(entry->status.stx_mode, makedev(entry->status.stx_rdev_major,
							       entry->status.stx_rdev_minor))) {
		fd_close(&entry->fd);
		return -ENOENT;
	}
	path_open_lower(directory->lower_fd, name, entry);
	return 0;
}

void path_close_entry(struct path_entry *entry)
{
	fd_close(&entry->fd);
	fd_close(&entry->lower_fd);
}

int path_adopt_entry(struct inode_table *table, struct inode *inode, struct path_entry *entry)
{
	int error = entry->lower_fd < 0 ? 0 : inode_reserve_fd(table);

	if (error) {
		path_close_entry(entry);
		inode_return_fd(table);
		return error;
	}
	if (inode->layers != INODE_LOWER &&
	    (inode->layers != entry->layers || inode->lower.number != entry->lower.number ||
	     inode->lower.device != entry->lower.device))
		table->lower_changes(table->context, inode);
	inode_adopt_fd(table, inode, entry->fd);
	inode_adopt_lower_fd(table, inode, entry->lower_fd);
	inode->layers = entry->layers;
	inode->lower = entry->lower;
	return 0;
}

/* Opens @inode by the name it has in @directory, if that is still the same inode. */
static int path_revive(struct inode_table *table, struct inode *inode,
		       const struct inode *directory)
{
	struct inode_identity identity;
	struct path_entry entry;
	int error = inode_reserve_fd(table);

	if (error)
		return error;
	error = path_open_entry(directory, inode->name, &entry);
	if (error) {
		inode_return_fd(table);
		return error == -EMFILE || error == -ENFILE ? -ENFILE : -ESTALE;
	}
	identity = inode_identity_of(&entry.status);
	if (!inode_same_file(&identity, &inode->identity)) {
		path_close_entry(&entry);
		inode_return_fd(table);
		return -ESTALE;
	}
	return path_adopt_entry(table, inode, &entry);
}

static uint32_t path_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint32_t)((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
}

/* The kernel goes up from a directory only as long as that stays below the root of its mount
 * (path_connected in fs/namei.c), which in the jail is the share. 1: it does, 0: it does not;
 * -errno: the directory lets nobody in. */
static int path_leads_up(int fd)
{
	if (fd < 0 || faccessat(fd, "..", F_OK, 0) == 0)
		return 1;
	return errno == ENOENT ? 0 : -errno;
}

/*
 * Whether an open directory, or the one that an open file was found in, is still in the share: the
 * host may have moved it out, and its descriptor went with it. Looked at once in a while.
 */
static bool path_is_within(struct inode_table *table, struct inode *inode)
{
	struct inode *directory = inode;
	uint32_t now;
	int up, lower_up;

	if (inode->identity.type != S_IFDIR)
		directory = inode->name ? inode_find(table, inode->parent) : NULL;
	if (!directory || directory->id == FUSE_ROOT_ID)
		return true;
	now = path_now_ms();
	if (now - directory->within_ms < PATH_WITHIN_MS)
		return true;
	/* That of a file may have been closed; finding it may close the file. */
	if (directory->fd < 0 && path_inode_fd(table, directory) < 0)
		return false;
	up = path_leads_up(directory->fd);
	lower_up = path_leads_up(directory->lower_fd);
	if (up > 0 && lower_up > 0)
		directory->within_ms = now;
	return up && lower_up;
}

/* The same, having closed it if it is not, so that it will be found by its name or not at all. */
static bool path_is_open_within(struct inode_table *table, struct inode *inode)
{
	if (inode->fd >= 0 && !path_is_within(table, inode))
		inode_close_fds(table, inode);
	return inode->fd >= 0;
}

int path_inode_fd(struct inode_table *table, struct inode *inode)
{
	if (inode->fd >= 0 && !inode->name && !path_is_within(table, inode))
		return -ESTALE;
	/*
	 * Each round opens one more directory on the way down. The chain of parents can be a circle
	 * when the host moved directories between two look-ups; the bound ends it. Opening one may
	 * close another far above, which is not needed any more once its child is open.
	 */
	while (!path_is_open_within(table, inode)) {
		struct inode *child = inode;
		struct inode *parent = inode_find(table, child->parent);
		unsigned int depth = 0;
		int error;

		while (parent && !path_is_open_within(table, parent) && depth++ < LIMIT_FS_DEPTH) {
			child = parent;
			parent = inode_find(table, child->parent);
		}
		if (!parent || parent->fd < 0)
			return -ESTALE;
		inode_touch(table, parent);
		error = path_revive(table, child, parent);
		if (error)
			return error;
	}
	inode_touch(table, inode);
	return inode->fd;
}

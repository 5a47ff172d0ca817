/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/inode_set.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/root/erofs_format.h"
#include "vmm/root/erofs_xattr.h"
#include "vmm/root/host_tree.h"

#define BUFFER_BYTES (256U << 10)

struct directory_walk {
	const struct layer_target *target;
	bool all_root;
	struct inode_set links; /* files with several names: the number of the first, plus 1 */
	char **paths;           /* of these, by number */
	uint32_t path_count;
	uint32_t path_capacity;
	uint64_t mount;
	struct erofs_xattrs xattrs; /* of what is looked at */
	uint8_t buffer[BUFFER_BYTES];
	char names[XATTR_LIST_MAX];
	char path[PATH_MAX]; /* of what is looked at, "./a/b" */
};

static int explain(const struct directory_walk *walk, int error)
{
	return error ? log_errno(error, "cannot import '%s'", walk->path) : 0;
}

static int explain_change(const struct directory_walk *walk)
{
	log_error("'%s' changed while it was imported", walk->path);
	return -ESTALE;
}

/* Of an open file. What cannot be read of them is not there. */
static void gather_xattrs(struct directory_walk *walk, int fd)
{
	ssize_t length = flistxattr(fd, walk->names, sizeof(walk->names));

	walk->xattrs.length = 0;
	for (ssize_t at = 0; at < length; at += (ssize_t)strlen(walk->names + at) + 1) {
		const char *name = walk->names + at;
		ssize_t bytes;

		if (!erofs_xattr_is_kept(name))
			continue;
		bytes = fgetxattr(fd, name, walk->buffer, sizeof(walk->buffer));
		if (bytes >= 0 && erofs_xattr_add(&walk->xattrs, name, walk->buffer, (size_t)bytes))
			walk->target->counts->attributes++;
	}
}

static struct merge_attributes attributes_of(const struct directory_walk *walk,
					     const struct statx *status)
{
	return (struct merge_attributes){
		.mode = status->stx_mode & 07777,
		.uid = walk->all_root ? 0 : status->stx_uid,
		.gid = walk->all_root ? 0 : status->stx_gid,
		.mtime = status->stx_mtime.tv_sec,
		.mtime_ns = status->stx_mtime.tv_nsec,
		.xattrs = walk->xattrs.bytes,
		.xattr_bytes = walk->xattrs.length,
	};
}

/* Remembers where a file was found first. Its number, or -errno. */
static int64_t remember_path(struct directory_walk *walk)
{
	if (walk->path_count == walk->path_capacity) {
		uint32_t capacity = walk->path_capacity ? walk->path_capacity * 2 : 64;
		char **grown = reallocarray(walk->paths, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		walk->paths = grown;
		walk->path_capacity = capacity;
	}
	walk->paths[walk->path_count] = strdup(walk->path);
	if (!walk->paths[walk->path_count])
		return -ENOMEM;
	return walk->path_count++;
}

/* Whether the file was put in under another name already, of which this is one more. 1, 0 or
 * -errno. */
static int put_link(struct directory_walk *walk, const struct statx *status)
{
	const struct inode_key inode = {
		.device = makedev(status->stx_dev_major, status->stx_dev_minor),
		.number = status->stx_ino,
	};
	uint32_t first = inode_set_value(&walk->links, &inode);
	int64_t number;
	int error;

	if (first) {
		error = merge_put_link(walk->target->merge, walk->path, walk->paths[first - 1]);
		return error ? error : 1;
	}
	number = remember_path(walk);
	return number < 0 ? (int)number : inode_set_put(&walk->links, &inode, (uint32_t)number + 1);
}

static int copy_file(struct directory_walk *walk, int fd, uint64_t place, uint64_t size)
{
	uint64_t offset = 0;

	while (offset < size) {
		off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
		ssize_t count;
		int error;

		if (data < 0 && errno == ENXIO)
			return 0; /* a hole to the end */
		if (data > 0)
			offset = (uint64_t)data;
		if (offset >= size)
			return 0;
		count = pread(fd, walk->buffer, sizeof(walk->buffer), (off_t)offset);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return explain(walk, -errno);
		if (count == 0 || (uint64_t)count > size - offset)
			return explain_change(walk);
		error = contents_write(walk->target->contents, place + offset, walk->buffer,
				       (size_t)count);
		if (error)
			return error;
		offset += (uint64_t)count;
	}
	return 0;
}

static int add_file(struct directory_walk *walk, int parent_fd, const char *name,
		    const struct statx *status)
{
	FD_CLEANUP int fd = -1;
	struct merge_attributes attributes;
	struct statx opened;
	uint64_t place;
	int result = status->stx_nlink > 1 ? put_link(walk, status) : 0;

	if (result)
		return result < 0 ? explain(walk, result) : 0;
	fd = host_open(parent_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return explain(walk, fd);
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &opened) ||
	    opened.stx_ino != status->stx_ino || opened.stx_size != status->stx_size)
		return explain_change(walk);
	gather_xattrs(walk, fd);
	attributes = attributes_of(walk, status);
	result = contents_begin(walk->target->contents, status->stx_size, &place);
	result = result ? result : copy_file(walk, fd, place, status->stx_size);
	if (result)
		return result;
	return explain(walk, merge_put_file(walk->target->merge, walk->path, &attributes,
					    status->stx_size, place));
}

static int add_symlink(struct directory_walk *walk, int parent_fd, const char *name,
		       const struct statx *status)
{
	struct merge_attributes attributes = attributes_of(walk, status);
	char target[EROFS_SYMLINK_MAX + 1];
	ssize_t length = readlinkat(parent_fd, name, target, sizeof(target));

	if (length < 0)
		return explain(walk, -errno);
	if ((size_t)length == sizeof(target))
		return explain(walk, -ENAMETOOLONG);
	target[length] = '\0';
	attributes.xattr_bytes = 0;
	return explain(walk,
		       merge_put_symlink(walk->target->merge, walk->path, &attributes, target));
}

static int add_directory(struct directory_walk *walk, int fd);

static int add_name(struct directory_walk *walk, int parent_fd, const char *name)
{
	struct statx status;
	int fd, error;

	if (statx(parent_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		  STATX_BASIC_STATS | STATX_MNT_ID, &status))
		return explain(walk, -errno);
	if (status.stx_mnt_id != walk->mount) {
		log_warning("'%s' is another file system, and is left out", walk->path);
		return 0;
	}
	walk->target->counts->entries++;
	switch (status.stx_mode & S_IFMT) {
	case S_IFREG:
		return add_file(walk, parent_fd, name, &status);
	case S_IFLNK:
		return add_symlink(walk, parent_fd, name, &status);
	case S_IFDIR:
		fd = host_open(parent_fd, name, O_RDONLY | O_DIRECTORY);
		error = fd < 0 ? explain(walk, fd) : add_directory(walk, fd);
		return error;
	default:
		walk->target->counts->special++;
		return 0;
	}
}

static int add_children(struct directory_walk *walk, DIR *directory)
{
	size_t length = strlen(walk->path);
	const struct dirent *entry;
	int error = 0;

	while (!error) {
		errno = 0;
		entry = readdir(directory);
		if (!entry)
			return explain(walk, -errno);
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (snprintf(walk->path + length, sizeof(walk->path) - length, "/%s",
			     entry->d_name) >= (int)(sizeof(walk->path) - length))
			return explain(walk, -ENAMETOOLONG);
		error = add_name(walk, dirfd(directory), entry->d_name);
		walk->path[length] = '\0';
	}
	return error;
}

/* Takes over @fd. As deep as paths can be long, and as descriptors may be open. */
static int add_directory(struct directory_walk *walk, int fd)
{
	struct merge_attributes attributes;
	struct statx status;
	DIR *directory;
	int error;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &status)) {
		error = explain(walk, -errno);
		fd_close(&fd);
		return error;
	}
	gather_xattrs(walk, fd);
	attributes = attributes_of(walk, &status);
	error = explain(walk, merge_put_directory(walk->target->merge, walk->path, &attributes));
	directory = error ? NULL : fdopendir(fd);
	if (!directory) {
		error = error ? error : explain(walk, -errno);
		fd_close(&fd);
		return error;
	}
	error = add_children(walk, directory);
	closedir(directory);
	return error;
}

int directory_apply(int fd, bool all_root, const struct layer_target *target)
{
	struct directory_walk *walk = calloc(1, sizeof(*walk));
	struct statx status = {0};
	int top, error = 0;

	if (!walk)
		return log_errno(-ENOMEM, "cannot read the directory");
	walk->target = target;
	walk->all_root = all_root;
	walk->links.limit = LIMIT_IMAGE_ENTRIES;
	snprintf(walk->path, sizeof(walk->path), ".");
	top = host_open(fd, ".", O_RDONLY | O_DIRECTORY);
	if (top < 0 || statx(top, "", AT_EMPTY_PATH, STATX_MNT_ID, &status))
		error = log_errno(top < 0 ? top : -errno, "cannot read the directory");
	if (error) {
		fd_close(&top);
	} else {
		walk->mount = status.stx_mnt_id;
		merge_begin_layer(target->merge);
		error = add_directory(walk, top);
	}
	for (uint32_t i = 0; i < walk->path_count; i++)
		free(walk->paths[i]);
	free(walk->paths);
	inode_set_destroy(&walk->links);
	free(walk);
	return error;
}

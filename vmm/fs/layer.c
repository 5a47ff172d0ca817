/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/fs/layer_internal.h"
#include "vmm/fs/operation.h"

/* A change so recent may be followed by another that bears the same time: kernels count these in
 * steps of up to 10 ms. */
#define LAYER_RECENT_NS 12000000L

int layer_create(struct layer **result, int base_fd)
{
	struct layer *layer = calloc(1, sizeof(*layer));

	if (!layer)
		return -ENOMEM;
	layer->base_fd = base_fd < 0 ? -1 : fcntl(base_fd, F_DUPFD_CLOEXEC, 0);
	if (base_fd >= 0 && layer->base_fd < 0) {
		int error = -errno;

		free(layer);
		return error;
	}
	*result = layer;
	return 0;
}

void layer_destroy(struct layer *layer)
{
	if (!layer)
		return;
	fd_close(&layer->base_fd);
	free(layer);
}

int layer_lower_fd(const struct inode *directory)
{
	return directory->layers == INODE_LOWER ? directory->fd : directory->lower_fd;
}

bool layer_is_whiteout(const struct statx *status)
{
	return review_is_whiteout(status->stx_mode,
				  makedev(status->stx_rdev_major, status->stx_rdev_minor));
}

int layer_view(const struct inode *directory, const char *name, struct layer_view *view)
{
	int lower_fd = layer_lower_fd(directory);
	struct statx lower;
	int error;

	*view = (struct layer_view){0};
	if (directory->layers != INODE_LOWER) {
		error = path_look(directory->fd, name, &view->status);
		if (error && error != -ENOENT)
			return error;
		view->whiteout = !error && layer_is_whiteout(&view->status);
		view->upper = !error && !view->whiteout;
	}
	if (lower_fd >= 0) {
		error = path_look(lower_fd, name, &lower);
		if (error && error != -ENOENT)
			return error;
		view->lower = !error;
	}
	view->visible = view->upper || (view->lower && !view->whiteout);
	if (view->visible && !view->upper)
		view->status = lower;
	return 0;
}

int layer_look(const struct fs_server *server, const struct inode *directory, int directory_fd,
	       const char *name, struct statx *status)
{
	struct layer_view view;
	int error;

	if (!server->layer)
		return path_look(directory_fd, name, status);
	error = layer_view(directory, name, &view);
	if (!error && !view.visible)
		error = -ENOENT;
	*status = view.status;
	return error;
}

static struct inode_number layer_get_origin(int fd)
{
	struct inode_number origin = {0};
	unsigned long long device, number;
	char value[48];
	ssize_t length =
		getxattr(path_number(fd).text, REVIEW_XATTR_ORIGIN, value, sizeof(value) - 1);

	if (length <= 0)
		return origin;
	value[length] = '\0';
	if (sscanf(value, "%llu:%llu", &device, &number) == 2)
		origin = (struct inode_number){
			.device = (uint64_t)major(device) << 32 | minor(device),
			.number = number,
		};
	return origin;
}

void layer_read_origin(struct inode *inode, int fd)
{
	if (inode->identity.type == S_IFREG || inode->identity.type == S_IFDIR)
		inode->origin = layer_get_origin(fd);
}

static void layer_show_number(const struct inode_number *origin, struct statx *status)
{
	if (!origin->number)
		return;
	status->stx_dev_major = (uint32_t)(origin->device >> 32);
	status->stx_dev_minor = (uint32_t)origin->device;
	status->stx_ino = origin->number;
}

void layer_show(const struct inode *inode, struct statx *status)
{
	layer_show_number(&inode->origin, status);
	/* How many directories are in a merged one is not counted; 1 says so to find(1) and others.
	 */
	if (inode->layers == INODE_MERGED)
		status->stx_nlink = 1;
}

uint64_t layer_number(const struct fs_server *server, const struct inode *inode)
{
	const struct inode_number own = {inode->identity.device, inode->identity.number};
	struct statx status = {0};

	layer_show_number(inode->origin.number ? &inode->origin : &own, &status);
	return attr_inode_number(server->root_device, &status);
}

uint64_t layer_shown_number(const struct fs_server *server, int directory_fd, const char *name)
{
	FD_CLEANUP int fd = path_open_name(directory_fd, name);
	struct inode_number origin;
	struct statx status;

	if (fd < 0 || path_status(fd, &status))
		return 0;
	origin = layer_get_origin(fd);
	layer_show_number(&origin, &status);
	return attr_inode_number(server->root_device, &status);
}

char *layer_path(struct fs_server *server, const struct inode *directory, const char *name)
{
	char *at = server->layer->path + sizeof(server->layer->path) - 1;

	*at = '\0';
	for (unsigned int depth = 0; depth < LIMIT_FS_DEPTH; depth++) {
		size_t length = strlen(name);

		if ((size_t)(at - server->layer->path) < length + 1)
			return NULL;
		at -= length;
		memcpy(at, name, length);
		if (directory->id == FUSE_ROOT_ID)
			return at;
		*--at = '/';
		name = directory->name;
		directory = name ? inode_find(&server->inodes, directory->parent) : NULL;
		if (!directory)
			return NULL;
	}
	return NULL;
}

static int64_t layer_nanoseconds(const struct statx_timestamp *time)
{
	return time->tv_sec * 1000000000 + (int64_t)time->tv_nsec;
}

static bool layer_is_recent(const struct statx *status)
{
	struct timespec now;
	int64_t age;

	clock_gettime(CLOCK_REALTIME, &now);
	age = (now.tv_sec - status->stx_ctime.tv_sec) * 1000000000 + now.tv_nsec -
	      (int64_t)status->stx_ctime.tv_nsec;
	return age >= 0 && age < LAYER_RECENT_NS;
}

int layer_settle(int fd, struct statx *status)
{
	const struct timespec pause = {.tv_nsec = LAYER_RECENT_NS};
	int error = path_status(fd, status);

	if (error || !layer_is_recent(status))
		return error;
	nanosleep(&pause, NULL);
	return path_status(fd, status);
}

int layer_note_base(struct fs_server *server, const char *path, const struct statx *status)
{
	struct layer *layer = server->layer;
	const struct review_base base = {
		.mode = status->stx_mode,
		.inode = status->stx_ino,
		.size = status->stx_size,
		.mtime_ns = layer_nanoseconds(&status->stx_mtime),
		.ctime_ns = layer_nanoseconds(&status->stx_ctime),
	};
	ssize_t written, length = review_base_format(path, &base, layer->line, sizeof(layer->line));
	struct stat file;

	if (length < 0)
		return length == -EINVAL ? -EPERM : (int)length;
	if (layer->base_fd < 0)
		return 0;
	written = write(layer->base_fd, layer->line, (size_t)length);
	if (written == length)
		return 0;
	if (written < 0)
		return -errno;
	/* A line that is not whole would spoil the next one. */
	if (fstat(layer->base_fd, &file) == 0 &&
	    ftruncate(layer->base_fd, file.st_size - written) == 0)
		return -ENOSPC;
	return -EIO;
}

int layer_hold(const struct fs_server *server, int fd, struct layer_hold *hold)
{
	int error = path_status(fd, &hold->status);

	hold->fd = fd;
	if (error || (hold->status.stx_mode & S_IRWXU) == S_IRWXU)
		return error;
	return fchmodat(server->proc_fd, path_number(fd).text,
			(hold->status.stx_mode & 07777) | S_IRWXU, 0)
		       ? -errno
		       : 0;
}

int layer_release(const struct fs_server *server, const struct layer_hold *hold)
{
	const struct timespec times[2] = {
		{hold->status.stx_atime.tv_sec, hold->status.stx_atime.tv_nsec},
		{hold->status.stx_mtime.tv_sec, hold->status.stx_mtime.tv_nsec},
	};

	int error = 0;

	if (utimensat(hold->fd, "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		error = -errno;
	if ((hold->status.stx_mode & S_IRWXU) != S_IRWXU &&
	    fchmodat(server->proc_fd, path_number(hold->fd).text, hold->status.stx_mode & 07777, 0))
		error = -errno;
	return error;
}

int layer_set_attribute(const struct fs_server *server, int fd, const char *name, const char *value)
{
	struct layer_hold hold;
	int error = layer_hold(server, fd, &hold);

	if (error)
		return error;
	if (setxattr(path_number(fd).text, name, value, strlen(value), 0))
		error = -errno;
	layer_release(server, &hold);
	return error;
}

int layer_may_write(const struct inode *directory)
{
	/* A lower layer on a file system that is mounted read-only is as good as any. */
	return faccessat(directory->fd, "", W_OK | X_OK, AT_EACCESS | AT_EMPTY_PATH) &&
			       errno != EROFS
		       ? -errno
		       : 0;
}

void layer_detach(struct fs_server *server, struct inode *directory)
{
	if (directory->layers != INODE_MERGED)
		return;
	coherence_forget(server, directory);
	inode_adopt_lower_fd(&server->inodes, directory, -1);
	directory->layers = INODE_UPPER;
	directory->lower = (struct inode_number){0};
}

int layer_make_opaque(struct fs_server *server, const struct path_entry *entry)
{
	struct inode_identity identity = inode_identity_of(&entry->status);
	struct inode *inode = inode_find_identity(&server->inodes, &identity);
	int error = layer_set_attribute(server, entry->fd, REVIEW_XATTR_OPAQUE, "y");

	if (!error && inode)
		layer_detach(server, inode);
	return error;
}

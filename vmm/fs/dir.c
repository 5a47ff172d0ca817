/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on open directories. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/fs/dirent.h"
#include "vmm/fs/layer.h"
#include "vmm/fs/operation.h"

int fs_opendir(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_open_out out = {0};
	struct fuse_open_in in;
	struct handle *handle;
	struct inode *inode;
	int error, result;

	wire_take(&reader, &in, sizeof(in));
	if ((in.flags & O_ACCMODE) != O_RDONLY)
		return -EISDIR;
	inode = inode_find(&server->inodes, request->header.nodeid);
	if (!inode)
		return -ESTALE;
	coherence_watch(server, inode);
	error = fs_open_inode(server, inode, HANDLE_DIRECTORY, O_RDONLY | O_DIRECTORY, &handle);
	if (error)
		return error;
	out.fh = handle->id;
	handle->layers = inode->layers;
	if (coherence_caches_listing(server, inode)) {
		out.open_flags = FOPEN_CACHE_DIR | FOPEN_KEEP_CACHE;
		/* Where case does not matter, names that are not listed can be found. */
		if (!guard_may_fold(server, inode))
			out.open_flags |= FOPEN_DIR_WHOLE;
	}
	result = wire_reply(request, &out, sizeof(out));
	if (result < 0)
		fs_close_handle(server, handle);
	return result;
}

int fs_releasedir(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_release_in in;
	struct handle *handle;

	wire_take(&reader, &in, sizeof(in));
	handle = handle_find(&server->handles, in.fh, HANDLE_DIRECTORY);
	if (!handle)
		return -EBADF;
	fs_close_handle(server, handle);
	return 0;
}

int fs_fsyncdir(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_fsync_in in;
	struct handle *handle;

	wire_take(&reader, &in, sizeof(in));
	handle = handle_find(&server->handles, in.fh, HANDLE_DIRECTORY);
	if (!handle)
		return -EBADF;
	if (in.fsync_flags & FUSE_FSYNC_FDATASYNC)
		return fdatasync(handle->fd) ? -errno : 0;
	return fsync(handle->fd) ? -errno : 0;
}

/* A listing of a share under review begins: with the layers that the directory has by now. */
static int dir_begin_layers(struct fs_server *server, struct handle *handle,
			    struct inode *directory, struct directory_buffer *buffer)
{
	struct handle_table *handles = &server->handles;
	struct layer_listing *listing = NULL;
	int fd = path_inode_fd(&server->inodes, directory);
	size_t room;
	int error = 0;

	handle_set_listing(handles, handle, NULL);
	/* A directory that was removed goes on as it was. */
	if (fd == -ESTALE)
		return 0;
	if (fd >= 0 && handle->layers != directory->layers) {
		FD_CLEANUP int opened = path_reopen(server->proc_fd, fd, O_RDONLY | O_DIRECTORY);

		if (opened < 0)
			return opened;
		if (dup3(opened, handle->fd, O_CLOEXEC) < 0)
			return -errno;
		handle->layers = directory->layers;
		buffer->start = buffer->end = 0;
		handle->position = 0;
	}
	if (fd < 0 || directory->layers != INODE_MERGED)
		return fd < 0 ? fd : 0;
	room = bytes_minimum(LIMIT_LAYER_LISTING_BYTES,
			     LIMIT_LAYER_LISTINGS_BYTES - handles->listing_bytes);
	error = layer_list(server, directory, room, &listing);
	if (error)
		return error;
	handle_set_listing(handles, handle, listing);
	handle->position = 0;
	return 0;
}

/* Makes the guest's position the one where the next entry comes from. */
static int dir_seek(struct fs_server *server, struct handle *handle, struct inode *directory,
		    struct directory_buffer *buffer, uint64_t position)
{
	int error = server->layer && (position == 0 || !handle->begun)
			    ? dir_begin_layers(server, handle, directory, buffer)
			    : 0;

	handle->begun = handle->begun || !error;
	if (error || (int64_t)position == handle->position)
		return error;
	if (handle->listing) {
		handle->position = (int64_t)layer_listing_seek(handle->listing, position);
		return 0;
	}
	/* A position that the directory never gave out is answered by its file system. */
	if (lseek(handle->fd, (off_t)position, SEEK_SET) < 0)
		return -errno;
	buffer->start = buffer->end = 0;
	handle->position = (int64_t)position;
	return 0;
}

/* The entry at the position, or NULL with *@error 0 at the end. */
static const struct linux_dirent64 *dir_peek(struct handle *handle, struct directory_buffer *buffer,
					     int *error)
{
	*error = 0;
	if (handle->listing)
		return layer_listing_at(handle->listing, (size_t)handle->position);
	if (buffer->start >= buffer->end) {
		long length =
			syscall(SYS_getdents64, handle->fd, buffer->bytes, sizeof(buffer->bytes));

		if (length <= 0) {
			/* ENOENT: the directory was removed, and so is empty */
			*error = length < 0 && errno != ENOENT ? -errno : 0;
			return NULL;
		}
		buffer->start = 0;
		buffer->end = (uint32_t)length;
	}
	return (const struct linux_dirent64 *)(const void *)(buffer->bytes + buffer->start);
}

/* Whether an entry that comes straight from one layer stands for something: not a whiteout, nor, in
 * a directory that was copied up after the listing began, what has been removed since. */
static bool dir_shows_layer(struct fs_server *server, struct inode *directory,
			    const struct handle *handle, const struct linux_dirent64 *source)
{
	struct layer_view view;
	struct statx status;

	if (handle->listing)
		return true;
	if (handle->layers == directory->layers && directory->layers == INODE_LOWER)
		return true;
	if (handle->layers == directory->layers)
		return (source->d_type != DT_CHR && source->d_type != DT_UNKNOWN) ||
		       path_look(handle->fd, source->d_name, &status) ||
		       !layer_is_whiteout(&status);
	return path_inode_fd(&server->inodes, directory) < 0 ||
	       layer_view(directory, source->d_name, &view) || view.visible;
}

/* Whether the entry is listed at all. */
static bool dir_shows(struct fs_server *server, struct inode *directory,
		      const struct handle *handle, const struct linux_dirent64 *source)
{
	uint64_t device = directory->layers == INODE_MERGED ? directory->lower.device
							    : directory->identity.device;

	if (dirent_is_dot(source->d_name))
		return true;
	if (guard_hides(server, directory, source->d_name) ||
	    guard_hides_number(server, device, source->d_ino))
		return false;
	return !server->layer || dir_shows_layer(server, directory, handle, source);
}

/* The number of an entry that comes straight from the upper layer. */
static uint64_t dir_layer_number(struct fs_server *server, const struct inode *directory,
				 const struct handle *handle, const struct linux_dirent64 *source)
{
	const struct inode *parent = inode_find(&server->inodes, directory->parent);

	if (handle->listing || handle->layers == INODE_LOWER)
		return source->d_ino;
	if (strcmp(source->d_name, ".") == 0)
		return layer_number(server, directory);
	if (strcmp(source->d_name, "..") == 0)
		return layer_number(server, parent ? parent : directory);
	return layer_shown_number(server, handle->fd, source->d_name);
}

/* Looks the entry up for READDIRPLUS. What cannot be looked up is listed without attributes; "." is
 * no entry, and says for how long it holds that others are not there. */
static void dir_fill_plus(struct fs_server *server, struct inode *directory,
			  const struct linux_dirent64 *source, struct fuse_direntplus *plus)
{
	struct statx status;
	struct inode *inode;

	if (strcmp(source->d_name, ".") == 0)
		plus->entry_out.entry_valid =
			coherence_validity(server, directory, NULL, NULL).entry;
	if (dirent_is_dot(source->d_name) ||
	    fs_find_entry(server, directory, source->d_name, &inode, &status))
		return;
	inode->lookups++;
	fs_fill_entry(server, inode, &status, &plus->entry_out);
	plus->dirent.ino = plus->entry_out.attr.ino;
	plus->dirent.type = (uint32_t)IFTODT(status.stx_mode);
}

/* Puts one entry at @out, which has room for it. Returns its size. */
static size_t dir_emit(struct fs_server *server, struct inode *directory,
		       const struct handle *handle, const struct linux_dirent64 *source, bool plus,
		       uint8_t *out)
{
	size_t length = strlen(source->d_name);
	size_t head = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
	size_t size = FUSE_DIRENT_ALIGN(head + length);
	struct fuse_direntplus entry = {
		.dirent =
			{
				.ino = source->d_ino,
				.off = (uint64_t)source->d_off,
				.namelen = (uint32_t)length,
				.type = source->d_type,
			},
	};

	/* The number of what lies above the share is not the guest's to know. */
	if (handle->node_id == FUSE_ROOT_ID && dirent_is_dot(source->d_name))
		entry.dirent.ino = layer_number(server, directory);
	else if (server->layer)
		entry.dirent.ino = dir_layer_number(server, directory, handle, source);
	if (plus)
		dir_fill_plus(server, directory, source, &entry);
	memset(out, 0, size);
	if (plus)
		memcpy(out, &entry, head);
	else
		memcpy(out, &entry.dirent, head);
	memcpy(out + head, source->d_name, length);
	return size;
}

static int dir_read(struct fs_server *server, const struct wire_request *request, bool plus)
{
	struct wire_reader reader = wire_arguments(request);
	const struct linux_dirent64 *source;
	struct directory_buffer *buffer;
	struct inode *directory;
	struct fuse_read_in in;
	struct handle *handle;
	size_t limit, used = 0;
	int error;

	wire_take(&reader, &in, sizeof(in));
	handle = handle_find(&server->handles, in.fh, HANDLE_DIRECTORY);
	directory = handle ? inode_find(&server->inodes, handle->node_id) : NULL;
	if (!directory)
		return -EBADF;
	buffer = handle_buffer(&server->handles, handle);
	if (!buffer)
		return -ENOMEM;
	error = dir_seek(server, handle, directory, buffer, in.offset);
	if (error)
		return error;
	limit = bytes_minimum(bytes_minimum(in.size, request->reply_capacity),
			      sizeof(server->scratch));
	while ((source = dir_peek(handle, buffer, &error)) != NULL) {
		size_t head = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
		bool shown = dir_shows(server, directory, handle, source);

		if (shown && FUSE_DIRENT_ALIGN(head + strlen(source->d_name)) > limit - used) {
			error = -EINVAL;
			break;
		}
		if (shown)
			used += dir_emit(server, directory, handle, source, plus,
					 server->scratch + used);
		handle->position = source->d_off;
		if (!handle->listing)
			buffer->start += source->d_reclen;
	}
	/* Once entries are out, and lookups counted, they must reach the guest. */
	return used || !error ? wire_reply(request, server->scratch, used) : error;
}

int fs_readdir(struct fs_server *server, const struct wire_request *request)
{
	return dir_read(server, request, false);
}

int fs_readdirplus(struct fs_server *server, const struct wire_request *request)
{
	return dir_read(server, request, true);
}

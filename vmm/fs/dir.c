/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on open directories. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/fs/operation.h"

/* getdents64(2); the entry's name follows and ends with a NUL. */
struct linux_dirent64 {
	uint64_t d_ino;
	int64_t d_off;
	uint16_t d_reclen;
	uint8_t d_type;
	char d_name[];
};

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
	if (coherence_caches_listing(server, inode))
		out.open_flags = FOPEN_CACHE_DIR | FOPEN_KEEP_CACHE;
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

/* Makes the guest's position the one where the next entry comes from. */
static int dir_seek(struct handle *handle, struct directory_buffer *buffer, uint64_t position)
{
	if ((int64_t)position == handle->position)
		return 0;
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

static bool dir_is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Whether the entry is listed at all. */
static bool dir_shows(struct fs_server *server, const struct inode *directory,
		      const struct linux_dirent64 *source)
{
	return dir_is_dot(source->d_name) ||
	       !(guard_hides(server, directory, source->d_name) ||
		 guard_hides_number(server, directory->identity.device, source->d_ino));
}

/* Looks the entry up for READDIRPLUS. What cannot be looked up is listed without attributes. */
static void dir_fill_plus(struct fs_server *server, struct inode *directory,
			  const struct linux_dirent64 *source, struct fuse_direntplus *plus)
{
	struct statx status;
	struct inode *inode;

	if (dir_is_dot(source->d_name) ||
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
	if (handle->node_id == FUSE_ROOT_ID && dir_is_dot(source->d_name))
		entry.dirent.ino = inode_find(&server->inodes, FUSE_ROOT_ID)->identity.number;
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
	error = dir_seek(handle, buffer, in.offset);
	if (error)
		return error;
	limit = bytes_minimum(bytes_minimum(in.size, request->reply_capacity),
			      sizeof(server->scratch));
	while ((source = dir_peek(handle, buffer, &error)) != NULL) {
		size_t head = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
		bool shown = dir_shows(server, directory, source);

		if (shown && FUSE_DIRENT_ALIGN(head + strlen(source->d_name)) > limit - used) {
			error = -EINVAL;
			break;
		}
		if (shown)
			used += dir_emit(server, directory, handle, source, plus,
					 server->scratch + used);
		handle->position = source->d_off;
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

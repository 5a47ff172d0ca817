/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on open files. Data goes straight between the file and the guest's pages. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/iovec.h"
#include "vmm/fs/operation.h"

/* Descriptors that handles must leave to inodes, without which no name can be found. */
#define DATA_FD_RESERVE (LIMIT_FS_FD_MINIMUM / 2)

/* A change time this old cannot be that of a change yet to come (FAT counts in steps of 2 s). */
#define DATA_SETTLED_NS 2500000000LL

#define DATA_PAGE_SIZE 4096U

/*
 * O_APPEND is left to each write, which carries the flag as fcntl(2) set it last and knows whether
 * it comes from the page cache. O_SYNC is followed by FSYNC in the guest; O_DIRECT would ask
 * alignment of guest pages that nobody promised; the rest means nothing between open and close.
 */
int fs_open_flags(const struct fs_server *server, uint32_t guest_flags)
{
	int mode = (int)(guest_flags & O_ACCMODE);

	if (mode == O_ACCMODE)
		return -EINVAL;
	if (server->read_only && (mode != O_RDONLY || (guest_flags & O_TRUNC)))
		return -EROFS;
	/* With a write-back cache the guest reads what it will write a part of. */
	if (server->coherence.cache == FS_CACHE_EXCLUSIVE && mode == O_WRONLY)
		mode = O_RDWR;
	return mode | (int)(guest_flags & O_TRUNC);
}

int fs_add_handle(struct fs_server *server, enum handle_type type, int fd, uint64_t node_id,
		  struct handle **handle)
{
	int error = -ENFILE;

	if (server->handles.open_count + DATA_FD_RESERVE < server->inodes.fd_limit)
		error = handle_add(&server->handles, type, fd, node_id, handle);
	if (error) {
		fd_close(&fd);
		inode_return_fd(&server->inodes);
	}
	return error;
}

int fs_open_inode(struct fs_server *server, struct inode *inode, enum handle_type type, int flags,
		  struct handle **handle)
{
	int error, fd, path_fd;

	/* Only these two kinds are ever opened; an open device or FIFO could act on the host. */
	if (type == HANDLE_FILE && inode->identity.type != S_IFREG)
		return inode->identity.type == S_IFDIR   ? -EISDIR
		       : inode->identity.type == S_IFLNK ? -ELOOP
							 : -ENXIO;
	if (type == HANDLE_DIRECTORY && inode->identity.type != S_IFDIR)
		return -ENOTDIR;
	/* Whoever wants to write has had it copied up. */
	if (server->layer && inode->layers == INODE_LOWER &&
	    (flags & (O_ACCMODE | O_TRUNC)) != O_RDONLY)
		return -EROFS;
	path_fd = path_inode_fd(&server->inodes, inode);
	if (path_fd < 0)
		return path_fd;
	error = inode_reserve_fd(&server->inodes);
	if (error)
		return error;
	fd = path_reopen(server->proc_fd, path_fd, flags);
	if (fd < 0) {
		inode_return_fd(&server->inodes);
		return fd;
	}
	return fs_add_handle(server, type, fd, inode->id, handle);
}

void fs_close_handle(struct fs_server *server, struct handle *handle)
{
	handle_remove(&server->handles, handle);
	inode_return_fd(&server->inodes);
}

/*
 * Whether the pages that the guest may have cached of this file are still right: nothing changed
 * since it was opened last, and the change before that was old enough for any later one to have
 * moved the change time. Notes the state for the next time.
 */
static bool data_cache_valid(struct inode *inode, const struct statx *status)
{
	struct inode_version version = {
		.change_ns =
			status->stx_ctime.tv_sec * 1000000000 + (int64_t)status->stx_ctime.tv_nsec,
		.size = status->stx_size,
	};
	struct timespec now;
	bool valid;

	clock_gettime(CLOCK_REALTIME, &now);
	version.settled =
		now.tv_sec * 1000000000 + now.tv_nsec - version.change_ns > DATA_SETTLED_NS;
	valid = inode->version.settled && inode->version.change_ns == version.change_ns &&
		inode->version.size == version.size;
	inode->version = version;
	return valid;
}

/* How the guest may cache the data of the file that was opened as @fd. 0 or -errno. */
static int data_open_flags(struct fs_server *server, struct inode *inode, int fd, uint32_t *flags)
{
	struct statx status;
	int error;

	*flags = fs_cache_flags(server);
	if (server->coherence.cache != FS_CACHE_SHARED)
		return 0;
	error = path_status(fd, &status);
	if (error)
		return error;
	if (coherence_is_stale(server, inode, &status))
		*flags |= FOPEN_INVAL_ATTR;
	else if (data_cache_valid(inode, &status) || coherence_covers(server, inode, &status))
		*flags |= FOPEN_KEEP_CACHE;
	return 0;
}

uint32_t fs_cache_flags(const struct fs_server *server)
{
	switch (server->coherence.cache) {
	case FS_CACHE_EXCLUSIVE:
		return FOPEN_KEEP_CACHE;
	case FS_CACHE_NONE:
		return FOPEN_DIRECT_IO;
	case FS_CACHE_SHARED:
		break;
	}
	return 0;
}

int fs_open(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_open_out out = {0};
	struct fuse_open_in in;
	struct handle *handle;
	struct inode *inode;
	int error, flags, result;

	wire_take(&reader, &in, sizeof(in));
	flags = fs_open_flags(server, in.flags);
	if (flags < 0)
		return flags;
	inode = inode_find(&server->inodes, request->header.nodeid);
	if (!inode)
		return -ESTALE;
	error = flags == O_RDONLY ? 0 : fs_prepare_change(server, inode, true);
	if (!error)
		error = fs_open_inode(server, inode, HANDLE_FILE, flags, &handle);
	if (error)
		return error;
	out.fh = handle->id;
	result = data_open_flags(server, inode, handle->fd, &out.open_flags);
	if (!result)
		result = wire_reply(request, &out, sizeof(out));
	if (result < 0)
		fs_close_handle(server, handle);
	return result;
}

int fs_release(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_release_in in;
	struct handle *handle;

	wire_take(&reader, &in, sizeof(in));
	handle = handle_find(&server->handles, in.fh, HANDLE_FILE);
	if (!handle)
		return -EBADF;
	fs_close_handle(server, handle);
	return 0;
}

int fs_read(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct iovec segments[LIMIT_CHAIN_SEGMENTS];
	struct iovec *vector = segments;
	struct fuse_read_in in;
	struct handle *handle;
	size_t done = 0;
	int count;

	wire_take(&reader, &in, sizeof(in));
	handle = handle_find(&server->handles, in.fh, HANDLE_FILE);
	if (!handle)
		return -EBADF;
	if (in.size > LIMIT_FS_IO_BYTES || in.offset > INT64_MAX - LIMIT_FS_IO_BYTES)
		return -EINVAL;
	if (in.size == 0)
		return 0;
	count = wire_payload_iovec(request, in.size, segments, LIMIT_CHAIN_SEGMENTS);
	if (count < 0)
		return count;
	/* Less than asked for means the end of the file to the guest. When a read stops at a page
	 * boundary it may have been an error of the device instead: ask again. */
	do {
		ssize_t length = preadv(handle->fd, vector, count, (off_t)(in.offset + done));

		if (length < 0)
			return -errno;
		if (length == 0)
			break;
		done += (size_t)length;
		count = (int)iovec_advance(&vector, (unsigned int)count, (size_t)length);
	} while (done < in.size && (in.offset + done) % DATA_PAGE_SIZE == 0);
	return (int)done;
}

int fs_write(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct iovec segments[LIMIT_CHAIN_SEGMENTS];
	struct fuse_write_out out = {0};
	struct iovec *vector = segments;
	struct fuse_write_in in;
	struct handle *handle;
	int checked, count, flags;

	wire_take(&reader, &in, sizeof(in));
	handle = handle_find(&server->handles, in.fh, HANDLE_FILE);
	if (!handle)
		return -EBADF;
	if (in.size != request->data_size || in.size > LIMIT_FS_IO_BYTES ||
	    in.offset > INT64_MAX - LIMIT_FS_IO_BYTES)
		return -EINVAL;
	count = in.size ? wire_data_iovec(request, in.size, segments, LIMIT_CHAIN_SEGMENTS) : 0;
	if (count < 0)
		return count;
	coherence_changed_by_guest(server, handle->node_id);
	/* Dirty pages of a mapping go where they belong, also when the file is open to append. */
	flags = (in.flags & O_APPEND) && !(in.write_flags & FUSE_WRITE_CACHE) ? RWF_APPEND : 0;
	checked = guard_write(server, handle, flags ? -1 : (off_t)in.offset, vector, count);
	if (checked < 0)
		return checked;
	if (checked) {
		out.size = (uint32_t)checked;
		return wire_reply(request, &out, sizeof(out));
	}
	while (out.size < in.size) {
		ssize_t length =
			pwritev2(handle->fd, vector, count, (off_t)(in.offset + out.size), flags);

		if (length < 0 && out.size == 0)
			return -errno;
		if (length <= 0)
			break;
		out.size += (uint32_t)length;
		count = (int)iovec_advance(&vector, (unsigned int)count, (size_t)length);
	}
	return wire_reply(request, &out, sizeof(out));
}

int fs_fsync(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_fsync_in in;
	struct handle *handle;

	wire_take(&reader, &in, sizeof(in));
	handle = handle_find(&server->handles, in.fh, HANDLE_FILE);
	if (!handle)
		return -EBADF;
	if (in.fsync_flags & FUSE_FSYNC_FDATASYNC)
		return fdatasync(handle->fd) ? -errno : 0;
	return fsync(handle->fd) ? -errno : 0;
}

int fs_fallocate(struct fs_server *server, const struct wire_request *request)
{
	const uint32_t allowed = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE |
				 FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE |
				 FALLOC_FL_UNSHARE_RANGE;
	struct wire_reader reader = wire_arguments(request);
	struct fuse_fallocate_in in;
	struct handle *handle;
	int error;

	wire_take(&reader, &in, sizeof(in));
	handle = handle_find(&server->handles, in.fh, HANDLE_FILE);
	if (!handle)
		return -EBADF;
	if (in.mode & ~allowed)
		return -EOPNOTSUPP;
	if (in.offset > INT64_MAX || in.length > INT64_MAX)
		return -EINVAL;
	error = guard_rewrite(server, handle);
	if (error)
		return error == -EXDEV ? -EOPNOTSUPP : error;
	coherence_changed_by_guest(server, handle->node_id);
	return fallocate(handle->fd, (int)in.mode, (off_t)in.offset, (off_t)in.length) ? -errno : 0;
}

int fs_lseek(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_lseek_out out = {0};
	struct fuse_lseek_in in;
	struct handle *handle;
	off_t offset;

	wire_take(&reader, &in, sizeof(in));
	handle = handle_find(&server->handles, in.fh, HANDLE_FILE);
	if (!handle)
		return -EBADF;
	/* The guest keeps file positions itself; only the map of holes is ours to know. */
	if (in.whence != SEEK_DATA && in.whence != SEEK_HOLE)
		return -EINVAL;
	if (in.offset > INT64_MAX)
		return -ENXIO; /* as lseek(2) answers negative ones here */
	offset = lseek(handle->fd, (off_t)in.offset, (int)in.whence);
	if (offset < 0)
		return -errno;
	out.offset = (uint64_t)offset;
	return wire_reply(request, &out, sizeof(out));
}

int fs_copy_file_range(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_copy_file_range_in in;
	struct fuse_write_out out = {0};
	struct handle *from, *to;
	off_t from_offset, to_offset;
	ssize_t copied;
	int error;

	wire_take(&reader, &in, sizeof(in));
	from = handle_find(&server->handles, in.fh_in, HANDLE_FILE);
	to = handle_find(&server->handles, in.fh_out, HANDLE_FILE);
	if (!from || !to)
		return -EBADF;
	if (in.flags || in.off_in > INT64_MAX || in.off_out > INT64_MAX)
		return -EINVAL;
	error = guard_rewrite(server, to); /* EXDEV: the guest's kernel reads and writes then */
	if (error)
		return error;
	coherence_changed_by_guest(server, to->node_id);
	from_offset = (off_t)in.off_in;
	to_offset = (off_t)in.off_out;
	copied = copy_file_range(from->fd, &from_offset, to->fd, &to_offset,
				 bytes_minimum(in.len, LIMIT_FS_COPY_BYTES), 0);
	if (copied < 0)
		return -errno;
	out.size = (uint32_t)copied;
	return wire_reply(request, &out, sizeof(out));
}

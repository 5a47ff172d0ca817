/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on the session and the file system as a whole. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/fs/operation.h"

/* The oldest minor version whose structures are those used here (MAX_PAGES came with it). */
#define SESSION_MINOR_MINIMUM 28U

/* Background requests in the guest before it throttles: what a queue of 1024 can hold of them. */
#define SESSION_MAX_BACKGROUND 64U

/*
 * What is taken of the guest's offer. Left out on purpose: POSIX_LOCKS and FLOCK_LOCKS (locks stay
 * between the guest's processes, where they are right without a message), DONT_MASK (the guest
 * applies its umask; ours is 0), POSIX_ACL, SECURITY_CTX and SETXATTR_EXT (no such attribute
 * reaches the host), WRITEBACK_CACHE (the host would see writes late), NO_OPEN(DIR)_SUPPORT
 * (handles carry the access mode and the position of listings), SUBMOUNTS, READDIRPLUS_AUTO (which
 * lists the rest of a directory without attributes, and each name is then looked up).
 * A symlink's target never changes during an inode's life, so CACHE_SYMLINKS is safe.
 */
#define SESSION_FLAGS                                                               \
	(FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_DO_READDIRPLUS | \
	 FUSE_PARALLEL_DIROPS | FUSE_ATOMIC_O_TRUNC | FUSE_AUTO_INVAL_DATA |        \
	 FUSE_HANDLE_KILLPRIV_V2 | FUSE_ASYNC_DIO | FUSE_CACHE_SYMLINKS | FUSE_INIT_EXT)

static uint32_t session_flags(const struct fs_server *server)
{
	/* The host does not look while the run lasts, so it need not see writes at once. */
	if (server->coherence.cache == FS_CACHE_EXCLUSIVE)
		return SESSION_FLAGS | FUSE_WRITEBACK_CACHE;
	return SESSION_FLAGS;
}

int fs_init(struct fs_server *server, const struct wire_request *request)
{
	/* The flags end the structure of 7.28; flags2 came with 7.36. */
	const size_t basic_size = offsetof(struct fuse_init_in, flags) + sizeof(uint32_t);
	struct wire_reader reader = wire_arguments(request);
	struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION};
	struct fuse_init_in in = {0};

	if (reader.left < basic_size)
		return -EINVAL;
	wire_take(&reader, &in, bytes_minimum(reader.left, sizeof(in)));
	if (fs_server_finish_scan(server)) {
		log_error("the share could not be looked through for all names of hidden files");
		return -ENFILE;
	}
	fs_server_reset(server);

	out.minor = FUSE_KERNEL_MINOR_VERSION;
	/* A newer major: say ours, and the guest starts again with that. */
	if (in.major > FUSE_KERNEL_VERSION)
		return wire_reply(request, &out, sizeof(out));
	if (in.major < FUSE_KERNEL_VERSION || in.minor < SESSION_MINOR_MINIMUM)
		return -EPROTO;
	if (in.minor < out.minor)
		out.minor = in.minor;

	out.flags = in.flags & session_flags(server);
	if (in.flags & out.flags & FUSE_INIT_EXT && server->coherence.cache == FS_CACHE_NONE)
		out.flags2 = in.flags2 & (uint32_t)(FUSE_DIRECT_IO_ALLOW_MMAP >> 32);
	out.max_readahead = in.max_readahead;
	out.max_background = SESSION_MAX_BACKGROUND;
	out.congestion_threshold = SESSION_MAX_BACKGROUND * 3 / 4;
	out.max_write = LIMIT_FS_IO_BYTES;
	out.max_pages = LIMIT_FS_REQUEST_PAGES;
	out.time_gran = 1;
	server->initialized = true;
	return wire_reply(request, &out, sizeof(out));
}

int fs_destroy(struct fs_server *server, const struct wire_request *request)
{
	(void)request;
	fs_server_reset(server);
	return 0;
}

/* Nothing here waits for ever, so there is nothing to interrupt. */
int fs_interrupt(struct fs_server *server, const struct wire_request *request)
{
	(void)server;
	(void)request;
	return 0;
}

static void session_forget(struct fs_server *server, uint64_t node_id, uint64_t count)
{
	struct inode *inode = inode_find(&server->inodes, node_id);

	if (!inode || (node_id != FUSE_ROOT_ID && count > inode->lookups))
		server->counters.invalid++;
	if (inode)
		inode_forget(&server->inodes, inode, count);
}

int fs_forget(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_forget_in in;

	wire_take(&reader, &in, sizeof(in));
	session_forget(server, request->header.nodeid, in.nlookup);
	return 0;
}

int fs_batch_forget(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_batch_forget_in in;
	struct fuse_forget_one one;

	wire_take(&reader, &in, sizeof(in));
	for (uint32_t i = 0; i < in.count; i++) {
		if (wire_take(&reader, &one, sizeof(one)))
			return -EINVAL;
		session_forget(server, one.nodeid, one.nlookup);
	}
	return wire_at_end(&reader) ? 0 : -EINVAL;
}

int fs_statfs(struct fs_server *server, const struct wire_request *request)
{
	struct fuse_statfs_out out = {0};
	struct statfs status;

	if (fstatfs(server->root_fd, &status))
		return -errno;
	out.st.blocks = status.f_blocks;
	out.st.bfree = status.f_bfree;
	out.st.bavail = status.f_bavail;
	out.st.files = status.f_files;
	out.st.ffree = status.f_ffree;
	out.st.bsize = (uint32_t)status.f_bsize;
	out.st.frsize = (uint32_t)status.f_frsize;
	out.st.namelen = LIMIT_FS_NAME_BYTES;
	return wire_reply(request, &out, sizeof(out));
}

int fs_syncfs(struct fs_server *server, const struct wire_request *request)
{
	FD_CLEANUP int fd = path_reopen(server->proc_fd, server->root_fd, O_RDONLY | O_DIRECTORY);

	(void)request;
	if (fd < 0)
		return fd;
	return syncfs(fd) ? -errno : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on attributes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/fs/layer.h"
#include "vmm/fs/operation.h"

/* For GETATTR and STATX: the status of a node, or of the open file that the guest names in its
 * stead, and how long it holds. 0 or -errno. */
static int meta_status(struct fs_server *server, uint64_t node_id, bool has_handle,
		       uint64_t handle_id, struct inode **inode, struct statx *status,
		       struct validity *validity)
{
	struct handle *handle =
		has_handle ? handle_find(&server->handles, handle_id, HANDLE_FILE) : NULL;
	int error, fd;

	*inode = inode_find(&server->inodes, node_id);
	if (has_handle && !handle)
		return -EBADF;
	if (!*inode)
		return -ESTALE;
	fd = handle ? handle->fd : path_inode_fd(&server->inodes, *inode);
	error = fd < 0 ? fd : path_status(fd, status);
	if (error)
		return error;
	*validity = coherence_validity(server, NULL, *inode, status);
	return 0;
}

int fs_getattr(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_attr_out out = {0};
	struct fuse_getattr_in in;
	struct validity validity;
	struct statx status;
	struct inode *inode;
	int error;

	wire_take(&reader, &in, sizeof(in));
	error = meta_status(server, request->header.nodeid, in.getattr_flags & FUSE_GETATTR_FH,
			    in.fh, &inode, &status, &validity);
	if (error)
		return error;
	out.attr_valid = validity.attributes;
	fs_fill_attr(server, inode, &status, &out.attr);
	return wire_reply(request, &out, sizeof(out));
}

int fs_statx(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_statx_out out = {0};
	struct fuse_statx_in in;
	struct validity validity;
	struct statx status;
	struct inode *inode;
	int error;

	wire_take(&reader, &in, sizeof(in));
	error = meta_status(server, request->header.nodeid, in.getattr_flags & FUSE_GETATTR_FH,
			    in.fh, &inode, &status, &validity);
	if (error)
		return error;
	out.attr_valid = validity.attributes;
	coherence_told(server, inode, &status);
	layer_show(inode, &status);
	attr_fill_statx(&server->owner, server->root_device, &status, &out.stat);
	return wire_reply(request, &out, sizeof(out));
}

/*
 * Set-id bits are not for the guest to give. A directory keeps the set-group-id bit that it has (it
 * makes new files take its group, which teams rely on), so that a chmod that repeats it is right.
 */
static int meta_set_mode(struct fs_server *server, const struct inode *inode, int fd, mode_t mode)
{
	mode_t allowed = S_ISVTX | S_IRWXU | S_IRWXG | S_IRWXO;
	struct statx status;
	int error;

	if (inode->identity.type == S_IFLNK)
		return -EOPNOTSUPP;
	if (inode->identity.type == S_IFDIR && (mode & S_ISGID)) {
		error = path_status(fd, &status);
		if (error)
			return error;
		allowed |= status.stx_mode & S_ISGID;
	}
	return fchmodat(server->proc_fd, path_number(fd).text, mode & allowed, 0) ? -errno : 0;
}

/* A chown to whom the file belongs already succeeds, and takes set-id bits away as chown(2) does.
 */
static int meta_set_owner(struct fs_server *server, int fd, const struct fuse_setattr_in *in)
{
	struct fuse_attr attr;
	struct statx status;
	int error = path_status(fd, &status);

	if (error)
		return error;
	attr_fill(&server->owner, server->root_device, &status, &attr);
	if (!attr_owned(&server->owner, &status) ||
	    ((in->valid & FATTR_UID) && in->uid != attr.uid) ||
	    ((in->valid & FATTR_GID) && in->gid != attr.gid))
		return -EPERM;
	return fchownat(fd, "", (uid_t)-1, (gid_t)-1, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) ? -errno
											   : 0;
}

static int meta_set_size(struct fs_server *server, struct inode *inode, int fd,
			 const struct fuse_setattr_in *in)
{
	struct handle *handle;
	FD_CLEANUP int opened = -1;
	int error;

	if (in->size > INT64_MAX)
		return -EINVAL;
	error = guard_truncate(server, inode, in->size);
	if (error)
		return error;
	if (in->valid & FATTR_FH) {
		handle = handle_find(&server->handles, in->fh, HANDLE_FILE);
		if (!handle || handle->node_id != inode->id)
			return -EBADF;
		return ftruncate(handle->fd, (off_t)in->size) ? -errno : 0;
	}
	if (inode->identity.type != S_IFREG)
		return inode->identity.type == S_IFDIR ? -EISDIR : -EINVAL;
	opened = path_reopen(server->proc_fd, fd, O_WRONLY);
	if (opened < 0)
		return opened;
	return ftruncate(opened, (off_t)in->size) ? -errno : 0;
}

static int meta_set_times(int fd, const struct fuse_setattr_in *in)
{
	struct timespec times[2] = {
		{.tv_sec = (time_t)in->atime, .tv_nsec = in->atimensec},
		{.tv_sec = (time_t)in->mtime, .tv_nsec = in->mtimensec},
	};

	if (in->atimensec >= 1000000000 || in->mtimensec >= 1000000000)
		return -EINVAL;
	if (in->valid & FATTR_ATIME_NOW)
		times[0].tv_nsec = UTIME_NOW;
	else if (!(in->valid & FATTR_ATIME))
		times[0].tv_nsec = UTIME_OMIT;
	if (in->valid & FATTR_MTIME_NOW)
		times[1].tv_nsec = UTIME_NOW;
	else if (!(in->valid & FATTR_MTIME))
		times[1].tv_nsec = UTIME_OMIT;
	return utimensat(fd, "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}

int fs_setattr(struct fs_server *server, const struct wire_request *request)
{
	struct fuse_attr_out out = {0};
	struct wire_reader reader = wire_arguments(request);
	struct fuse_setattr_in in;
	struct statx status;
	struct inode *inode;
	int error = 0;
	int fd;

	wire_take(&reader, &in, sizeof(in));
	fd = fs_node_fd(server, request->header.nodeid, 0, &inode);
	if (fd < 0)
		return fd;
	error = fs_prepare_change(server, inode, in.valid & FATTR_SIZE);
	fd = error ? error : path_inode_fd(&server->inodes, inode);
	if (fd < 0)
		return fd;
	if (in.valid & (FATTR_UID | FATTR_GID))
		error = meta_set_owner(server, fd, &in);
	if (!error && (in.valid & FATTR_MODE))
		error = meta_set_mode(server, inode, fd, in.mode);
	if (!error && (in.valid & FATTR_MODE))
		journal_count_mode(server);
	if (!error && (in.valid & FATTR_SIZE))
		error = meta_set_size(server, inode, fd, &in);
	if (!error && (in.valid & (FATTR_ATIME | FATTR_MTIME | FATTR_ATIME_NOW | FATTR_MTIME_NOW)))
		error = meta_set_times(fd, &in);
	if (error)
		return error;
	error = path_status(fd, &status);
	if (error)
		return error;
	out.attr_valid = coherence_validity(server, NULL, inode, &status).attributes;
	fs_fill_attr(server, inode, &status, &out.attr);
	return wire_reply(request, &out, sizeof(out));
}

/* Linux asks only when it does not check modes itself; the host's answer is for this user. */
int fs_access(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_access_in in;
	struct inode *inode;
	int fd;

	wire_take(&reader, &in, sizeof(in));
	if (in.mask & ~(uint32_t)(R_OK | W_OK | X_OK))
		return -EINVAL;
	fd = fs_node_fd(server, request->header.nodeid, 0, &inode);
	if (fd < 0)
		return fd;
	if (server->read_only && (in.mask & W_OK))
		return -EROFS;
	return faccessat(fd, "", (int)in.mask, AT_EACCESS | AT_EMPTY_PATH) ? -errno : 0;
}

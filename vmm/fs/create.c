/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that make a file and open it at once. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "vmm/base/fd.h"
#include "vmm/fs/operation.h"

#define CREATE_MODE_MASK (S_ISVTX | S_IRWXU | S_IRWXG | S_IRWXO)

/* Answers CREATE and TMPFILE: the entry and the handle. On failure both are given up. */
static int create_reply(struct fs_server *server, const struct wire_request *request,
			struct inode *inode, const struct statx *status, struct handle *handle)
{
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = {.open = {.fh = handle->id, .open_flags = fs_cache_flags(server)}};
	int result;

	fs_fill_entry(server, inode, status, &out.entry);
	result = wire_reply(request, &out, sizeof(out));
	if (result < 0) {
		fs_close_handle(server, handle);
		fs_release_inode(server, inode);
	} else {
		inode->lookups++;
	}
	return result;
}

/* Makes a handle and an inode of a file just made. @fd is reserved and taken over. */
static int create_adopt(struct fs_server *server, int fd, struct inode **inode,
			struct statx *status, struct handle **handle)
{
	int error = fs_find_open(server, fd, inode, status);

	if (error) {
		fd_close(&fd);
		inode_return_fd(&server->inodes);
		return error;
	}
	error = fs_add_handle(server, HANDLE_FILE, fd, (*inode)->id, handle);
	if (error)
		fs_release_inode(server, *inode);
	return error;
}

/* The file was there after all: what open(2) without O_EXCL does then. */
static int create_open_existing(struct fs_server *server, struct inode *directory, const char *name,
				int flags, struct inode **inode, struct statx *status,
				struct handle **handle)
{
	int error = fs_find_entry(server, directory, name, inode, status);

	if (error)
		return error;
	if (flags != O_RDONLY)
		error = fs_prepare_change(server, *inode, true);
	if (!error)
		error = fs_open_inode(server, *inode, HANDLE_FILE, flags, handle);
	if (!error) {
		error = path_status((*handle)->fd, status);
		if (error)
			fs_close_handle(server, *handle);
	}
	if (error)
		fs_release_inode(server, *inode);
	return error;
}

/* Makes the file of a CREATE or opens the one that is there. */
static int create_open(struct fs_server *server, struct fs_place *place,
		       const struct fuse_create_in *in, int flags, struct inode **inode,
		       struct statx *status, struct handle **handle)
{
	struct fs_new new;
	int error, fd;

	/* Before the answer, which the guest may keep; it need not have looked here before. */
	coherence_watch(server, place->directory);
	error = fs_begin_new(server, place, S_IFREG, &new);
	if (!error)
		error = inode_reserve_fd(&server->inodes);
	if (error)
		goto out;
	fd = path_create_name(place->fd, new.name, flags & O_ACCMODE, in->mode & CREATE_MODE_MASK);
	error = fd < 0 ? fd : fs_finish_new(server, place, &new);
	if (error) {
		fd_close(&fd);
		inode_return_fd(&server->inodes);
		goto out;
	}
	error = create_adopt(server, fd, inode, status, handle);
	if (error)
		return error;
	guard_enter(server, place->directory, place->name, status, *inode);
	inode_set_place(&server->inodes, *inode, place->directory->id, place->name);
	return 0;
out:
	/* What is there may be opened, whatever the rules say of making it; and a guest that asks
	 * for a new file need not have looked before. */
	if (error == -EACCES && !guard_hides(server, place->directory, place->name) &&
	    layer_look(server, place->directory, place->fd, place->name, status) == 0)
		error = -EEXIST;
	if (error != -EEXIST || (in->flags & O_EXCL))
		return error;
	return create_open_existing(server, place->directory, place->name, flags, inode, status,
				    handle);
}

int fs_create(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_create_in in;
	struct handle *handle;
	struct fs_place place;
	struct inode *inode;
	struct statx status;
	int error, flags;

	wire_take(&reader, &in, sizeof(in));
	error = fs_take_last_place(server, &reader, request->header.nodeid, &place);
	if (error)
		return error;
	flags = fs_open_flags(server, in.flags);
	if (flags < 0)
		return flags;
	error = create_open(server, &place, &in, flags, &inode, &status, &handle);
	return error ? error : create_reply(server, request, inode, &status, handle);
}

/* The name that comes with it means nothing (Linux sends "/"). */
int fs_tmpfile(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct inode *directory, *inode;
	struct fuse_create_in in;
	struct handle *handle;
	struct statx status;
	int error, directory_fd, flags, fd;

	wire_take(&reader, &in, sizeof(in));
	directory_fd = fs_node_fd(server, request->header.nodeid, S_IFDIR, &directory);
	if (directory_fd < 0)
		return directory_fd;
	flags = fs_open_flags(server, in.flags);
	if (flags < 0)
		return flags;
	error = inode_reserve_fd(&server->inodes);
	if (error)
		return error;
	/* In a share under review any directory of the upper layer will do. */
	if (server->layer) {
		error = layer_may_write(directory);
		directory_fd = server->root_fd;
	}
	fd = error ? error
		   : path_create_unnamed(directory_fd, flags & O_ACCMODE,
					 in.mode & CREATE_MODE_MASK);
	if (fd < 0) {
		inode_return_fd(&server->inodes);
		return fd;
	}
	error = create_adopt(server, fd, &inode, &status, &handle);
	return error ? error : create_reply(server, request, inode, &status, handle);
}

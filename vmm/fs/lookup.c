/* SPDX-License-Identifier: Apache-2.0 */
/* Names to inodes, and the entries that answer for them. */
#include <errno.h>
#include <fcntl.h>

#include "vmm/base/fd.h"
#include "vmm/fs/link_break.h"
#include "vmm/fs/operation.h"

int fs_node_fd(struct fs_server *server, uint64_t node_id, mode_t type, struct inode **inode)
{
	*inode = inode_find(&server->inodes, node_id);
	if (!*inode)
		return -ESTALE;
	if (type && (*inode)->identity.type != type) {
		if (type == S_IFDIR)
			return -ENOTDIR;
		return (*inode)->identity.type == S_IFDIR && type == S_IFREG ? -EISDIR : -EINVAL;
	}
	return path_inode_fd(&server->inodes, *inode);
}

/* Finds or adds the inode behind @fd (reserved, taken over also on failure), found as @name of
 * @directory if there is one. */
static int lookup_intern(struct fs_server *server, int fd, const struct inode *directory,
			 const char *name, struct inode **inode, struct statx *status)
{
	struct inode_identity identity;
	int error = path_status(fd, status);

	if (error)
		goto out;
	identity = directory ? link_identity(server, directory, name, status)
			     : inode_identity_of(status);
	*inode = inode_find_identity(&server->inodes, &identity);
	if (*inode) {
		inode_adopt_fd(&server->inodes, *inode, fd);
		return 0;
	}
	error = inode_add(&server->inodes, &identity, fd, inode);
	if (!error)
		return 0;
out:
	fd_close(&fd);
	inode_return_fd(&server->inodes);
	return error;
}

int fs_find_entry(struct fs_server *server, struct inode *directory, const char *name,
		  struct inode **inode, struct statx *status)
{
	int directory_fd, error, fd;

	coherence_watch(server, directory);
	if (guard_hides(server, directory, name))
		return -ENOENT;
	directory_fd = path_inode_fd(&server->inodes, directory);
	if (directory_fd < 0)
		return directory_fd;
	error = inode_reserve_fd(&server->inodes);
	if (error)
		return error;
	fd = path_open_name(directory_fd, name);
	if (fd < 0) {
		inode_return_fd(&server->inodes);
		return fd;
	}
	error = lookup_intern(server, fd, directory, name, inode, status);
	if (error)
		return error;
	error = guard_enter(server, directory, name, status, *inode);
	if (error)
		fs_release_inode(server, *inode);
	else
		inode_set_place(&server->inodes, *inode, directory->id, name);
	return error;
}

int fs_find_open(struct fs_server *server, int fd, struct inode **inode, struct statx *status)
{
	int error = inode_reserve_fd(&server->inodes);
	int path_fd;

	if (error)
		return error;
	/* O_PATH through /proc/self/fd: the very inode that @fd has, whatever its name is by now */
	path_fd = path_reopen(server->proc_fd, fd, O_PATH);
	if (path_fd < 0) {
		inode_return_fd(&server->inodes);
		return path_fd;
	}
	return lookup_intern(server, path_fd, NULL, NULL, inode, status);
}

void fs_release_inode(struct fs_server *server, struct inode *inode)
{
	inode_forget(&server->inodes, inode, 0);
}

void fs_fill_entry(struct fs_server *server, struct inode *inode, const struct statx *status,
		   struct fuse_entry_out *entry)
{
	const struct inode *directory =
		inode->name ? inode_find(&server->inodes, inode->parent) : NULL;
	struct validity validity = coherence_validity(server, directory, inode, status);

	*entry = (struct fuse_entry_out){
		.nodeid = inode->id,
		.entry_valid = validity.entry,
		.attr_valid = validity.attributes,
	};
	coherence_told(server, inode, status);
	attr_fill(&server->owner, server->root_device, status, &entry->attr);
}

int fs_reply_entry(struct fs_server *server, const struct wire_request *request,
		   struct inode *inode, const struct statx *status)
{
	struct fuse_entry_out entry;
	int result;

	fs_fill_entry(server, inode, status, &entry);
	result = wire_reply(request, &entry, sizeof(entry));
	if (result < 0)
		fs_release_inode(server, inode);
	else
		inode->lookups++;
	return result;
}

int fs_reply_name(struct fs_server *server, const struct wire_request *request,
		  struct inode *directory, const char *name)
{
	struct statx status;
	struct inode *inode;
	int error = fs_find_entry(server, directory, name, &inode, &status);

	return error ? error : fs_reply_entry(server, request, inode, &status);
}

struct inode *fs_hold_victim(struct fs_server *server, const struct inode *directory,
			     int directory_fd, const char *name, struct statx *status)
{
	struct inode_identity identity;
	struct inode *inode;

	if (statx(directory_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, PATH_STATX_MASK,
		  status)) {
		status->stx_mask = 0;
		return NULL;
	}
	identity = link_identity(server, directory, name, status);
	inode = inode_find_identity(&server->inodes, &identity);
	if (inode)
		path_inode_fd(&server->inodes, inode);
	return inode;
}

int fs_prepare_change(struct fs_server *server, struct inode *inode)
{
	int error = guard_change(server, inode);

	return error ? error : link_break(server, inode);
}

/* Node id 0 with a time: Linux keeps in mind that there is no such entry. */
static int lookup_reply_absent(struct fs_server *server, const struct wire_request *request,
			       const struct inode *directory)
{
	struct validity validity = coherence_validity(server, directory, NULL, NULL);
	const struct fuse_entry_out entry = {.entry_valid = validity.entry};

	return validity.entry ? wire_reply(request, &entry, sizeof(entry)) : -ENOENT;
}

int fs_lookup(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fs_place place;
	int result = fs_take_last_place(server, &reader, request->header.nodeid, &place);

	if (result)
		return result;
	result = fs_reply_name(server, request, place.directory, place.name);
	return result == -ENOENT ? lookup_reply_absent(server, request, place.directory) : result;
}

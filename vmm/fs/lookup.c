/* SPDX-License-Identifier: Apache-2.0 */
/* Names to inodes, and the entries that answer for them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "vmm/base/fd.h"
#include "vmm/fs/layer.h"
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

/* Finds or adds the inode of that identity behind @entry, whose fd is reserved; the descriptors are
 * taken over, also on failure. */
static int lookup_intern(struct fs_server *server, const struct inode_identity *identity,
			 struct path_entry *entry, struct inode **inode)
{
	int error;

	*inode = inode_find_identity(&server->inodes, identity);
	if (!*inode) {
		error = inode_add(&server->inodes, identity, -1, inode);
		if (error) {
			path_close_entry(entry);
			inode_return_fd(&server->inodes);
			return error;
		}
		if (server->layer && entry->layers != INODE_LOWER)
			layer_read_origin(*inode, entry->fd);
	}
	error = path_adopt_entry(&server->inodes, *inode, entry);
	if (error)
		fs_release_inode(server, *inode);
	return error;
}

/* Whether that inode is known by this very name. */
static bool lookup_is_here(const struct inode *inode, const struct inode *directory,
			   const char *name)
{
	return inode->parent == directory->id && inode->name && strcmp(inode->name, name) == 0;
}

/* Adds the inode of a file without opening it: path_inode_fd will, when the guest makes use of it,
 * and sees to it that it is this one. */
static int lookup_add(struct fs_server *server, const struct inode_identity *identity,
		      const struct statx *status, struct inode **inode)
{
	bool is_file = S_ISREG(status->stx_mode) || S_ISLNK(status->stx_mode);

	return is_file && status->stx_nlink == 1 ? inode_add(&server->inodes, identity, -1, inode)
						 : -EAGAIN;
}

/*
 * The inode at @name, without opening it, if the guest knows it by this very name, or does not know
 * it and it is a file: one statx instead of openat2, statx and close, and most files of a listing
 * are never opened. What openat2 would refuse is what is mounted there, which may be a directory of
 * the share again. Without a time of birth, another file may have the number by now (and, on 9p,
 * the open one be dead). 0, -ENOENT, or -EAGAIN: it must be opened.
 */
static int lookup_look(struct fs_server *server, const struct inode *directory, const char *name,
		       struct inode **inode, struct statx *status)
{
	struct inode_identity identity;
	int error;

	if (server->layer)
		return -EAGAIN;
	error = path_look(directory->fd, name, status);
	if (error)
		return error == -ENOENT ? error : -EAGAIN;
	if (!(status->stx_mask & STATX_BTIME) ||
	    !(status->stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) ||
	    (status->stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return -EAGAIN;
	identity = link_identity(server, directory, name, status);
	*inode = inode_find_identity(&server->inodes, &identity);
	if (!*inode)
		return lookup_add(server, &identity, status, inode);
	return lookup_is_here(*inode, directory, name) ? 0 : -EAGAIN;
}

/* The same for any name: opens it, and finds or adds the inode. 0 or -errno. */
static int lookup_open(struct fs_server *server, struct inode *directory, const char *name,
		       struct inode **inode, struct statx *status)
{
	struct inode_identity identity;
	struct path_entry entry;
	int error = inode_reserve_fd(&server->inodes);

	if (error)
		return error;
	error = path_open_entry(directory, name, &entry);
	if (error) {
		inode_return_fd(&server->inodes);
		return error;
	}
	*status = entry.status;
	identity = link_identity(server, directory, name, status);
	return lookup_intern(server, &identity, &entry, inode);
}

int fs_find_entry(struct fs_server *server, struct inode *directory, const char *name,
		  struct inode **inode, struct statx *status)
{
	int directory_fd, error;

	coherence_watch(server, directory);
	if (guard_hides(server, directory, name))
		return -ENOENT;
	directory_fd = path_inode_fd(&server->inodes, directory);
	if (directory_fd < 0)
		return directory_fd;
	error = lookup_look(server, directory, name, inode, status);
	if (error == -EAGAIN)
		error = lookup_open(server, directory, name, inode, status);
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
	struct path_entry entry = {
		.lower_fd = -1,
		.layers = server->layer ? INODE_UPPER : INODE_LOWER,
	};
	int error = path_status(fd, status);
	struct inode_identity identity;

	if (!error)
		error = inode_reserve_fd(&server->inodes);
	if (error)
		return error;
	/* O_PATH through /proc/self/fd: the very inode that @fd has, whatever its name is by now */
	entry.fd = path_reopen(server->proc_fd, fd, O_PATH);
	if (entry.fd < 0) {
		inode_return_fd(&server->inodes);
		return entry.fd;
	}
	identity = inode_identity_of(status);
	return lookup_intern(server, &identity, &entry, inode);
}

void fs_release_inode(struct fs_server *server, struct inode *inode)
{
	inode_forget(&server->inodes, inode, 0);
}

void fs_fill_attr(struct fs_server *server, struct inode *inode, const struct statx *status,
		  struct fuse_attr *attr)
{
	struct statx shown = *status;

	coherence_told(server, inode, status);
	layer_show(inode, &shown);
	attr_fill(&server->owner, server->root_device, &shown, attr);
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
	fs_fill_attr(server, inode, status, &entry->attr);
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

	if (layer_look(server, directory, directory_fd, name, status)) {
		status->stx_mask = 0;
		return NULL;
	}
	identity = link_identity(server, directory, name, status);
	inode = inode_find_identity(&server->inodes, &identity);
	if (!inode && identity.alias) {
		/* It may be known from before it got other links. */
		identity.alias = 0;
		inode = inode_find_identity(&server->inodes, &identity);
		if (inode && !lookup_is_here(inode, directory, name))
			inode = NULL;
	}
	if (inode)
		path_inode_fd(&server->inodes, inode);
	return inode;
}

int fs_prepare_change(struct fs_server *server, struct inode *inode, bool contents)
{
	int error = guard_change(server, inode);

	if (error)
		return error;
	journal_before(server, inode, contents);
	return server->layer ? layer_copy_up(server, inode) : link_break(server, inode);
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

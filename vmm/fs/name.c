/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that make, move and remove names. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/fs/operation.h"

/* The mode bits that the guest may give to what it makes: no set-id bits. */
#define NAME_MODE_MASK (S_ISVTX | S_IRWXU | S_IRWXG | S_IRWXO)

/* A checked name in an open directory. */
struct name_place {
	struct inode *directory;
	int fd; /* the inode table's */
	const char *name;
};

/* Takes the next name of the arguments, to be found in directory @node_id. 0 or -errno. */
static int name_take(struct fs_server *server, struct wire_reader *reader, uint64_t node_id,
		     struct name_place *place)
{
	int error;

	if (wire_take_string(reader, &place->name))
		return -EINVAL;
	error = path_check_name(place->name);
	if (error)
		return error;
	place->fd = fs_node_fd(server, node_id, S_IFDIR, &place->directory);
	return place->fd < 0 ? place->fd : 0;
}

/*
 * Whatever made the inode table find a descriptor anew may have closed another: asks once more for
 * those of the places, just before they are used. @second may be NULL.
 */
static int name_settle(struct fs_server *server, struct name_place *first,
		       struct name_place *second)
{
	first->fd = path_inode_fd(&server->inodes, first->directory);
	if (first->fd < 0 || !second)
		return first->fd < 0 ? first->fd : 0;
	second->fd = path_inode_fd(&server->inodes, second->directory);
	if (second->fd < 0)
		return second->fd;
	/* A share so deep, and so few descriptors, that the two cannot be open at once. */
	return first->directory->fd < 0 ? -ENFILE : 0;
}

/* The same where the name is all that is left of the arguments. */
static int name_take_last(struct fs_server *server, struct wire_reader *reader, uint64_t node_id,
			  struct name_place *place)
{
	int error = name_take(server, reader, node_id, place);

	return !error && !wire_at_end(reader) ? -EINVAL : error;
}

int fs_mkdir(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_mkdir_in in;
	struct name_place place;
	int error;

	wire_take(&reader, &in, sizeof(in));
	error = name_take_last(server, &reader, request->header.nodeid, &place);
	if (error)
		return error;
	if (mkdirat(place.fd, place.name, in.mode & NAME_MODE_MASK))
		return -errno;
	return fs_reply_name(server, request, place.directory, place.name);
}

/* FIFOs and sockets are metadata on the host: nobody here ever opens one. Devices are never made.
 */
int fs_mknod(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_mknod_in in;
	struct name_place place;
	mode_t type;
	int error;

	wire_take(&reader, &in, sizeof(in));
	error = name_take_last(server, &reader, request->header.nodeid, &place);
	if (error)
		return error;
	type = in.mode & S_IFMT;
	if (type == S_IFCHR || type == S_IFBLK)
		return -EPERM;
	if (type == 0)
		type = S_IFREG;
	if (type != S_IFREG && type != S_IFIFO && type != S_IFSOCK)
		return -EINVAL;
	if (mknodat(place.fd, place.name, type | (in.mode & NAME_MODE_MASK), 0))
		return -errno;
	return fs_reply_name(server, request, place.directory, place.name);
}

int fs_symlink(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct name_place place;
	const char *target;
	int error;

	error = name_take(server, &reader, request->header.nodeid, &place);
	if (error)
		return error;
	if (wire_take_string(&reader, &target) || !wire_at_end(&reader))
		return -EINVAL;
	if (strlen(target) > LIMIT_FS_SYMLINK_BYTES)
		return -ENAMETOOLONG;
	if (symlinkat(target, place.fd, place.name))
		return -errno;
	return fs_reply_name(server, request, place.directory, place.name);
}

int fs_readlink(struct fs_server *server, const struct wire_request *request)
{
	char target[LIMIT_FS_SYMLINK_BYTES + 1];
	struct inode *inode;
	ssize_t length;
	int fd = fs_node_fd(server, request->header.nodeid, S_IFLNK, &inode);

	if (fd < 0)
		return fd;
	length = readlinkat(fd, "", target, sizeof(target));
	if (length < 0)
		return -errno;
	return wire_reply(request, target, (size_t)length);
}

/* The old file is named by its descriptor, so that no other can take its place meanwhile. */
int fs_link(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct name_place place;
	struct fuse_link_in in;
	struct inode *inode;
	int error, fd;

	wire_take(&reader, &in, sizeof(in));
	error = name_take_last(server, &reader, request->header.nodeid, &place);
	if (error)
		return error;
	fd = fs_node_fd(server, in.oldnodeid, 0, &inode);
	if (fd < 0)
		return fd;
	if (inode->identity.type == S_IFDIR)
		return -EPERM;
	error = name_settle(server, &place, NULL);
	if (error)
		return error;
	if (inode->fd < 0)
		return -ENFILE;
	if (linkat(server->proc_fd, path_number(fd).text, place.fd, place.name, AT_SYMLINK_FOLLOW))
		return -errno;
	/* By its new name, which outlives the old one (git unlinks that next): see inode_adopt_fd.
	 */
	return fs_reply_name(server, request, place.directory, place.name);
}

/* The name is gone: an inode that is known by it alone must keep its descriptor from now on. */
static void name_forget_place(struct fs_server *server, const struct name_place *place,
			      struct inode *victim)
{
	if (victim && victim->name && victim->parent == place->directory->id &&
	    strcmp(victim->name, place->name) == 0)
		inode_clear_place(&server->inodes, victim);
}

static int name_remove(struct fs_server *server, const struct wire_request *request, int flags)
{
	struct wire_reader reader = wire_arguments(request);
	struct name_place place;
	struct inode *victim;
	int error;

	error = name_take_last(server, &reader, request->header.nodeid, &place);
	if (error)
		return error;
	victim = fs_hold_victim(server, place.fd, place.name);
	error = name_settle(server, &place, NULL);
	if (error)
		return error;
	if (unlinkat(place.fd, place.name, flags))
		return -errno;
	name_forget_place(server, &place, victim);
	return 0;
}

int fs_unlink(struct fs_server *server, const struct wire_request *request)
{
	return name_remove(server, request, 0);
}

int fs_rmdir(struct fs_server *server, const struct wire_request *request)
{
	return name_remove(server, request, AT_REMOVEDIR);
}

/* Notes the place of what is found at @place now. */
static void name_note_place(struct fs_server *server, const struct name_place *place)
{
	struct inode_identity identity;
	struct statx status;
	struct inode *inode;

	if (statx(place->fd, place->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, PATH_STATX_MASK,
		  &status))
		return;
	identity = inode_identity_of(&status);
	inode = inode_find_identity(&server->inodes, &identity);
	if (inode)
		inode_set_place(&server->inodes, inode, place->directory->id, place->name);
}

static int name_rename(struct fs_server *server, const struct wire_request *request,
		       struct wire_reader *reader, uint64_t new_directory, unsigned int flags)
{
	struct name_place from, to;
	struct inode *victim = NULL;
	int error;

	/* WHITEOUT would make a character device. */
	if (flags & ~(unsigned int)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	error = name_take(server, reader, request->header.nodeid, &from);
	if (!error)
		error = name_take_last(server, reader, new_directory, &to);
	if (error)
		return error;
	if (flags == 0 && name_settle(server, &to, NULL) == 0)
		victim = fs_hold_victim(server, to.fd, to.name);
	error = name_settle(server, &from, &to);
	if (error)
		return error;
	if (renameat2(from.fd, from.name, to.fd, to.name, flags))
		return -errno;
	name_forget_place(server, &to, victim);
	name_note_place(server, &to);
	if (flags & RENAME_EXCHANGE)
		name_note_place(server, &from);
	return 0;
}

int fs_rename(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_rename_in in;

	wire_take(&reader, &in, sizeof(in));
	return name_rename(server, request, &reader, in.newdir, 0);
}

int fs_rename2(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_rename2_in in;

	wire_take(&reader, &in, sizeof(in));
	return name_rename(server, request, &reader, in.newdir, in.flags);
}

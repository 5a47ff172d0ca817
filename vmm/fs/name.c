/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that make, move and remove names. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/fs/link_break.h"
#include "vmm/fs/operation.h"

/* The mode bits that the guest may give to what it makes: no set-id bits. */
#define NAME_MODE_MASK (S_ISVTX | S_IRWXU | S_IRWXG | S_IRWXO)

int fs_mkdir(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_mkdir_in in;
	struct fs_place place;
	struct inode *inode;
	struct statx status;
	struct fs_new new;
	int error;

	wire_take(&reader, &in, sizeof(in));
	error = fs_take_last_place(server, &reader, request->header.nodeid, &place);
	if (!error)
		error = fs_begin_new(server, &place, S_IFDIR, &new);
	if (!error && mkdirat(place.fd, new.name, in.mode & NAME_MODE_MASK))
		error = -errno;
	if (!error)
		error = fs_finish_new(server, &place, &new);
	if (!error)
		error = fs_find_entry(server, place.directory, place.name, &inode, &status);
	if (error)
		return error;
	/* It will be made use of: then its attributes may be kept from now on, as they are now. */
	coherence_watch(server, inode);
	if (inode->fd >= 0 && !server->layer)
		path_status(inode->fd, &status);
	return fs_reply_entry(server, request, inode, &status);
}

/* FIFOs and sockets are metadata on the host: nobody here ever opens one. Devices are never made.
 */
int fs_mknod(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fuse_mknod_in in;
	struct fs_place place;
	struct fs_new new;
	mode_t type;
	int error;

	wire_take(&reader, &in, sizeof(in));
	error = fs_take_last_place(server, &reader, request->header.nodeid, &place);
	if (error)
		return error;
	type = in.mode & S_IFMT;
	if (type == S_IFCHR || type == S_IFBLK)
		return -EPERM;
	if (type == 0)
		type = S_IFREG;
	if (type != S_IFREG && type != S_IFIFO && type != S_IFSOCK)
		return -EINVAL;
	error = fs_begin_new(server, &place, type, &new);
	if (!error && mknodat(place.fd, new.name, type | (in.mode & NAME_MODE_MASK), 0))
		error = -errno;
	if (!error)
		error = fs_finish_new(server, &place, &new);
	return error ? error : fs_reply_name(server, request, place.directory, place.name);
}

int fs_symlink(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fs_place place;
	const char *target;
	struct fs_new new;
	int error;

	error = fs_take_place(server, &reader, request->header.nodeid, &place);
	if (error)
		return error;
	if (wire_take_string(&reader, &target) || !wire_at_end(&reader))
		return -EINVAL;
	if (strlen(target) > LIMIT_FS_SYMLINK_BYTES)
		return -ENAMETOOLONG;
	error = guard_symlink(server, place.directory, place.name, target);
	if (!error)
		error = fs_begin_new(server, &place, S_IFLNK, &new);
	if (!error && symlinkat(target, place.fd, new.name))
		error = -errno;
	if (!error)
		error = fs_finish_new(server, &place, &new);
	return error ? error : fs_reply_name(server, request, place.directory, place.name);
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
static int name_link(struct fs_server *server, struct fs_place *place, struct inode *inode)
{
	struct fs_new new;
	int error = fs_begin_new(server, place, inode->identity.type, &new);

	/* What is protected would be open to change under the new name; what has links elsewhere
	 * would no longer be told from what has links of this run. */
	if (!error)
		error = guard_link(server, inode, place->directory, place->name);
	if (!error)
		error = fs_prepare_change(server, inode, true);
	if (!error)
		error = fs_settle_places(server, place, NULL);
	if (!error && (path_inode_fd(&server->inodes, inode) < 0 || place->directory->fd < 0))
		error = -ENFILE;
	if (error)
		return error;
	if (linkat(server->proc_fd, path_number(inode->fd).text, place->fd, new.name,
		   AT_SYMLINK_FOLLOW))
		return -errno;
	link_note_made(server, inode);
	return fs_finish_new(server, place, &new);
}

int fs_link(struct fs_server *server, const struct wire_request *request)
{
	struct wire_reader reader = wire_arguments(request);
	struct fs_place place;
	struct fuse_link_in in;
	struct inode *inode;
	int error, fd;

	wire_take(&reader, &in, sizeof(in));
	error = fs_take_last_place(server, &reader, request->header.nodeid, &place);
	if (error)
		return error;
	fd = fs_node_fd(server, in.oldnodeid, 0, &inode);
	if (fd < 0)
		return fd;
	if (inode->identity.type == S_IFDIR)
		return -EPERM;
	error = name_link(server, &place, inode);
	if (error)
		return error;
	/* By its new name, which outlives the old one (git unlinks that next): see inode_adopt_fd.
	 */
	return fs_reply_name(server, request, place.directory, place.name);
}

/* The name is gone: an inode that is known by it alone must keep its descriptor from now on.
 * @status: of what the name stood for, if it stood for anything. */
static void name_forget_place(struct fs_server *server, const struct fs_place *place,
			      struct inode *victim, const struct statx *status)
{
	if (status->stx_mask && !S_ISDIR(status->stx_mode))
		link_note_removed(server, status);
	if (victim && victim->name && victim->parent == place->directory->id &&
	    strcmp(victim->name, place->name) == 0)
		inode_clear_place(&server->inodes, victim);
}

static int name_remove(struct fs_server *server, const struct wire_request *request, int flags)
{
	struct wire_reader reader = wire_arguments(request);
	struct fs_place place;
	struct statx status;
	struct inode *victim;
	int error;

	error = fs_take_last_place(server, &reader, request->header.nodeid, &place);
	if (error)
		return error;
	error = guard_remove(server, place.directory, place.fd, place.name);
	if (error)
		return error;
	victim = fs_hold_victim(server, place.directory, place.fd, place.name, &status);
	error = fs_settle_places(server, &place, NULL);
	if (error)
		return error;
	journal_before_removal(server, &place, victim, &status);
	error = fs_settle_places(server, &place, NULL);
	if (error)
		return error;
	if (server->layer)
		error = layer_remove(server, &place, flags);
	else if (unlinkat(place.fd, place.name, flags))
		error = -errno;
	if (error)
		return error;
	name_forget_place(server, &place, victim, &status);
	journal_removed(server, &place);
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

/* @inode (NULL: the guest does not know it), whose status is @status, is at @place from now on. */
static void name_note_place(struct fs_server *server, const struct fs_place *place,
			    struct inode *inode, const struct statx *status)
{
	struct inode_identity identity;

	if (!inode)
		return;
	identity = link_identity(server, place->directory, place->name, status);
	if (!inode_same_identity(&identity, &inode->identity))
		inode_change_identity(&server->inodes, inode, &identity);
	guard_enter(server, place->directory, place->name, status, inode);
	inode_set_place(&server->inodes, inode, place->directory->id, place->name);
}

/* The inode at @place, which is to be moved. 0 or -errno. */
static int name_hold(struct fs_server *server, struct fs_place *place, struct inode **inode,
		     struct statx *status)
{
	int error = fs_settle_places(server, place, NULL);

	if (error)
		return error;
	*inode = fs_hold_victim(server, place->directory, place->fd, place->name, status);
	return 0;
}

/* Whether the rules let @from become @to. 0 or -errno. */
static int name_may_move(struct fs_server *server, const struct fs_place *from,
			 const struct fs_place *to, unsigned int flags)
{
	int error = guard_move(server, from->directory, from->fd, from->name, to->directory, to->fd,
			       to->name);

	if (!error && (flags & RENAME_EXCHANGE))
		return guard_move(server, to->directory, to->fd, to->name, from->directory,
				  from->fd, from->name);
	if (error)
		return error;
	/* What may be there is made away with; a hidden file by another name is not. */
	error = guard_remove(server, to->directory, to->fd, to->name);
	return error == -ENOENT ? -EACCES : error;
}

/* In a share under review, where what is moved may be a copy afterwards. */
static int name_move_layers(struct fs_server *server, struct fs_place *from, struct fs_place *to,
			    unsigned int flags, struct statx *moved, struct statx *other)
{
	int error = layer_move(server, from, to, flags);

	if (!error)
		error = layer_look(server, to->directory, to->fd, to->name, moved);
	if (!error && (flags & RENAME_EXCHANGE))
		error = layer_look(server, from->directory, from->fd, from->name, other);
	return error;
}

/*
 * A protected file that is to be replaced by its equal, as git does with its configuration when a
 * change turns out to be none: nothing need happen but that the new one goes. (It must not take the
 * place: it may still be open to write.) Whether that is so, and done.
 */
static bool name_replaces_equal(struct fs_server *server, struct fs_place *from,
				struct fs_place *to, struct inode *moved,
				const struct statx *moved_status)
{
	/* Under review nothing is protected. */
	if (server->layer || !guard_protects(server, to->directory, to->name) ||
	    guard_remove(server, from->directory, from->fd, from->name) ||
	    !path_same_file_contents(server->proc_fd, from->fd, from->name, to->fd, to->name) ||
	    unlinkat(from->fd, from->name, 0))
		return false;
	name_forget_place(server, from, moved, moved_status);
	journal_removed(server, from);
	return true;
}

/* Whether both are one file: rename(2) leaves its two names alone. */
static bool name_is_same(const struct statx *status, const struct statx *other)
{
	struct inode_identity one, another;

	if (!status->stx_mask || !other->stx_mask)
		return false;
	one = inode_identity_of(status);
	another = inode_identity_of(other);
	return inode_same_file(&one, &another);
}

/* What moves, and what it takes the place of, for the record. Descriptors are found anew for it. 0
 * or -errno. */
static int name_journal_before(struct fs_server *server, struct fs_place *from, struct fs_place *to,
			       unsigned int flags, const struct statx *moved,
			       const struct inode *replaced, const struct statx *other)
{
	if (!server->journal)
		return 0;
	journal_before_move(server, from, moved);
	if (flags & RENAME_EXCHANGE)
		journal_before_move(server, to, other);
	else if (other->stx_mask)
		journal_before_removal(server, to, replaced, other);
	return fs_settle_places(server, from, to);
}

static int name_move(struct fs_server *server, struct fs_place *from, struct fs_place *to,
		     unsigned int flags)
{
	struct statx moved_status, other_status;
	struct inode *moved, *other;
	int error;

	error = name_hold(server, from, &moved, &moved_status);
	if (!error)
		error = name_hold(server, to, &other, &other_status);
	if (!error)
		error = fs_settle_places(server, from, to);
	if (!error && flags == 0 && moved_status.stx_mask && other_status.stx_mask &&
	    name_replaces_equal(server, from, to, moved, &moved_status))
		return 0;
	if (!error)
		error = name_may_move(server, from, to, flags);
	if (error)
		return error;
	error = name_journal_before(server, from, to, flags, &moved_status, other, &other_status);
	if (error)
		return error;
	if (server->layer)
		error = name_move_layers(server, from, to, flags, &moved_status, &other_status);
	else if (renameat2(from->fd, from->name, to->fd, to->name, flags))
		error = -errno;
	if (error)
		return error;
	if (flags & RENAME_EXCHANGE)
		name_note_place(server, from, other, &other_status);
	else if (!name_is_same(&moved_status, &other_status)) /* else nothing happened */
		name_forget_place(server, to, other, &other_status);
	/* Of two names of one file nothing has moved (rename(2)). */
	if (!other_status.stx_mask || moved_status.stx_ino != other_status.stx_ino ||
	    moved_status.stx_dev_minor != other_status.stx_dev_minor ||
	    moved_status.stx_dev_major != other_status.stx_dev_major)
		journal_moved(server, from, to, moved_status.stx_mode, flags & RENAME_EXCHANGE);
	guard_note_made(server, to->directory, to->fd, to->name);
	name_note_place(server, to, moved, &moved_status);
	return 0;
}

static int name_rename(struct fs_server *server, const struct wire_request *request,
		       struct wire_reader *reader, uint64_t new_directory, unsigned int flags)
{
	struct fs_place from, to;
	int error;

	/* WHITEOUT would make a character device. */
	if (flags & ~(unsigned int)(RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	error = fs_take_place(server, reader, request->header.nodeid, &from);
	if (!error)
		error = fs_take_last_place(server, reader, new_directory, &to);
	return error ? error : name_move(server, &from, &to, flags);
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

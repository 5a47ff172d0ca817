/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that are made, removed and moved in the upper layer. What becomes visible or vanishes does
 * so by one rename: whenever this ends, the guest's deletions are not undone, and what it has not
 * deleted is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/fs/layer_internal.h"
#include "vmm/fs/link_break.h"
#include "vmm/fs/operation.h"

/* Before names in the place's directory change. 0 or -errno. */
static int name_open_directory(struct fs_server *server, struct fs_place *place)
{
	int error = layer_may_write(place->directory);

	if (!error)
		error = layer_copy_up(server, place->directory);
	return error ? error : fs_settle_places(server, place, NULL);
}

int layer_begin_new(struct fs_server *server, struct fs_place *place, struct layer_new *new,
		    const char **name)
{
	struct layer_view view;
	int error = fs_settle_places(server, place, NULL);

	if (!error)
		error = layer_view(place->directory, place->name, &view);
	if (!error && view.visible)
		error = -EEXIST;
	if (!error)
		error = name_open_directory(server, place);
	if (error)
		return error;
	new->over_whiteout = view.whiteout;
	replace_make_name(new->temporary);
	*name = view.whiteout ? new->temporary : place->name;
	return 0;
}

/* A new directory in the place of a whiteout: it hides what the whiteout hid. */
static int name_replace_whiteout(struct fs_server *server, int directory_fd, const char *temporary,
				 const char *name)
{
	FD_CLEANUP int fd = path_open_name(directory_fd, temporary);
	int error = fd < 0 ? fd : layer_set_attribute(server, fd, REVIEW_XATTR_OPAQUE, "y");

	if (error)
		return error;
	if (renameat2(directory_fd, temporary, directory_fd, name, RENAME_EXCHANGE))
		return -errno;
	return unlinkat(directory_fd, temporary, 0) ? -errno : 0;
}

int layer_finish_new(struct fs_server *server, const struct fs_place *place,
		     const struct layer_new *new)
{
	struct statx status;
	int error;

	if (!new->over_whiteout)
		return 0;
	error = path_look(place->fd, new->temporary, &status);
	if (error)
		return error;
	if (S_ISDIR(status.stx_mode))
		error = name_replace_whiteout(server, place->fd, new->temporary, place->name);
	else if (renameat(place->fd, new->temporary, place->fd, place->name))
		error = -errno;
	if (error)
		unlinkat(place->fd, new->temporary, S_ISDIR(status.stx_mode) ? AT_REMOVEDIR : 0);
	return error;
}

static int name_make_whiteout(int directory_fd, const char *name)
{
	return mknodat(directory_fd, name, S_IFCHR, 0) ? -errno : 0;
}

/* Puts a whiteout in the place of an object, which goes; a directory must be empty. */
static int name_put_whiteout(int directory_fd, const char *name, bool is_directory)
{
	char temporary[REPLACE_NAME_BYTES];
	int error;

	replace_make_name(temporary);
	error = name_make_whiteout(directory_fd, temporary);
	if (error)
		return error;
	if (renameat2(directory_fd, temporary, directory_fd, name,
		      is_directory ? RENAME_EXCHANGE : 0)) {
		error = -errno;
		unlinkat(directory_fd, temporary, 0);
		return error;
	}
	if (is_directory && unlinkat(directory_fd, temporary, AT_REMOVEDIR)) {
		error = -errno;
		renameat2(directory_fd, temporary, directory_fd, name, RENAME_EXCHANGE);
		unlinkat(directory_fd, temporary, 0);
	}
	return error;
}

static int name_check_mounted(const struct layer_view *view)
{
	return !view->upper && (view->status.stx_attributes & STATX_ATTR_MOUNT_ROOT) ? -EBUSY : 0;
}

/* Whether the directory at @place is empty to the guest; its whiteouts are removed then, if it is
 * in the upper layer. 0 or -errno. */
static int name_empty_directory(struct fs_server *server, const struct fs_place *place)
{
	struct path_entry entry;
	int error = path_open_entry(place->directory, place->name, &entry);

	if (error)
		return error;
	error = layer_check_empty(server, &entry);
	/* Opaque first, or what they hid would come back. */
	if (!error && entry.layers == INODE_MERGED)
		error = layer_make_opaque(server, &entry);
	if (!error && entry.layers != INODE_LOWER)
		error = layer_remove_whiteouts(server, entry.fd);
	path_close_entry(&entry);
	return error;
}

/* Whether what is there may be removed or replaced as a directory, or as something else. */
static int name_check_victim(const struct layer_view *view, bool as_directory)
{
	if (!view->visible)
		return -ENOENT;
	if (as_directory != S_ISDIR(view->status.stx_mode))
		return as_directory ? -ENOTDIR : -EISDIR;
	return name_check_mounted(view);
}

/* The line of base of an object of the lower layer that the guest sees, before it is hidden. */
static int name_note_base(struct fs_server *server, const struct fs_place *place,
			  const struct layer_view *view)
{
	FD_CLEANUP int fd = -1;
	struct statx status;
	const char *path;
	int error;

	if (!view->visible || view->upper)
		return 0;
	fd = path_open_name(layer_lower_fd(place->directory), place->name);
	error = fd < 0 ? fd : layer_settle(fd, &status);
	if (error)
		return error;
	path = layer_path(server, place->directory, place->name);
	return path ? layer_note_base(server, path, &status) : -ENAMETOOLONG;
}

int layer_remove(struct fs_server *server, struct fs_place *place, int flags)
{
	bool is_directory = flags & AT_REMOVEDIR;
	struct layer_view view;
	int error = layer_view(place->directory, place->name, &view);

	if (!error)
		error = name_check_victim(&view, is_directory);
	if (!error)
		error = layer_may_write(place->directory);
	if (!error && is_directory)
		error = name_empty_directory(server, place);
	if (!error)
		error = name_open_directory(server, place);
	if (!error)
		error = name_note_base(server, place, &view);
	if (error)
		return error;
	if (!view.upper)
		error = name_make_whiteout(place->fd, place->name);
	else if (view.lower)
		error = name_put_whiteout(place->fd, place->name, is_directory);
	else if (unlinkat(place->fd, place->name, flags))
		error = -errno;
	return error;
}

/* What is moved must be in the upper layer, a directory with all it holds. */
static int name_lift(struct fs_server *server, struct fs_place *place,
		     const struct layer_view *view, const struct layer_view *target)
{
	struct path_entry entry;
	int error = view->upper ? 0 : layer_copy_name(server, place->directory, place->name, NULL);

	if (error || !S_ISDIR(view->status.stx_mode))
		return error;
	error = fs_settle_places(server, place, NULL);
	if (!error)
		error = path_open_entry(place->directory, place->name, &entry);
	if (error)
		return error;
	if (entry.layers == INODE_MERGED)
		error = layer_copy_tree(server, place->directory, place->name);
	else if (target->lower || target->whiteout)
		error = layer_make_opaque(server, &entry);
	path_close_entry(&entry);
	return error;
}

/* Whether that is the directory or one above it. */
static bool name_is_above(struct fs_server *server, const struct inode_identity *identity,
			  const struct inode *directory)
{
	for (unsigned int depth = 0; directory && depth < LIMIT_FS_DEPTH; depth++) {
		if (inode_same_file(identity, &directory->identity))
			return true;
		directory = directory->name ? inode_find(&server->inodes, directory->parent) : NULL;
	}
	return false;
}

/* rename(2): two names of one file stay as they are. (Of a file of the lower layer each name is a
 * file of its own: link_break.h.) */
static bool name_is_same(const struct fs_place *from, const struct fs_place *to,
			 const struct layer_view *source, const struct layer_view *target)
{
	struct inode_identity one = inode_identity_of(&source->status);
	struct inode_identity other = inode_identity_of(&target->status);

	if (!target->visible || !inode_same_file(&one, &other))
		return false;
	return (source->upper && target->upper) ||
	       (from->directory == to->directory && strcmp(from->name, to->name) == 0);
}

/* In the order of rename(2), whose answers these are. */
static int name_check_move(struct fs_server *server, const struct fs_place *from,
			   const struct fs_place *to, const struct layer_view *source,
			   const struct layer_view *target, unsigned int flags)
{
	struct inode_identity moved = inode_identity_of(&source->status);
	struct inode_identity replaced = inode_identity_of(&target->status);
	bool exchange = flags & RENAME_EXCHANGE;

	if (!source->visible || (exchange && !target->visible))
		return -ENOENT;
	if (target->visible && (flags & RENAME_NOREPLACE))
		return -EEXIST;
	if (name_is_above(server, &moved, to->directory))
		return -EINVAL;
	if (target->visible && name_is_above(server, &replaced, from->directory))
		return exchange ? -EINVAL : -ENOTEMPTY;
	if (name_check_mounted(source))
		return -EBUSY;
	if (exchange)
		return name_check_mounted(target);
	return target->visible ? name_check_victim(target, S_ISDIR(source->status.stx_mode)) : 0;
}

/* The rename itself, with both directories and all that moves in the upper layer. */
static int name_rename(const struct fs_place *from, const struct fs_place *to,
		       const struct layer_view *source, const struct layer_view *target,
		       unsigned int flags)
{
	bool swap = S_ISDIR(source->status.stx_mode) && target->whiteout;
	unsigned int whiteout = source->lower ? RENAME_WHITEOUT : 0;

	if (flags & RENAME_EXCHANGE)
		return renameat2(from->fd, from->name, to->fd, to->name, RENAME_EXCHANGE) ? -errno
											  : 0;
	/* A directory replaces a directory only: the whiteout in its way goes to the old place. */
	if (swap) {
		if (renameat2(from->fd, from->name, to->fd, to->name, RENAME_EXCHANGE))
			return -errno;
		return source->lower || unlinkat(from->fd, from->name, 0) == 0 ? 0 : -errno;
	}
	if (renameat2(from->fd, from->name, to->fd, to->name, whiteout) == 0)
		return 0;
	if (errno != EINVAL || !whiteout)
		return -errno;
	/* Not all file systems can leave a whiteout. */
	if (renameat(from->fd, from->name, to->fd, to->name))
		return -errno;
	return name_make_whiteout(from->fd, from->name);
}

/* Brings both directories and what is moved into the upper layer. */
static int name_prepare_move(struct fs_server *server, struct fs_place *from, struct fs_place *to,
			     const struct layer_view *source, const struct layer_view *target,
			     unsigned int flags)
{
	bool replaces = target->visible && !(flags & RENAME_EXCHANGE);
	int error = layer_may_write(from->directory);

	if (!error)
		error = layer_may_write(to->directory);
	if (!error && replaces && S_ISDIR(target->status.stx_mode))
		error = name_empty_directory(server, to);
	if (!error)
		error = name_open_directory(server, from);
	if (!error)
		error = name_open_directory(server, to);
	if (!error)
		error = fs_settle_places(server, from, to);
	if (!error)
		error = name_lift(server, from, source, target);
	if (!error && (flags & RENAME_EXCHANGE))
		error = fs_settle_places(server, to, NULL);
	if (!error && (flags & RENAME_EXCHANGE))
		error = name_lift(server, to, target, source);
	if (!error && replaces)
		error = fs_settle_places(server, to, NULL);
	if (!error && replaces)
		error = name_note_base(server, to, target);
	return error ? error : fs_settle_places(server, from, to);
}

int layer_move(struct fs_server *server, struct fs_place *from, struct fs_place *to,
	       unsigned int flags)
{
	struct layer_view source, target;
	int error = layer_view(from->directory, from->name, &source);

	if (!error)
		error = layer_view(to->directory, to->name, &target);
	if (!error)
		error = name_check_move(server, from, to, &source, &target, flags);
	if (error || name_is_same(from, to, &source, &target))
		return error;
	error = name_prepare_move(server, from, to, &source, &target, flags);
	return error ? error : name_rename(from, to, &source, &target, flags);
}

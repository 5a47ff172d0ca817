/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from the lower layer to the upper one. A copy is complete before it has its name, and its
 * line of base is written before that: whenever this ends, the upper layer holds nothing that
 * differs from the host's but by the guest's doing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/fs/copy.h"
#include "vmm/fs/layer_internal.h"
#include "vmm/fs/link_break.h"
#include "vmm/fs/operation.h"

/* How often a file is copied anew because the host has changed it meanwhile. */
#define COPY_ATTEMPTS 3

#define COPY_MODE_MASK (S_ISGID | S_ISVTX | S_IRWXU | S_IRWXG | S_IRWXO)

static bool copy_is_current(const struct layer_source *source)
{
	struct statx now;

	return path_status(source->fd, &now) == 0 && now.stx_size == source->status.stx_size &&
	       now.stx_ctime.tv_sec == source->status.stx_ctime.tv_sec &&
	       now.stx_ctime.tv_nsec == source->status.stx_ctime.tv_nsec;
}

/* Whether the guest goes on seeing the number of the original. Of a file with several links it does
 * not: only one of them is copied. */
static bool copy_keeps_number(const struct statx *status)
{
	return S_ISDIR(status->stx_mode) || status->stx_nlink == 1;
}

static int copy_note_origin(const struct fs_server *server, int fd, const struct statx *status)
{
	char value[48];

	if (!copy_keeps_number(status))
		return 0;
	snprintf(value, sizeof(value), "%llu:%llu",
		 (unsigned long long)makedev(status->stx_dev_major, status->stx_dev_minor),
		 (unsigned long long)status->stx_ino);
	return layer_set_attribute(server, fd, REVIEW_XATTR_ORIGIN, value);
}

static void copy_drop(struct new_file *file, int directory_fd)
{
	if (file->named)
		unlinkat(directory_fd, file->name, 0);
	fd_close(&file->fd);
}

/* A copy of the file @from without its name. Its fd is a negative errno when there is none. */
static struct new_file copy_contents(struct fs_server *server, struct layer_source *source,
				     int from)
{
	struct new_file file = {.fd = -EIO};
	int error;

	for (int attempt = 1; attempt <= COPY_ATTEMPTS; attempt++) {
		error = layer_settle(source->fd, &source->status);
		if (error)
			return (struct new_file){.fd = error};
		file = replace_make_file(source->directory_fd);
		if (file.fd < 0)
			return file;
		error = copy_note_origin(server, file.fd, &source->status);
		if (!error)
			error = copy_file(from, file.fd, &source->status);
		if (!error && (attempt == COPY_ATTEMPTS || copy_is_current(source)))
			return file;
		copy_drop(&file, source->directory_fd);
		if (error)
			break;
	}
	return (struct new_file){.fd = error};
}

static int copy_name_file(struct fs_server *server, const struct layer_source *source,
			  const struct new_file *file)
{
	int error = layer_note_base(server, source->path, &source->status);

	if (error)
		return error;
	if (file->named)
		return renameat2(source->directory_fd, file->name, source->directory_fd,
				 source->name, RENAME_NOREPLACE)
			       ? -errno
			       : 0;
	return linkat(server->proc_fd, path_number(file->fd).text, source->directory_fd,
		      source->name, AT_SYMLINK_FOLLOW)
		       ? -errno
		       : 0;
}

static int copy_regular(struct fs_server *server, struct layer_source *source)
{
	FD_CLEANUP int from = path_reopen(server->proc_fd, source->fd, O_RDONLY);
	struct new_file file;
	int error = 0, fd;

	if (from < 0)
		return from;
	file = copy_contents(server, source, from);
	if (file.fd < 0)
		return file.fd;
	fd = path_reopen(server->proc_fd, file.fd, O_PATH);
	if (fd >= 0 && source->name)
		error = copy_name_file(server, source, &file);
	if (fd < 0 || error || !source->name)
		copy_drop(&file, source->directory_fd);
	fd_close(&file.fd);
	if (error)
		fd_close(&fd);
	return error ? error : fd;
}

/* Makes a directory, symbolic link, fifo or socket by a name for the moment. */
static int copy_make(const struct layer_source *source, const char *name)
{
	char target[LIMIT_FS_SYMLINK_BYTES + 2];
	mode_t type = source->status.stx_mode & S_IFMT;
	ssize_t length;

	switch (type) {
	case S_IFDIR:
		return mkdirat(source->directory_fd, name, S_IRWXU) ? -errno : 0;
	case S_IFLNK:
		length = readlinkat(source->fd, "", target, sizeof(target) - 1);
		if (length < 0)
			return -errno;
		target[length] = '\0';
		return symlinkat(target, source->directory_fd, name) ? -errno : 0;
	case S_IFIFO:
	case S_IFSOCK:
		return mknodat(source->directory_fd, name, type | S_IRUSR | S_IWUSR, 0) ? -errno
											: 0;
	default:
		return -EPERM;
	}
}

/* A directory that its user may not list may not show its attributes either. */
static int copy_directory_attributes(const struct fs_server *server, int from_fd, int to_fd)
{
	FD_CLEANUP int from = path_reopen(server->proc_fd, from_fd, O_RDONLY | O_DIRECTORY);
	FD_CLEANUP int to = path_reopen(server->proc_fd, to_fd, O_RDONLY | O_DIRECTORY);

	if (from == -EACCES)
		return 0;
	return from < 0 ? from : to < 0 ? to : copy_user_attributes(from, to);
}

static int copy_status(struct fs_server *server, const struct layer_source *source, int fd)
{
	const struct statx *status = &source->status;
	const struct timespec times[2] = {
		{status->stx_atime.tv_sec, status->stx_atime.tv_nsec},
		{status->stx_mtime.tv_sec, status->stx_mtime.tv_nsec},
	};
	int error = 0;

	if (S_ISDIR(status->stx_mode)) {
		error = copy_note_origin(server, fd, status);
		if (!error)
			error = copy_directory_attributes(server, source->fd, fd);
	}
	if (!error && fchownat(fd, "", (uid_t)-1, status->stx_gid, AT_EMPTY_PATH) && errno != EPERM)
		error = -errno;
	if (!error && !S_ISLNK(status->stx_mode) &&
	    fchmodat(server->proc_fd, path_number(fd).text, status->stx_mode & COPY_MODE_MASK, 0))
		error = -errno;
	if (!error && utimensat(fd, "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		error = -errno;
	return error;
}

static int copy_special(struct fs_server *server, struct layer_source *source)
{
	int flags = S_ISDIR(source->status.stx_mode) ? AT_REMOVEDIR : 0;
	char temporary[REPLACE_NAME_BYTES];
	int error, fd;

	if (!source->name)
		return -ENOENT;
	replace_make_name(temporary);
	error = copy_make(source, temporary);
	if (error)
		return error;
	fd = path_open_name(source->directory_fd, temporary);
	error = fd < 0 ? fd : copy_status(server, source, fd);
	if (!error)
		error = layer_note_base(server, source->path, &source->status);
	if (!error && renameat2(source->directory_fd, temporary, source->directory_fd, source->name,
				RENAME_NOREPLACE))
		error = -errno;
	if (!error)
		return fd;
	unlinkat(source->directory_fd, temporary, flags);
	fd_close(&fd);
	return error;
}

static int copy_object(struct fs_server *server, struct layer_source *source)
{
	struct layer_hold hold;
	int error, fd;

	if (source->name && !source->path)
		return -ENAMETOOLONG;
	error = layer_hold(server, source->directory_fd, &hold);
	if (error)
		return error;
	fd = S_ISREG(source->status.stx_mode) ? copy_regular(server, source)
					      : copy_special(server, source);
	layer_release(server, &hold);
	return fd;
}

/* The inode is @copy from now on, which source->fd was copied to. Two descriptors are reserved;
 * @copy is taken over. */
static int copy_adopt(struct fs_server *server, struct inode *inode,
		      const struct layer_source *source, int copy)
{
	bool directory = S_ISDIR(source->status.stx_mode);
	struct inode_identity identity;
	struct statx status;
	int lower_fd = directory ? fcntl(source->fd, F_DUPFD_CLOEXEC, 0) : -1;
	int error = directory && lower_fd < 0 ? -errno : path_status(copy, &status);

	if (error) {
		fd_close(&lower_fd);
		fd_close(&copy);
		inode_return_fd(&server->inodes);
		inode_return_fd(&server->inodes);
		return error;
	}
	/* What the guest knows of the original is as true of the copy. */
	if (!coherence_is_stale(server, inode, &source->status))
		coherence_changed_by_guest(server, inode->id);
	inode_adopt_fd(&server->inodes, inode, copy);
	inode_adopt_lower_fd(&server->inodes, inode, lower_fd);
	if (directory)
		inode->lower = inode_number_of(&source->status);
	else
		inode_return_fd(&server->inodes);
	inode->layers = directory ? INODE_MERGED : INODE_UPPER;
	if (copy_keeps_number(&source->status))
		inode->origin = inode_number_of(&source->status);
	identity = inode_identity_of(&status);
	inode_change_identity(&server->inodes, inode, &identity);
	return directory ? 0 : replace_move_handles(server, inode->id, inode->fd);
}

static int copy_reserve(struct fs_server *server)
{
	int error = inode_reserve_fd(&server->inodes);

	if (error)
		return error;
	error = inode_reserve_fd(&server->inodes);
	if (error)
		inode_return_fd(&server->inodes);
	return error;
}

int layer_copy_for_inode(struct fs_server *server, struct layer_source *source, struct inode *inode)
{
	int copy, error = inode ? copy_reserve(server) : 0;

	if (error)
		return error;
	copy = copy_object(server, source);
	if (inode && copy >= 0)
		return copy_adopt(server, inode, source, copy);
	if (inode) {
		inode_return_fd(&server->inodes);
		inode_return_fd(&server->inodes);
	}
	error = copy < 0 ? copy : 0;
	fd_close(&copy);
	return error;
}

int layer_copy_name(struct fs_server *server, struct inode *directory, const char *name,
		    struct inode *inode)
{
	int directory_fd = path_inode_fd(&server->inodes, directory);
	FD_CLEANUP int lower =
		directory_fd < 0 ? directory_fd : path_open_name(layer_lower_fd(directory), name);
	struct layer_source source = {.directory_fd = directory_fd, .name = name, .fd = lower};
	struct inode_identity identity;
	int error = lower < 0 ? lower : path_status(lower, &source.status);

	/* Else the copy would be made in the host's directory. */
	if (directory->layers == INODE_LOWER)
		error = -ESTALE;
	if (error)
		return error;
	identity = link_identity(server, directory, name, &source.status);
	if (!inode)
		inode = inode_find_identity(&server->inodes, &identity);
	else if (!inode_same_file(&identity, &inode->identity))
		return -ESTALE;
	source.path = layer_path(server, directory, name);
	return layer_copy_for_inode(server, &source, inode);
}

/* The copy of an inode that has no name any more: the guest has it open. */
static int copy_unnamed(struct fs_server *server, struct inode *inode)
{
	struct layer_source source = {
		.directory_fd = server->root_fd,
		.fd = path_inode_fd(&server->inodes, inode),
	};
	FD_CLEANUP int kept = -1;
	int error = source.fd < 0 ? source.fd : path_status(source.fd, &source.status);

	if (error)
		return error;
	/* The inode's own may be closed meanwhile. */
	kept = fcntl(source.fd, F_DUPFD_CLOEXEC, 0);
	if (kept < 0)
		return -errno;
	source.fd = kept;
	return layer_copy_for_inode(server, &source, inode);
}

/* Whether the inode is what its name in @directory stands for. 1, 0 or -errno. */
static int copy_has_name(struct fs_server *server, struct inode *directory,
			 const struct inode *inode)
{
	int fd = path_inode_fd(&server->inodes, directory);
	struct inode_identity identity;
	struct layer_view view;
	int error = fd < 0 ? fd : layer_view(directory, inode->name, &view);

	if (error)
		return error == -ENFILE ? error : 0;
	identity = inode_identity_of(&view.status);
	return view.visible && !view.upper && inode_same_file(&identity, &inode->identity);
}

/* The copy is the user's own; what is not must allow the change itself. */
static int copy_allowed(struct fs_server *server, struct inode *inode)
{
	int fd = path_inode_fd(&server->inodes, inode);
	struct statx status;
	int error = fd < 0 ? fd : path_status(fd, &status);

	if (error || attr_owned(&server->owner, &status) || inode->identity.type == S_IFDIR)
		return error;
	return faccessat(fd, "", W_OK, AT_EACCESS | AT_EMPTY_PATH) && errno != EROFS ? -errno : 0;
}

int layer_copy_up(struct fs_server *server, struct inode *inode)
{
	int error = inode->layers == INODE_LOWER ? copy_allowed(server, inode) : 0;

	/* From the top: each round copies the first that is not in the upper layer. */
	while (!error && inode->layers == INODE_LOWER) {
		struct inode *top = inode, *parent = NULL;
		int named;

		for (unsigned int depth = 0; depth < LIMIT_FS_DEPTH; depth++) {
			parent = top->name ? inode_find(&server->inodes, top->parent) : NULL;
			if (!parent || parent->layers != INODE_LOWER)
				break;
			top = parent;
		}
		named = parent ? copy_has_name(server, parent, top) : 0;
		/* The host has put something else there, or nothing: the guest must look again, or
		 * what it writes would be nowhere. */
		if (!named && top->name)
			named = -ESTALE;
		if (named < 0)
			return named;
		error = named ? layer_copy_name(server, parent, top->name, top)
			      : copy_unnamed(server, inode);
	}
	return error;
}

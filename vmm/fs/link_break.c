/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/link_break.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/fs/copy.h"
#include "vmm/fs/operation.h"
#include "vmm/fs/replace.h"

/* FNV-1a over the place. Two names of one file that collide are one inode to the guest. */
static uint64_t link_alias(uint64_t parent, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325ULL ^ parent;

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 0x100000001b3ULL;
	return hash ? hash : 1;
}

static bool link_is_foreign(struct fs_server *server, const struct statx *status)
{
	struct inode_identity identity;

	if (S_ISDIR(status->stx_mode) || status->stx_nlink < 2)
		return false;
	identity = inode_identity_of(status);
	return !identity_set_has(&server->own_links, &identity);
}

struct inode_identity link_identity(struct fs_server *server, const struct inode *directory,
				    const char *name, const struct statx *status)
{
	struct inode_identity identity = inode_identity_of(status);

	if (!server->read_only && link_is_foreign(server, status))
		identity.alias = link_alias(directory->id, name);
	return identity;
}

void link_note_made(struct fs_server *server, const struct inode *inode)
{
	if (inode->identity.type != S_IFDIR)
		identity_set_add(&server->own_links, &inode->identity);
}

void link_note_removed(struct fs_server *server, const struct statx *status)
{
	struct inode_identity identity = inode_identity_of(status);

	if (status->stx_nlink <= 2)
		identity_set_remove(&server->own_links, &identity);
}

/* Whether @name of the directory is @old. */
static int link_check(int directory_fd, const char *name, const struct inode_identity *old)
{
	struct inode_identity identity;
	struct statx status;

	if (statx(directory_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, PATH_STATX_MASK,
		  &status))
		return -errno;
	identity = inode_identity_of(&status);
	return inode_same_file(&identity, old) ? 0 : -ESTALE;
}

/*
 * Puts the file @temporary in the place of @name. Exchanged rather than renamed, so that what is
 * taken away can be looked at: if the host has put another file there meanwhile, all is put back.
 */
static int link_exchange(int directory_fd, const char *temporary, const char *name,
			 const struct inode_identity *old)
{
	int error;

	if (renameat2(directory_fd, temporary, directory_fd, name, RENAME_EXCHANGE)) {
		/* Where that does not exist (9p, some network file systems) */
		if (errno != EINVAL)
			return -errno;
		return renameat(directory_fd, temporary, directory_fd, name) ? -errno : 0;
	}
	error = link_check(directory_fd, temporary, old);
	if (error)
		renameat2(directory_fd, temporary, directory_fd, name, RENAME_EXCHANGE);
	return error;
}

/* Makes @copy (an unnamed file, or one named @temporary already) be @name. */
static int link_replace(struct fs_server *server, int directory_fd, const char *name,
			const struct new_file *copy, const struct inode_identity *old)
{
	int error = 0;

	if (!copy->named && linkat(server->proc_fd, path_number(copy->fd).text, directory_fd,
				   copy->name, AT_SYMLINK_FOLLOW))
		return -errno;
	error = link_exchange(directory_fd, copy->name, name, old);
	/* The file that was there, or the copy that came to nothing. */
	unlinkat(directory_fd, copy->name, 0);
	return error;
}

/* The directory that the inode's name is in, if it still is the inode's; or -1: it has none. */
static int link_find_place(struct fs_server *server, struct inode *inode)
{
	struct inode *parent = inode->name ? inode_find(&server->inodes, inode->parent) : NULL;
	int fd = parent ? path_inode_fd(&server->inodes, parent) : -1;

	return fd >= 0 && link_check(fd, inode->name, &inode->identity) == 0 ? fd : -1;
}

/* Makes @inode stand for the file @copy (which stays the caller's), also where it is open. */
static int link_adopt(struct fs_server *server, struct inode *inode, int copy)
{
	struct inode_identity identity;
	struct statx status;
	int error, fd;

	error = path_status(copy, &status);
	if (!error)
		error = inode_reserve_fd(&server->inodes);
	if (error)
		return error;
	fd = path_reopen(server->proc_fd, copy, O_PATH);
	if (fd < 0) {
		inode_return_fd(&server->inodes);
		return fd;
	}
	identity = inode_identity_of(&status);
	inode_adopt_fd(&server->inodes, inode, fd);
	inode_change_identity(&server->inodes, inode, &identity);
	return replace_move_handles(server, inode->id, fd);
}

/* Gives the inode, whose file is @source, a copy of it. */
static int link_copy(struct fs_server *server, struct inode *inode, int source,
		     const struct statx *status)
{
	int directory_fd = link_find_place(server, inode);
	int place_fd = directory_fd < 0 ? server->root_fd : directory_fd;
	/* Without a name, as after an unlink, the copy has none either. */
	struct new_file copy = replace_make_file(place_fd);
	int error;

	if (copy.fd < 0)
		return copy.fd;
	error = copy_file(source, copy.fd, status);
	if (!error && directory_fd >= 0)
		error = link_replace(server, directory_fd, inode->name, &copy, &inode->identity);
	else if (copy.named)
		unlinkat(place_fd, copy.name, 0);
	if (!error)
		error = link_adopt(server, inode, copy.fd);
	fd_close(&copy.fd);
	return error;
}

int link_break(struct fs_server *server, struct inode *inode)
{
	FD_CLEANUP int source = -1;
	struct statx status;
	int error, fd;

	if (inode->identity.type == S_IFDIR)
		return 0;
	fd = path_inode_fd(&server->inodes, inode);
	error = fd < 0 ? fd : path_status(fd, &status);
	if (error)
		return error;
	/* One link may be left, and not be the guest's: the guest has unlinked its own. */
	if (!inode->identity.alias && !link_is_foreign(server, &status))
		return 0;
	/* A symbolic link, a FIFO: nothing to copy, and little that could change. */
	if (inode->identity.type != S_IFREG)
		return -EPERM;
	source = path_reopen(server->proc_fd, fd, O_RDONLY);
	return source < 0 ? source : link_copy(server, inode, source, &status);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/link_break.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
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

/* How many names of the file are known to be in the share. What the host has taken away since is
 * none of them any more. */
static uint32_t link_count(struct fs_server *server, const struct statx *status)
{
	const struct inode_identity identity = inode_identity_of(status);
	uint32_t count = identity_set_value(&server->own_links, &identity);

	if (count > status->stx_nlink && status->stx_nlink)
		identity_set_put(&server->own_links, &identity, count = status->stx_nlink);
	return count;
}

struct inode_identity link_identity(struct fs_server *server, const struct inode *directory,
				    const char *name, const struct statx *status)
{
	struct inode_identity identity = inode_identity_of(status);

	if (!server->read_only && !S_ISDIR(status->stx_mode) && status->stx_nlink > 1 &&
	    status->stx_nlink > link_count(server, status))
		identity.alias = link_alias(directory->id, name);
	return identity;
}

/* Without a note there is the name that the guest knows it by, if any. */
void link_note_made(struct fs_server *server, const struct inode *inode)
{
	uint32_t count = identity_set_value(&server->own_links, &inode->identity);

	if (inode->identity.type != S_IFDIR)
		identity_set_put(&server->own_links, &inode->identity,
				 count ? count + 1 : 1 + (inode->name != NULL));
}

void link_note_removed(struct fs_server *server, const struct statx *status)
{
	const struct inode_identity identity = inode_identity_of(status);
	uint32_t count = identity_set_value(&server->own_links, &identity);

	if (count > 1)
		identity_set_put(&server->own_links, &identity, count - 1);
	else if (count)
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

#define DELETED " (deleted)" /* what the kernel says of a name that is gone */

/* Where the name is by which @fd was opened: in the share, gone, or elsewhere. */
enum link_place { LINK_INSIDE, LINK_GONE, LINK_ELSEWHERE };

static enum link_place link_look(struct fs_server *server, const struct inode *inode, int fd)
{
	char root[PATH_MAX], path[PATH_MAX];
	ssize_t root_length =
		readlinkat(server->proc_fd, path_number(server->root_fd).text, root, sizeof(root));
	ssize_t length = readlinkat(server->proc_fd, path_number(fd).text, path, sizeof(path) - 1);
	const ssize_t deleted = (ssize_t)strlen(DELETED);
	struct inode_identity identity;
	struct statx status;
	FD_CLEANUP int found = -1;

	/* The root of all is the one name that ends in a slash. */
	if (root_length == 1)
		root_length = 0;
	if (root_length < 0 || length <= root_length ||
	    memcmp(path, root, (size_t)root_length) != 0 || path[root_length] != '/')
		return LINK_ELSEWHERE;
	path[length] = '\0';
	found = path_open_name(server->root_fd, path + root_length + 1);
	if (found >= 0 && path_status(found, &status) == 0) {
		identity = inode_identity_of(&status);
		if (inode_same_file(&identity, &inode->identity))
			return LINK_INSIDE;
	}
	return length > deleted && strcmp(path + length - deleted, DELETED) == 0 ? LINK_GONE
										 : LINK_ELSEWHERE;
}

/* Whether the file has links that are not names of it in the share, be they made before the run or
 * in it: the host may also have taken the name away by which the guest knows it. */
static bool link_is_foreign(struct fs_server *server, struct inode *inode, int fd,
			    const struct statx *status)
{
	enum link_place place = LINK_INSIDE;
	uint32_t own = link_count(server, status);

	if (status->stx_nlink == 0)
		return false;
	if (link_find_place(server, inode) < 0)
		place = link_look(server, inode, fd);
	if (!own)
		own = place == LINK_INSIDE ? 1 : 0;
	/* A name that the guest itself has removed is not counted any more. */
	else if (place == LINK_ELSEWHERE || (place == LINK_GONE && inode->name))
		own--;
	return status->stx_nlink > own;
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
	if (!error && directory_fd >= 0)
		link_note_removed(server, status);
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
	if (!inode->identity.alias && !link_is_foreign(server, inode, fd, &status))
		return 0;
	/* A symbolic link, a FIFO: nothing to copy, and little that could change. */
	if (inode->identity.type != S_IFREG)
		return -EPERM;
	source = path_reopen(server->proc_fd, fd, O_RDONLY);
	return source < 0 ? source : link_copy(server, inode, source, &status);
}

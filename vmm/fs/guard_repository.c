/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repositories that the guest makes. Git on the host obeys them when the user works in one, and in
 * a repository above it whose index has the place as a submodule: there, each "git status" runs
 * another in it. The objects that lead there are the guest's to write, so what the repository says
 * is what must be harmless: its configuration holds known keys only, at every moment, and it has no
 * hooks. For that it must be known where repositories can be: a directory becomes one under a name
 * that says so (git_place.h), or not at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/fs/git_config.h"
#include "vmm/fs/git_place.h"
#include "vmm/fs/guard_internal.h"
#include "vmm/fs/operation.h"

#define GUARD_TOLD 8U /* how many are named of what may be many */

/* The name that a directory has to git: an old repository is one whatever it is called. */
static const char *repository_name(struct fs_server *server, const struct inode *directory)
{
	if (identity_set_has(&server->guard.scanned.repositories, &directory->identity))
		return ".git";
	return directory->name;
}

/* What git may take a directory for, called @name (NULL: its own name) in @parent. */
static enum git_directory repository_walk(struct fs_server *server, const char *name,
					  const struct inode *parent)
{
	struct git_walk walk = {0};

	for (unsigned int depth = 0; depth < LIMIT_FS_DEPTH; depth++) {
		enum git_directory found = name ? git_walk_up(&walk, name) : GIT_DIRECTORY_UNKNOWN;

		if (found != GIT_DIRECTORY_OPEN)
			return found;
		if (!parent)
			return GIT_DIRECTORY_UNKNOWN;
		name = repository_name(server, parent);
		if (parent->id == FUSE_ROOT_ID)
			return name ? git_walk_up(&walk, name) : GIT_DIRECTORY_OUTSIDE;
		parent = inode_find(&server->inodes, parent->parent);
	}
	return GIT_DIRECTORY_UNKNOWN;
}

static enum git_directory repository_directory(struct fs_server *server,
					       const struct inode *directory)
{
	const char *name = repository_name(server, directory);
	struct git_walk walk = {0};

	if (directory->id != FUSE_ROOT_ID)
		return repository_walk(server, name,
				       inode_find(&server->inodes, directory->parent));
	return name ? git_walk_up(&walk, name) : GIT_DIRECTORY_OUTSIDE;
}

/* Whether a directory that the rules know for none is a repository nevertheless: the host has made
 * it meanwhile, since the guest cannot. */
static bool repository_is_there(struct fs_server *server, const struct inode *directory)
{
	struct inode *inode = inode_find(&server->inodes, directory->id);
	int fd = inode ? path_inode_fd(&server->inodes, inode) : -1;
	unsigned int parts = 0;
	struct statx status;

	if (fd < 0 || layer_look(server, directory, fd, "HEAD", &status))
		return false;
	for (unsigned int i = 0; git_part_names[i]; i++)
		if (layer_look(server, directory, fd, git_part_names[i], &status) == 0)
			parts |= git_part_of(git_part_names[i]);
	return git_parts_are_repository(parts);
}

static enum git_directory repository_look(struct fs_server *server, const struct inode *directory)
{
	enum git_directory known = repository_directory(server, directory);

	return known == GIT_DIRECTORY_OUTSIDE && repository_is_there(server, directory)
		       ? GIT_DIRECTORY_REPOSITORY
		       : known;
}

static enum git_place repository_place(struct fs_server *server, const struct inode *directory,
				       const char *name)
{
	enum git_directory above = GIT_DIRECTORY_OUTSIDE;
	const struct inode *parent;

	if (!git_place_may_matter(directory->name, name))
		return GIT_PLACE_NONE;
	if (directory->id != FUSE_ROOT_ID) {
		parent = inode_find(&server->inodes, directory->parent);
		above = parent ? repository_look(server, parent) : GIT_DIRECTORY_UNKNOWN;
	}
	return git_place_of(above, directory->name, repository_look(server, directory), name);
}

/* Goes on upwards from @directory: git_keep_up. */
static bool repository_keep_up(struct fs_server *server, struct git_keep *keep,
			       const struct inode *directory)
{
	for (unsigned int depth = 0; depth < LIMIT_FS_DEPTH; depth++) {
		const char *name = directory ? repository_name(server, directory) : NULL;

		if (name && git_keep_up(keep, name))
			return true;
		if (directory && directory->id == FUSE_ROOT_ID)
			return false;
		if (!name)
			break; /* its path cannot be followed */
		directory = inode_find(&server->inodes, directory->parent);
	}
	return true;
}

/* Whether git on the host writes files of its own in @directory. */
static bool repository_keeps(struct fs_server *server, const struct inode *directory)
{
	struct git_keep keep = {0};

	return repository_keep_up(server, &keep, directory);
}

/* The same of any directory in the directory @name of @parent. */
static bool repository_keeps_below(struct fs_server *server, const char *name,
				   const struct inode *parent)
{
	struct git_keep keep = {.begun = true};

	return git_keep_up(&keep, name) || repository_keep_up(server, &keep, parent);
}

/* From the directory @name of @parent, how many directories up the directory is that X.git lies in,
 * whose submodule it may be; 0: it is X.git, or in none. It stays the same wherever X.git is moved.
 */
static unsigned int repository_depth_of(struct fs_server *server, const char *name,
					const struct inode *parent)
{
	for (unsigned int depth = 1; depth < LIMIT_FS_DEPTH && name; depth++) {
		if (git_is_repository_name(name))
			return depth > 1 ? depth : 0;
		if (!parent || parent->id == FUSE_ROOT_ID)
			return 0;
		name = parent->name;
		parent = inode_find(&server->inodes, parent->parent);
	}
	return 0;
}

static unsigned int repository_depth(struct fs_server *server, const struct inode *directory)
{
	return directory->id == FUSE_ROOT_ID
		       ? 0
		       : repository_depth_of(server, directory->name,
					     inode_find(&server->inodes, directory->parent));
}

/* Refuses, and says why the first few times. */
static int repository_refuse(struct fs_server *server, const struct inode *directory,
			     const char *name, const char *why)
{
	struct guard_path buffer = {.text = ""};
	const char *path;

	server->guard.refusals++;
	if (server->guard.told_refused++ >= GUARD_TOLD)
		return -EACCES;
	path = guard_path(server, directory, name, &buffer);
	journal_refusal(server, path, why, false, 1);
	log_warning("refused the guest to make or change %s: %s (--unprotect '%s' allows it)", path,
		    why, path);
	return -EACCES;
}

static int repository_refuse_hook(struct fs_server *server, const struct inode *directory,
				  const char *name)
{
	return repository_refuse(server, directory, name, "git on the host would run it as a hook");
}

static int repository_refuse_config(struct fs_server *server, const struct inode *directory,
				    const char *name, const char *key)
{
	char why[GIT_CONFIG_KEY_BYTES + 96];

	snprintf(why, sizeof(why), "git on the host would obey its %s%s%s",
		 *key ? "setting '" : "contents", key, *key ? "'" : "");
	return repository_refuse(server, directory, name, why);
}

bool guard_repository_protects(struct fs_server *server, const struct inode *directory,
			       const char *name, const struct policy_state *state)
{
	return !state->unprotected_below && !server->guard.hide_only && !git_is_sample(name) &&
	       repository_place(server, directory, name) == GIT_PLACE_HOOK;
}

bool guard_repository_checks(struct fs_server *server, const struct inode *directory,
			     const char *name, const struct policy_state *state)
{
	return !state->unprotected_below && !server->guard.hide_only &&
	       repository_place(server, directory, name) == GIT_PLACE_CONFIG;
}

/* Whether @name would make @directory a repository under a name by which the rules do not know it.
 */
static bool repository_is_made(struct fs_server *server, const struct inode *directory,
			       int directory_fd, const char *name)
{
	unsigned int parts = git_part_of(name);
	struct statx status;

	if (!parts)
		return false;
	for (unsigned int i = 0; git_part_names[i]; i++)
		if (layer_look(server, directory, directory_fd, git_part_names[i], &status) == 0)
			parts |= git_part_of(git_part_names[i]);
	return git_parts_are_repository(parts) &&
	       repository_directory(server, directory) != GIT_DIRECTORY_REPOSITORY;
}

int guard_repository_make(struct fs_server *server, const struct inode *directory, int directory_fd,
			  const char *name, mode_t type, const struct policy_state *state)
{
	enum git_place place;

	if (state->unprotected_below)
		return 0;
	if (repository_is_made(server, directory, directory_fd, name))
		return repository_refuse(server, directory, name,
					 "git on the host would take the directory for a "
					 "repository, which only one named X.git may become");
	place = repository_place(server, directory, name);
	if (place == GIT_PLACE_HOOK && !(type == S_IFREG && git_is_sample(name)))
		return repository_refuse_hook(server, directory, name);
	if (place == GIT_PLACE_HOOKS && type != S_IFDIR)
		return repository_refuse_hook(server, directory, name);
	if (place == GIT_PLACE_CONFIG && type != S_IFREG)
		return repository_refuse_config(server, directory, name, "");
	return 0;
}

/* A symbolic link where git writes would have it write elsewhere: its index, for one, which any
 * "git status" may write anew, or a log of names that the guest has chosen. */
static int repository_refuse_symlink(struct fs_server *server, const struct inode *directory,
				     const char *name)
{
	return repository_refuse(server, directory, name,
				 "git on the host would write where the symbolic link leads");
}

int guard_symlink(struct fs_server *server, const struct inode *directory, const char *name,
		  const char *target)
{
	struct policy_verdict verdict;

	if (server->guard.hide_only || git_is_probe(target) || !repository_keeps(server, directory))
		return 0;
	policy_examine(server->guard.policy, directory->policy.state, name, &verdict);
	return verdict.state.unprotected_below ? 0
					       : repository_refuse_symlink(server, directory, name);
}

/* Whether @text, which is to be @name of @directory, is harmless; else refuses. */
static int repository_check_text(struct fs_server *server, const struct inode *directory,
				 const char *name, const char *text, size_t size)
{
	char key[GIT_CONFIG_KEY_BYTES] = "";
	const char *own = repository_name(server, directory);

	if (git_config_is_commondir(name)
		    ? git_commondir_is_harmless(own ? own : ".git", text, size)
		    : git_config_is_harmless(text, size, repository_depth(server, directory), key))
		return 0;
	return repository_refuse_config(server, directory, name, key);
}

/* Reads a whole configuration. Its size, -EFBIG, or -errno. */
static ssize_t repository_read(struct fs_server *server, int path_fd, char text[GIT_CONFIG_BYTES])
{
	FD_CLEANUP int fd = path_reopen(server->proc_fd, path_fd, O_RDONLY);
	struct statx status;
	int error = fd < 0 ? fd : path_status(fd, &status);

	if (error)
		return error;
	if (status.stx_size > GIT_CONFIG_BYTES)
		return -EFBIG;
	error = fd_pread_full(fd, text, status.stx_size, 0);
	return error ? error : (ssize_t)status.stx_size;
}

/* A file that is to become a configuration: it must be one, and have no other name to change it by.
 */
static int repository_move_config(struct fs_server *server, int directory_fd, const char *name,
				  const struct statx *status, const struct inode *new_directory,
				  const char *new_name)
{
	FD_CLEANUP int fd = path_open_name(directory_fd, name);
	char text[GIT_CONFIG_BYTES];
	ssize_t size = fd < 0 ? fd : repository_read(server, fd, text);

	if (size < 0 || status->stx_nlink != 1)
		return repository_refuse_config(server, new_directory, new_name, "");
	return repository_check_text(server, new_directory, new_name, text, (size_t)size);
}

/* A directory must not come to be where git looks for repositories with what it was not looked at
 * for before, nor a repository where nobody looks. */
static int repository_move_directory(struct fs_server *server, const struct inode *directory,
				     const char *name, const struct statx *status,
				     const struct inode *new_directory, const char *new_name)
{
	const struct inode_identity identity = inode_identity_of(status);
	enum git_directory from = repository_walk(server, name, directory);
	enum git_directory to = repository_walk(server, new_name, new_directory);

	/* An old repository of any name is one wherever it is. */
	if (identity_set_has(&server->guard.scanned.repositories, &identity))
		from = GIT_DIRECTORY_REPOSITORY;
	/* Symbolic links in it were not looked at. */
	if (from == to && repository_keeps_below(server, new_name, new_directory) &&
	    !repository_keeps_below(server, name, directory))
		return -EXDEV;
	/* Its work tree, so many directories up, would be outside of where it was allowed to be. */
	if (from == to && from == GIT_DIRECTORY_REPOSITORY &&
	    repository_depth_of(server, new_name, new_directory) <
		    repository_depth_of(server, name, directory))
		return -EXDEV;
	if (from == to && from != GIT_DIRECTORY_UNKNOWN)
		return 0;
	if (from == GIT_DIRECTORY_OUTSIDE && to == GIT_DIRECTORY_INSIDE)
		return -EXDEV; /* mv(1) copies then */
	if (from == GIT_DIRECTORY_INSIDE && to == GIT_DIRECTORY_OUTSIDE)
		return -EXDEV;
	return repository_refuse(server, new_directory, new_name,
				 "a repository does not change its place among others");
}

int guard_repository_move(struct fs_server *server, const struct inode *directory, int directory_fd,
			  const char *name, const struct statx *status,
			  const struct inode *new_directory, const char *new_name)
{
	struct policy_verdict verdict;
	enum git_place place;

	policy_examine(server->guard.policy, new_directory->policy.state, new_name, &verdict);
	if (verdict.state.unprotected_below)
		return 0;
	place = repository_place(server, new_directory, new_name);
	if (place == GIT_PLACE_CONFIG)
		return repository_move_config(server, directory_fd, name, status, new_directory,
					      new_name);
	if (S_ISLNK(status->stx_mode) && repository_keeps(server, new_directory))
		return repository_refuse_symlink(server, new_directory, new_name);
	if (!S_ISDIR(status->stx_mode))
		return 0;
	if (place == GIT_PLACE_HOOKS)
		return repository_refuse_hook(server, new_directory, new_name);
	return repository_move_directory(server, directory, name, status, new_directory, new_name);
}

int guard_link(struct fs_server *server, const struct inode *inode, const struct inode *directory,
	       const char *name)
{
	struct policy_verdict verdict;

	if (server->guard.hide_only)
		return 0;
	/* What is looked at by its name must have no other. */
	if (inode->policy.checked)
		return repository_refuse_config(server, directory, name, "");
	policy_examine(server->guard.policy, directory->policy.state, name, &verdict);
	if (verdict.state.unprotected_below)
		return 0;
	if (inode->identity.type == S_IFLNK && repository_keeps(server, directory))
		return repository_refuse_symlink(server, directory, name);
	if (repository_place(server, directory, name) == GIT_PLACE_NONE)
		return 0;
	return repository_refuse_config(server, directory, name, "");
}

/* The directory that an inode was found in, if that is still known. */
static const struct inode *repository_parent(struct fs_server *server, const struct inode *inode)
{
	return inode->name ? inode_find(&server->inodes, inode->parent) : NULL;
}

/* A configuration as it is, and as a write would have it. */
struct repository_text {
	size_t size; /* as it is */
	size_t end;  /* what the write brings along ends here */
	char bytes[GIT_CONFIG_BYTES];
	char old[GIT_CONFIG_BYTES];
};

/* Puts the bytes of @vector at @offset. False: too many. */
static bool repository_gather(struct repository_text *text, size_t offset,
			      const struct iovec *vector, int count)
{
	text->end = offset;
	for (int i = 0; i < count; i++) {
		if (vector[i].iov_len > sizeof(text->bytes) - text->end)
			return false;
		memcpy(text->bytes + text->end, vector[i].iov_base, vector[i].iov_len);
		text->end += vector[i].iov_len;
	}
	return true;
}

/* Writes what @text has more than the file, which no one that reads it sees as anything but a part
 * of what was looked at. The number of bytes from @offset on, or -errno. */
static int repository_append(const struct handle *handle, const struct repository_text *text,
			     size_t offset)
{
	ssize_t length = 0;

	if (text->end > text->size)
		length = pwrite(handle->fd, text->bytes + text->size, text->end - text->size,
				(off_t)text->size);
	if (length < 0)
		return -errno;
	return (int)(bytes_minimum(text->end, text->size + (size_t)length) - offset);
}

int guard_write(struct fs_server *server, const struct handle *handle, off_t offset,
		const struct iovec *vector, int count)
{
	struct inode *inode = inode_find(&server->inodes, handle->node_id);
	const struct inode *directory;
	struct repository_text text;
	ssize_t size;
	int error, fd;

	if (!inode)
		return -EBADF;
	if (!inode->policy.checked || count == 0)
		return 0;
	directory = repository_parent(server, inode);
	fd = path_inode_fd(&server->inodes, inode);
	size = fd < 0 ? fd : repository_read(server, fd, text.bytes);
	if (size < 0)
		return (int)size;
	text.size = (size_t)size;
	if (offset < 0)
		offset = size;
	memcpy(text.old, text.bytes, text.size);
	/* From here on it is a copy that counts: the guest may change the bytes it sent. */
	if (!directory || offset > size ||
	    !repository_gather(&text, (size_t)offset, vector, count) ||
	    memcmp(text.old, text.bytes, text.size) != 0)
		return -EACCES;
	error = repository_check_text(server, directory, inode->name, text.bytes,
				      text.end > text.size ? text.end : text.size);
	return error ? error : repository_append(handle, &text, (size_t)offset);
}

int guard_rewrite(struct fs_server *server, const struct handle *handle)
{
	const struct inode *inode = inode_find(&server->inodes, handle->node_id);

	if (!inode)
		return -EBADF;
	return inode->policy.checked ? -EXDEV : 0;
}

int guard_truncate(struct fs_server *server, struct inode *inode, uint64_t size)
{
	const struct inode *directory = repository_parent(server, inode);
	char text[GIT_CONFIG_BYTES];
	ssize_t length;
	int fd;

	if (!inode->policy.checked || size == 0)
		return 0;
	fd = path_inode_fd(&server->inodes, inode);
	length = fd < 0 ? fd : repository_read(server, fd, text);
	if (length < 0)
		return (int)length;
	if (!directory || size > (uint64_t)length)
		return -EACCES;
	return repository_check_text(server, directory, inode->name, text, size);
}

void guard_repository_tell(struct fs_server *server, const struct inode *directory,
			   const char *name)
{
	struct guard_path buffer = {.text = ""};

	journal_finding(server, FS_FINDING_REPOSITORY,
			guard_path(server, directory, name, &buffer));
	if (server->guard.hide_only || server->guard.told_made >= GUARD_TOLD)
		return;
	server->guard.told_made++;
	log_warning("the guest has made a git repository, %s: what is in it is the guest's, but "
		    "for settings and hooks that would have git run programs",
		    guard_path(server, directory, name, &buffer));
}

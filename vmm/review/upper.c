/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/upper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vmm/base/fd.h"

bool upper_is_opaque(int directory_fd)
{
	char value;

	return fgetxattr(directory_fd, REVIEW_XATTR_OPAQUE, &value, 1) == 1 && value == 'y';
}

int upper_open_file(int upper_fd, const char *path)
{
	const char *name;
	int FD_CLEANUP directory_fd = -1, FD_CLEANUP fd = tree_open_file(upper_fd, path);
	struct review_object object;
	int error, opened;

	if (fd != -EACCES)
		return fd_take(&fd);
	directory_fd = tree_open_parent(upper_fd, path, &name);
	if (directory_fd < 0)
		return directory_fd;
	fd = tree_open_entry(directory_fd, name);
	if (fd < 0)
		return fd;
	error = tree_status(fd, &object);
	if (!error)
		error = tree_change_mode(fd, object.mode | S_IRUSR);
	if (error)
		return error;
	opened = tree_reopen(fd);
	tree_change_mode(fd, object.mode);
	return opened;
}

/* Marks the directory @name opaque, whatever its permissions are. */
static int upper_set_opaque(int directory_fd, const char *name)
{
	int FD_CLEANUP fd = tree_open_entry(directory_fd, name);
	struct review_object object;
	char path[32];
	int error = fd < 0 ? fd : tree_status(fd, &object);

	if (error || !S_ISDIR(object.mode))
		return error;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (setxattr(path, REVIEW_XATTR_OPAQUE, "y", 1, 0) == 0)
		return 0;
	if (errno != EACCES)
		return -errno;
	error = tree_change_mode(fd, object.mode | S_IWUSR);
	if (!error && setxattr(path, REVIEW_XATTR_OPAQUE, "y", 1, 0))
		error = -errno;
	tree_change_mode(fd, object.mode);
	return error;
}

/* Whiteouts for what the host has in the directory and @names has not. */
static int upper_add_whiteouts(const struct review_share *share, const char *path, int upper_fd,
			       const struct tree_names *names)
{
	const struct review_policy *policy = share->policy;
	int FD_CLEANUP host_fd = tree_open_directory(share->host_fd, path, O_RDONLY);
	char entry_path[LIMIT_REVIEW_PATH_BYTES];
	struct tree_names host_names;
	int error;

	if (host_fd == -ENOENT || host_fd == -ENOTDIR || host_fd == -ELOOP)
		return 0;
	if (host_fd < 0)
		return host_fd;
	error = tree_list(host_fd, &host_names);
	for (size_t i = 0; !error && i < host_names.count; i++) {
		const char *name = host_names.names[i];

		if (tree_names_have(names, name))
			continue;
		if (snprintf(entry_path, sizeof(entry_path), "%s%s%s", path, *path ? "/" : "",
			     name) >= (int)sizeof(entry_path))
			error = -ENAMETOOLONG;
		else if (!policy->hidden_by(policy->context, entry_path) &&
			 mknodat(upper_fd, name, S_IFCHR, makedev(0, 0)))
			error = -errno;
	}
	tree_names_destroy(&host_names);
	return error;
}

/* The mark goes last: whatever ends this early, it can be done again. */
static int upper_spell_out_directory(const struct review_share *share, const char *path,
				     int upper_fd, const struct tree_names *names)
{
	int error = 0;

	for (size_t i = 0; !error && i < names->count; i++)
		error = upper_set_opaque(upper_fd, names->names[i]);
	if (!error)
		error = upper_add_whiteouts(share, path, upper_fd, names);
	if (!error && fremovexattr(upper_fd, REVIEW_XATTR_OPAQUE))
		error = -errno;
	return error;
}

/* Does it with a directory that may deny its owner to write. */
static int upper_spell_out_any(const struct review_share *share, const char *path, int upper_fd,
			       const struct tree_names *names)
{
	struct review_object object;
	int error = tree_status(upper_fd, &object);

	if (error)
		return error;
	if (object.mode & S_IWUSR)
		return upper_spell_out_directory(share, path, upper_fd, names);
	error = tree_change_mode(upper_fd, object.mode | S_IRWXU);
	if (!error)
		error = upper_spell_out_directory(share, path, upper_fd, names);
	tree_change_mode(upper_fd, object.mode);
	return error;
}

static int upper_push_directories(struct tree_pending **list, const char *path, int upper_fd,
				  const struct tree_names *names)
{
	char entry_path[LIMIT_REVIEW_PATH_BYTES];
	struct review_object object;
	int error = 0;

	for (size_t i = 0; !error && i < names->count; i++) {
		/* What is too deep to be reviewed stays as it is: it is never applied. */
		if (snprintf(entry_path, sizeof(entry_path), "%s%s%s", path, *path ? "/" : "",
			     names->names[i]) >= (int)sizeof(entry_path))
			continue;
		error = tree_look(upper_fd, names->names[i], &object);
		if (!error && S_ISDIR(object.mode))
			error = tree_pending_push(list, entry_path, 0);
		else if (error == -EACCES)
			error = 0;
	}
	return error;
}

int upper_spell_out(const struct review_share *share)
{
	struct tree_pending *list = NULL;
	int error = share->upper_fd < 0 ? 0 : tree_pending_push(&list, "", 0);

	while (list) {
		struct tree_pending *directory = tree_pending_pop(&list);
		int FD_CLEANUP upper_fd =
			error ? -1
			      : tree_open_directory(share->upper_fd, directory->path, O_RDONLY);
		struct tree_names names = {0};

		if (!error && upper_fd < 0 && upper_fd != -EACCES)
			error = upper_fd;
		if (upper_fd >= 0)
			error = tree_list(upper_fd, &names);
		if (!error && upper_fd >= 0 && upper_is_opaque(upper_fd))
			error = upper_spell_out_any(share, directory->path, upper_fd, &names);
		if (!error && upper_fd >= 0)
			error = upper_push_directories(&list, directory->path, upper_fd, &names);
		tree_names_destroy(&names);
		free(directory);
	}
	return error;
}

int upper_forget(const struct review_share *share, const struct review_change *change)
{
	int flags = change->wanted.mode && S_ISDIR(change->wanted.mode) ? AT_REMOVEDIR : 0;
	const char *name;
	int FD_CLEANUP directory_fd = tree_open_parent(share->upper_fd, change->path, &name);
	struct review_object directory;
	int error;

	if (change->implied || directory_fd == -ENOENT)
		return 0;
	if (directory_fd < 0)
		return directory_fd;
	if (unlinkat(directory_fd, name, flags) == 0 || errno == ENOENT || errno == ENOTEMPTY)
		return 0;
	if (errno != EACCES)
		return -errno;
	error = tree_status(directory_fd, &directory);
	if (!error)
		error = tree_change_mode(directory_fd, directory.mode | S_IRWXU);
	if (error)
		return error;
	if (unlinkat(directory_fd, name, flags) && errno != ENOTEMPTY)
		error = -errno;
	tree_change_mode(directory_fd, directory.mode);
	return error;
}

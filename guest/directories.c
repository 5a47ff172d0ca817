/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/directories.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int directories_contain(const char *directory, const char *path)
{
	size_t length = strlen(directory);

	while (length && directory[length - 1] == '/')
		length--;
	return !strncmp(path, directory, length) && (!path[length] || path[length] == '/');
}

/* Makes one directory whose parent exists. */
static int make_one(const char *path, const struct directory_owner *owner)
{
	if (mkdir(path, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (owner && directories_contain(owner->home, path) &&
	    lchown(path, owner->uid, owner->gid) < 0)
		return -errno;
	return 0;
}

int directories_make(const char *path, const struct directory_owner *owner)
{
	char prefix[PATH_MAX];
	size_t length = strlen(path);
	int error = make_one(path, owner);

	if (error != -ENOENT)
		return error;
	if (length >= sizeof(prefix))
		return -ENAMETOOLONG;
	memcpy(prefix, path, length + 1);
	for (size_t index = 1; index < length; index++) {
		if (prefix[index] != '/')
			continue;
		prefix[index] = 0;
		error = make_one(prefix, owner);
		prefix[index] = '/';
		if (error)
			return error;
	}
	return make_one(path, owner);
}

int directories_let_through(const char *path)
{
	char prefix[PATH_MAX];
	const size_t length = strlen(path);
	struct stat status;

	if (length >= sizeof(prefix))
		return -ENAMETOOLONG;
	memcpy(prefix, path, length + 1);
	for (size_t index = 1; index < length; index++) {
		if (prefix[index] != '/')
			continue;
		prefix[index] = 0;
		if (stat(prefix, &status) < 0)
			return -errno;
		if (!(status.st_mode & S_IXOTH) &&
		    chmod(prefix, (status.st_mode & 07777) | S_IXGRP | S_IXOTH) < 0)
			return -errno;
		prefix[index] = '/';
	}
	return 0;
}

int directories_make_home(const struct directory_owner *owner)
{
	struct stat status;
	int error = directories_make(owner->home, owner);

	if (error)
		return error;
	if (stat(owner->home, &status) < 0)
		return -errno;
	if (!S_ISDIR(status.st_mode))
		return -ENOTDIR;
	/* An image may have the directory, made for another user; "/" is no one's home. */
	if (status.st_uid == owner->uid || !strcmp(owner->home, "/"))
		return 0;
	return chown(owner->home, owner->uid, owner->gid) < 0 ? -errno : 0;
}

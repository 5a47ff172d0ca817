/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/cache_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"

/* Enters a directory, made if it is not there. *@fd is replaced. */
static int enter(int *fd, const char *name, mode_t mode)
{
	int entered;

	if (mkdirat(*fd, name, mode) < 0 && errno != EEXIST)
		return -errno;
	entered = openat(*fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (entered < 0)
		return -errno;
	fd_close(fd);
	*fd = entered;
	return 0;
}

/* The user's cache directory. 0 or -errno. */
static int base_path(char path[PATH_MAX])
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int length;

	/* The specification has relative paths ignored. */
	if (base && base[0] == '/')
		length = snprintf(path, PATH_MAX, "%s", base);
	else if (home && home[0] == '/')
		length = snprintf(path, PATH_MAX, "%s/.cache", home);
	else
		return -ENOENT;
	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int cache_directory_path(char path[PATH_MAX])
{
	int error = base_path(path);
	size_t length = error ? 0 : strlen(path);

	if (error)
		return error;
	return snprintf(path + length, PATH_MAX - length, "/mvagent") < (int)(PATH_MAX - length)
		       ? 0
		       : -ENAMETOOLONG;
}

int cache_directory_open(const char *name)
{
	char path[PATH_MAX];
	FD_CLEANUP int fd = -1;
	int error = base_path(path);

	if (error)
		return error;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	error = enter(&fd, "mvagent", 0755);
	error = error ? error : enter(&fd, name, 0700);
	return error ? error : fd_take(&fd);
}

void cache_directory_forget(const char *name)
{
	FD_CLEANUP int fd = cache_directory_open(name);
	int opened = fd < 0 ? -1 : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = opened < 0 ? NULL : fdopendir(opened);
	const struct dirent *entry;

	if (!directory) {
		fd_close(&opened);
		return;
	}
	while ((entry = readdir(directory)))
		unlinkat(opened, entry->d_name, 0); /* not "." and "..": they are directories */
	closedir(directory);
}

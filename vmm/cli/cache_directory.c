/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/cache_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

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

int cache_directory_open(const char *name)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char path[PATH_MAX];
	FD_CLEANUP int fd = -1;
	int error, length;

	/* The specification has relative paths ignored. */
	if (base && base[0] == '/')
		length = snprintf(path, sizeof(path), "%s", base);
	else if (home && home[0] == '/')
		length = snprintf(path, sizeof(path), "%s/.cache", home);
	else
		return -ENOENT;
	if (length >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	error = enter(&fd, "mvagent", 0755);
	error = error ? error : enter(&fd, name, 0700);
	return error ? error : fd_take(&fd);
}

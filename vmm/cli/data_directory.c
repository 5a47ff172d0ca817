/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/data_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"

/* Enters a directory, made if it is not there. *@fd is replaced. */
static int enter(int *fd, const char *name, bool make, mode_t mode, int flags)
{
	int entered;

	if (make && mkdirat(*fd, name, mode) < 0 && errno != EEXIST)
		return -errno;
	entered = openat(*fd, name, flags | O_DIRECTORY | O_CLOEXEC);
	if (entered < 0)
		return -errno;
	fd_close(fd);
	*fd = entered;
	return 0;
}

/* The user's data directory; the specification has relative paths ignored. */
static int open_base(bool make)
{
	const char *base = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	FD_CLEANUP int fd = -1;
	int error;

	if (base && base[0] == '/') {
		if (make && mkdir(base, 0700) < 0 && errno != EEXIST)
			return -errno;
		fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
		return fd < 0 ? -errno : fd_take(&fd);
	}
	if (!home || home[0] != '/') {
		if (!make)
			return -ENOENT;
		log_error("HOME is not set: there is no place for images");
		return -EINVAL;
	}
	fd = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	error = enter(&fd, ".local", make, 0700, O_PATH);
	error = error ? error : enter(&fd, "share", make, 0700, O_PATH);
	return error ? error : fd_take(&fd);
}

/* What others could have put there is not the user's. */
static int check_private(int fd)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return log_errno(-errno, "cannot look at the directory of images");
	if (status.st_uid == geteuid() && !(status.st_mode & (S_IRWXG | S_IRWXO)))
		return 0;
	log_error("the directory of images (mvagent in your data directory) is not yours alone: "
		  "take it into your hands (chown), and close it to others (chmod 700)");
	return -EPERM;
}

int data_directory_open(const char *name, bool make)
{
	FD_CLEANUP int fd = open_base(make);
	int error = fd < 0 ? fd : 0;

	error = error ? error : enter(&fd, "mvagent", make, 0755, O_PATH);
	error = error ? error : enter(&fd, name, make, 0700, O_RDONLY | O_NOFOLLOW);
	if (error == -ENOENT && !make)
		return error;
	if (error == -EINVAL)
		return error;
	if (error)
		return log_errno(error, "cannot use the directory of images");
	error = check_private(fd);
	return error ? error : fd_take(&fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"

#define TEMPORARY_ATTEMPTS 8

/* The standard output or error that this file is, or -1: /dev/stdout must not be replaced. */
static int find_standard_stream(const struct stat *wanted)
{
	struct stat status;

	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fstat(fd, &status) == 0 && status.st_dev == wanted->st_dev &&
		    status.st_ino == wanted->st_ino)
			return fd;
	}
	return -1;
}

static int open_stream(struct report_file *file, int fd)
{
	file->fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return file->fd < 0 ? -errno : 0;
}

static int open_directory(struct report_file *file, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char *directory = slash ? strndup(path, (size_t)(name - path)) : strdup(".");
	int error = -ENOMEM;

	file->name = strdup(name);
	if (directory && file->name) {
		file->directory_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
		error = file->directory_fd < 0 ? -errno : 0;
	}
	free(directory);
	if (!error && !*name)
		error = -ENOENT;
	if (!error && faccessat(file->directory_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		error = -errno;
	return error;
}

static int open_path(struct report_file *file, const char *path)
{
	char resolved[PATH_MAX];
	struct stat status;
	int stream;

	if (strcmp(path, "-") == 0)
		return open_stream(file, STDERR_FILENO);
	if (stat(path, &status) < 0)
		return errno == ENOENT ? open_directory(file, path) : -errno;
	stream = find_standard_stream(&status);
	if (stream >= 0)
		return open_stream(file, stream);
	if (!S_ISREG(status.st_mode)) {
		file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		return file->fd < 0 ? -errno : 0;
	}
	/* A link is followed now: the file it leads to is replaced, not the link. */
	return realpath(path, resolved) ? open_directory(file, resolved) : -errno;
}

int report_file_open(struct report_file *file, const char *option, const char *path)
{
	int error;

	*file = REPORT_FILE_NONE;
	error = open_path(file, path);
	if (error) {
		report_file_close(file);
		log_errno(error, "%s %s: cannot write there", option, path);
	}
	return error;
}

/* A new file beside the one to replace; @name gets its name. fd or -errno. */
static int create_temporary(int directory_fd, char name[32])
{
	for (int attempt = 0; attempt < TEMPORARY_ATTEMPTS; attempt++) {
		uint64_t random;
		int fd;

		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		snprintf(name, 32, ".mvagent-%016llx", (unsigned long long)random);
		/* O_EXCL: never through a link. The mode is what the user's umask leaves of it. */
		fd = openat(directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

int report_file_write(const struct report_file *file, const char *text)
{
	char temporary[32];
	int error, FD_CLEANUP fd = -1;

	if (file->fd >= 0)
		return fd_write_full(file->fd, text, strlen(text));
	fd = create_temporary(file->directory_fd, temporary);
	if (fd < 0)
		return fd;
	error = fd_write_full(fd, text, strlen(text));
	if (!error && renameat(file->directory_fd, temporary, file->directory_fd, file->name) < 0)
		error = -errno;
	if (error)
		unlinkat(file->directory_fd, temporary, 0);
	return error;
}

void report_file_close(struct report_file *file)
{
	fd_close(&file->fd);
	fd_close(&file->directory_fd);
	free(file->name);
	file->name = NULL;
}

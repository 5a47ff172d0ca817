/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"

#define FILE_BYTES (1U << 20)

int files_read(const char *path, char **text)
{
	FD_CLEANUP int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat status = {0};
	size_t size;
	int error;

	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd >= 0 && fstat(fd, &status) < 0)
		return -errno;
	if (status.st_size > FILE_BYTES)
		return -EFBIG;
	size = (size_t)status.st_size;
	*text = calloc(1, size + 1);
	if (!*text)
		return -ENOMEM;
	error = size ? fd_read_full(fd, *text, size) : 0;
	if (error) {
		free(*text);
		*text = NULL;
	}
	return error;
}

int files_write(const char *path, const char *text)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	FD_CLEANUP int fd = open(path, flags, 0644);

	/* A distribution may have it lead to a file that some service would make. */
	if (fd < 0 && errno == ELOOP && !unlink(path))
		fd = open(path, flags, 0644);
	if (fd < 0)
		return -errno;
	return fd_write_full(fd, text, strlen(text));
}

int files_append(const char *path, const char *text)
{
	char *before = NULL, *joined = NULL;
	int error = files_read(path, &before);
	const bool any = before && *before;

	/* The last line may lack its end; an empty one does not matter. */
	if (!error && asprintf(&joined, "%s%s%s", any ? before : "", any ? "\n" : "", text) < 0)
		error = -ENOMEM;
	if (!error)
		error = files_write(path, joined);
	free(joined);
	free(before);
	return error;
}

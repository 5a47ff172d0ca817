/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/copy.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/review/layout.h"

#define COPY_BYTES       65536U
#define ATTRIBUTES_BYTES 65536U /* XATTR_LIST_MAX, XATTR_SIZE_MAX */

/* By hand, where the two file systems cannot do it between them. */
static int copy_by_hand(int from, int to, off_t offset, off_t end)
{
	char *buffer = malloc(COPY_BYTES);
	int error = buffer ? 0 : -ENOMEM;

	if (!error && lseek(to, offset, SEEK_SET) < 0)
		error = -errno;
	while (!error && offset < end) {
		size_t wanted = (size_t)bytes_minimum((uint64_t)(end - offset), COPY_BYTES);

		error = fd_pread_full(from, buffer, wanted, offset);
		if (!error)
			error = fd_write_full(to, buffer, wanted);
		offset += (off_t)wanted;
	}
	free(buffer);
	return error;
}

static int copy_range(int from, int to, off_t offset, off_t end)
{
	off_t to_offset = offset;

	while (offset < end) {
		ssize_t count =
			copy_file_range(from, &offset, to, &to_offset, (size_t)(end - offset), 0);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return copy_by_hand(from, to, offset, end);
	}
	return 0;
}

int copy_content(int from, int to)
{
	struct stat status;
	off_t end = 0;
	int error = 0;

	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	if (fstat(from, &status))
		return -errno;
	while (!error && end < status.st_size) {
		off_t begin = lseek(from, end, SEEK_DATA);

		if (begin < 0 && errno == ENXIO)
			break;
		end = begin < 0 ? -1 : lseek(from, begin, SEEK_HOLE);
		if (end < 0)
			return -errno;
		if (end > status.st_size)
			end = status.st_size;
		error = copy_range(from, to, begin, end);
	}
	if (!error && ftruncate(to, status.st_size))
		error = -errno;
	return error;
}

static int copy_attribute(int from, int to, const char *name, char *value)
{
	ssize_t size = fgetxattr(from, name, value, ATTRIBUTES_BYTES);

	if (size < 0)
		return errno == ENODATA ? 0 : -errno;
	/* The host's file system may have none, or no room for it: the content counts. */
	if (fsetxattr(to, name, value, (size_t)size, 0) && errno != EOPNOTSUPP && errno != ENOSPC &&
	    errno != E2BIG)
		return -errno;
	return 0;
}

int copy_attributes(int from, int to)
{
	char *names = malloc((size_t)2 * ATTRIBUTES_BYTES);
	ssize_t length = names ? flistxattr(from, names, ATTRIBUTES_BYTES - 1) : -1;
	int error = 0;

	if (!names)
		return -ENOMEM;
	if (length < 0 && errno != EOPNOTSUPP)
		error = -errno;
	if (length > 0)
		names[length] = '\0';
	for (char *name = names; !error && length > 0 && name < names + length;
	     name += strlen(name) + 1) {
		bool ours = strncmp(name, REVIEW_XATTR_OURS, strlen(REVIEW_XATTR_OURS)) == 0;

		if (strncmp(name, "user.", 5) == 0 && !ours)
			error = copy_attribute(from, to, name, names + ATTRIBUTES_BYTES);
	}
	free(names);
	return error;
}

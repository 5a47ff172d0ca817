/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/copy.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/limits.h"
#include "vmm/review/layout.h"

#define COPY_BUFFER_BYTES 65536U
#define COPY_MODE_MASK    (S_ISVTX | S_IRWXU | S_IRWXG | S_IRWXO)

/* Reads and writes: between file systems that cannot copy for us. */
static int copy_bytes(int from, int to, off_t start, off_t end)
{
	uint8_t buffer[COPY_BUFFER_BYTES];

	while (start < end) {
		size_t wanted = (size_t)bytes_minimum((uint64_t)(end - start), sizeof(buffer));
		ssize_t length = pread(from, buffer, wanted, start);

		if (length <= 0)
			return length < 0 ? -errno : 0;
		if (lseek(to, start, SEEK_SET) < 0)
			return -errno;
		if (fd_write_full(to, buffer, (size_t)length))
			return -errno;
		start += length;
	}
	return 0;
}

static int copy_extent(int from, int to, off_t start, off_t end)
{
	off_t out = start;

	while (start < end) {
		ssize_t length = copy_file_range(from, &start, to, &out, (size_t)(end - start), 0);

		if (length > 0)
			continue;
		if (length == 0)
			return 0;
		if (errno == EINTR)
			continue;
		return copy_bytes(from, to, start, end);
	}
	return 0;
}

static int copy_contents(int from, int to, off_t size)
{
	off_t start = 0;

	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	while (start < size) {
		off_t data = lseek(from, start, SEEK_DATA);
		off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
		int error;

		if (data < 0 && errno == ENXIO)
			break; /* the rest is a hole */
		if (data < 0 || hole < 0)
			return copy_extent(from, to, start, size);
		error = copy_extent(from, to, data, hole);
		if (error)
			return error;
		start = hole;
	}
	return ftruncate(to, size) ? -errno : 0;
}

/* The guest knows no other attributes than user.*; a file system without them has none to copy. */
int copy_user_attributes(int from, int to)
{
	char names[65536];
	ssize_t size = flistxattr(from, names, sizeof(names));
	uint8_t *value;
	int error = 0;

	if (size <= 0)
		return size < 0 && errno != EOPNOTSUPP ? -errno : 0;
	value = malloc(XATTR_SIZE_MAX);
	if (!value)
		return -ENOMEM;
	for (const char *name = names; !error && name < names + size; name += strlen(name) + 1) {
		ssize_t length;

		if (strncmp(name, "user.", 5) != 0 ||
		    strncmp(name, REVIEW_XATTR_OURS, strlen(REVIEW_XATTR_OURS)) == 0)
			continue;
		length = fgetxattr(from, name, value, XATTR_SIZE_MAX);
		if (length < 0 || fsetxattr(to, name, value, (size_t)length, 0))
			error = -errno;
	}
	free(value);
	return error;
}

int copy_file(int from, int to, const struct statx *status)
{
	const struct timespec times[2] = {
		{status->stx_atime.tv_sec, status->stx_atime.tv_nsec},
		{status->stx_mtime.tv_sec, status->stx_mtime.tv_nsec},
	};
	int error = copy_contents(from, to, (off_t)status->stx_size);

	if (!error)
		error = copy_user_attributes(from, to);
	if (error)
		return error;
	/* Group before mode, which it may change; another group than ours may not be given. */
	if (fchown(to, (uid_t)-1, status->stx_gid) && errno != EPERM)
		return -errno;
	if (fchmod(to, status->stx_mode & COPY_MODE_MASK))
		return -errno;
	return futimens(to, times) ? -errno : 0;
}

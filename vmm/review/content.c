/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/content.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/review/upper.h"

#define BINARY_TEST_BYTES 8000 /* git's FIRST_FEW_BYTES */

bool content_exists(const struct review_object *object)
{
	return S_ISREG(object->mode) || S_ISLNK(object->mode);
}

/* A file in memory with the target of a link. fd or -errno. */
static int open_link(int root_fd, const char *path)
{
	char target[LIMIT_FS_SYMLINK_BYTES + 1];
	ssize_t length = tree_read_link(root_fd, path, target);
	int error, FD_CLEANUP fd = -1;

	if (length < 0)
		return (int)length;
	fd = memfd_create("symlink", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	error = fd_write_full(fd, target, (size_t)length);
	if (!error && lseek(fd, 0, SEEK_SET))
		error = -errno;
	return error ? error : fd_take(&fd);
}

static int content_open(struct content *content, int root_fd, const char *path,
			const struct review_object *object,
			int (*open_file)(int root_fd, const char *path))
{
	char first[BINARY_TEST_BYTES];
	struct stat status;
	ssize_t length;

	if (!content_exists(object))
		return 0;
	content->fd = S_ISLNK(object->mode) ? open_link(root_fd, path) : open_file(root_fd, path);
	if (content->fd < 0)
		return content->fd;
	if (fstat(content->fd, &status))
		return -errno;
	content->size = (uint64_t)status.st_size;
	length = pread(content->fd, first, sizeof(first), 0);
	if (length < 0)
		return -errno;
	content->binary = memchr(first, '\0', (size_t)length);
	return 0;
}

int content_open_pair(struct content_pair *pair, const struct review_share *share,
		      const struct review_change *change)
{
	int error;

	*pair = (struct content_pair){.before.fd = -1, .after.fd = -1};
	error = content_open(&pair->before, share->host_fd, change->path, &change->host,
			     tree_open_file);
	if (!error)
		error = content_open(&pair->after, share->upper_fd, change->path, &change->wanted,
				     upper_open_file);
	return error;
}

void content_close_pair(struct content_pair *pair)
{
	fd_close(&pair->before.fd);
	fd_close(&pair->after.fd);
}

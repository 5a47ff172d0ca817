/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/contents.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/root/erofs_format.h"

int contents_begin(struct contents *contents, uint64_t size, uint64_t *place)
{
	if (size > contents->limit || contents->next > contents->limit - size) {
		log_error("the files take more than %llu MiB in all; --max-size allows more",
			  (unsigned long long)contents->limit >> 20);
		return -EFBIG;
	}
	*place = contents->next;
	contents->next = bytes_align_up(contents->next + size, EROFS_BLOCK_BYTES);
	return 0;
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
	return length == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

static int write_all(int fd, uint64_t offset, const uint8_t *bytes, size_t length)
{
	while (length) {
		ssize_t count = pwrite(fd, bytes, length, (off_t)offset);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return log_errno(count ? -errno : -ENOSPC, "cannot write what is unpacked");
		bytes += count;
		offset += (uint64_t)count;
		length -= (size_t)count;
	}
	return 0;
}

int contents_write(struct contents *contents, uint64_t offset, const void *bytes, size_t length)
{
	const uint8_t *next = bytes;
	int error = 0;

	while (length && !error) {
		/* To the end of a block of the file, so that blocks of zeros are seen. */
		size_t part = EROFS_BLOCK_BYTES - offset % EROFS_BLOCK_BYTES;

		if (is_zero(next, bytes_minimum(part, length))) {
			part = bytes_minimum(part, length);
		} else {
			/* As much as is worth writing at once. */
			part = length;
			for (size_t seen = EROFS_BLOCK_BYTES; seen + EROFS_BLOCK_BYTES <= length;
			     seen += EROFS_BLOCK_BYTES) {
				if (!is_zero(next + seen, EROFS_BLOCK_BYTES))
					continue;
				part = seen;
				break;
			}
			error = write_all(contents->fd, offset, next, part);
		}
		next += part;
		offset += part;
		length -= part;
	}
	return error;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/mapping.h"

#include <errno.h>
#include <sys/mman.h>

#include "vmm/base/bytes.h"

#define UNIT_MAX (1UL << 30) /* the largest page that a file can have */

int mapping_create(struct mapping *mapping, int fd, off_t offset, size_t length, size_t unit)
{
	const size_t alignment = unit > MAPPING_GUARD_BYTES ? unit : MAPPING_GUARD_BYTES;
	uint64_t start;

	*mapping = (struct mapping){0};
	if (length == 0 || unit > UNIT_MAX || length > SIZE_MAX / 2)
		return -EINVAL;
	/* A guard before, and one behind a last page that may not be whole; and room to move. */
	mapping->reserved_length = length + 2 * MAPPING_GUARD_BYTES + 2 * alignment;
	mapping->reserved = mmap(NULL, mapping->reserved_length, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapping->reserved == MAP_FAILED) {
		*mapping = (struct mapping){0};
		return -errno;
	}
	start = bytes_align_up((uintptr_t)mapping->reserved + MAPPING_GUARD_BYTES, alignment);
	mapping->host = mmap((void *)start, length, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, offset);
	mapping->length = length;
	if (mapping->host == MAP_FAILED) {
		int error = -errno;

		mapping->host = NULL;
		mapping_destroy(mapping);
		return error;
	}
	return 0;
}

void mapping_destroy(struct mapping *mapping)
{
	if (mapping->reserved)
		munmap(mapping->reserved, mapping->reserved_length);
	*mapping = (struct mapping){0};
}

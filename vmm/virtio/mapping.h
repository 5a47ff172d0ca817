/* SPDX-License-Identifier: Apache-2.0 */
/* Guest memory in a process of the host, with nothing beside it: an access that goes beyond it by
 * less than GUARD_BYTES ends the process instead of reaching something else. */
#ifndef MVAGENT_VIRTIO_MAPPING_H
#define MVAGENT_VIRTIO_MAPPING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MAPPING_GUARD_BYTES (2UL << 20)

struct mapping {
	uint8_t *host; /* the first byte of the file's range; NULL: there is none */
	size_t length;
	void *reserved; /* both guards included */
	size_t reserved_length;
};

/* Maps @length bytes of @fd from @offset, shared, at a multiple of @unit, in which the file can be
 * mapped, and of 2 MiB (which huge pages need). 0 or -errno. */
int mapping_create(struct mapping *mapping, int fd, off_t offset, size_t length, size_t unit);
void mapping_destroy(struct mapping *mapping);

#endif

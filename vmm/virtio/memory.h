/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest memory as every process of a run sees it: a few regions of guest physical addresses, each
 * mapped from a shared memfd. This is the only way to reach guest bytes: an address and a length
 * come in, and either the whole range is inside one region or nothing is returned. Pointers
 * obtained here are for the request at hand and are never kept.
 *
 * The guest writes to this memory at any time. A structure is copied out once and the copy is
 * checked.
 */
#ifndef MVAGENT_VIRTIO_MEMORY_H
#define MVAGENT_VIRTIO_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "vmm/base/limits.h"

/* One stretch of guest physical memory. */
struct guest_memory_region {
	uint64_t gpa;          /* first guest physical address */
	uint64_t size;         /* bytes; gpa + size does not wrap */
	uint8_t *host;         /* where this process has it mapped */
	uint64_t user_address; /* the front end's name for it (vhost-user: userspace address) */
};

/* The regions, sorted by nothing, never overlapping. Fill it with guest_memory_add. */
struct guest_memory {
	unsigned int count;
	struct guest_memory_region regions[LIMIT_MEMORY_REGIONS];
};

/* Adds a region. Returns 0, -EINVAL when it is empty, wraps or overlaps another, -ENOSPC when full.
 */
int guest_memory_add(struct guest_memory *memory, const struct guest_memory_region *region);

/* The host address of [gpa, gpa + length), or NULL when that is not wholly inside one region or
 * @length is 0. The bytes behind it may change under the reader at any time. */
void *guest_memory_at(const struct guest_memory *memory, uint64_t gpa, uint64_t length);

/* Copies into guest memory; a range may span adjacent regions. 0 or -EFAULT (nothing copied). */
int guest_memory_write(const struct guest_memory *memory, uint64_t gpa, const void *buffer,
		       size_t length);

/* Translates a front end's userspace address (vhost-user SET_VRING_ADDR) to a gpa.
 * Returns 0, or -EFAULT when [address, address + length) is not inside one region. */
int guest_memory_user_to_gpa(const struct guest_memory *memory, uint64_t address, uint64_t length,
			     uint64_t *gpa);

#endif

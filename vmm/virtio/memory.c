/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "vmm/base/bytes.h"

int guest_memory_add(struct guest_memory *memory, const struct guest_memory_region *region)
{
	/* The last byte must have an address, both in the guest and for the front end. Refusing
	 * also the region that ends exactly at 2^64 keeps "gpa + size" free of wrapping. */
	if (region->size == 0 || region->gpa + region->size < region->gpa ||
	    region->user_address + region->size < region->user_address)
		return -EINVAL;
	for (unsigned int i = 0; i < memory->count; i++) {
		if (bytes_ranges_overlap(region->gpa, region->size, memory->regions[i].gpa,
					 memory->regions[i].size))
			return -EINVAL;
	}
	if (memory->count == LIMIT_MEMORY_REGIONS)
		return -ENOSPC;
	memory->regions[memory->count++] = *region;
	return 0;
}

/* The host address of @gpa, and in @available how many bytes follow it in its region; NULL and 0
 * when no region has it. */
static uint8_t *locate(const struct guest_memory *memory, uint64_t gpa, uint64_t *available)
{
	for (unsigned int i = 0; i < memory->count; i++) {
		const struct guest_memory_region *region = &memory->regions[i];
		/* Wraps to something huge for a gpa below the region, which the test refuses. */
		uint64_t offset = gpa - region->gpa;

		if (offset < region->size) {
			*available = region->size - offset;
			return region->host + offset;
		}
	}
	*available = 0;
	return NULL;
}

void *guest_memory_at(const struct guest_memory *memory, uint64_t gpa, uint64_t length)
{
	uint64_t available;
	uint8_t *host = locate(memory, gpa, &available);

	if (!host || length == 0 || length > available)
		return NULL;
	return host;
}

/* Whether every byte of the range is guest memory. It cannot wrap: no region reaches 2^64. */
static bool range_is_backed(const struct guest_memory *memory, uint64_t gpa, uint64_t length)
{
	while (length) {
		uint64_t available;

		if (!locate(memory, gpa, &available))
			return false;
		if (length <= available)
			return true;
		gpa += available;
		length -= available;
	}
	return true;
}

int guest_memory_write(const struct guest_memory *memory, uint64_t gpa, const void *buffer,
		       size_t length)
{
	const uint8_t *next = buffer;

	if (!range_is_backed(memory, gpa, length))
		return -EFAULT;
	while (length) {
		uint64_t available;
		uint8_t *host = locate(memory, gpa, &available);
		size_t count = bytes_minimum(available, length);

		memcpy(host, next, count);
		next += count;
		gpa += count;
		length -= count;
	}
	return 0;
}

int guest_memory_user_to_gpa(const struct guest_memory *memory, uint64_t address, uint64_t length,
			     uint64_t *gpa)
{
	for (unsigned int i = 0; i < memory->count; i++) {
		const struct guest_memory_region *region = &memory->regions[i];
		uint64_t offset = address - region->user_address;

		if (offset < region->size && length <= region->size - offset) {
			*gpa = region->gpa + offset;
			return 0;
		}
	}
	return -EFAULT;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_links.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define SLOTS_AT_FIRST 1024U
#define MULTIPLIER     0x9e3779b97f4a7c15ULL /* 2^64 divided by the golden ratio */

static struct host_link *find_slot(struct host_link *slots, uint32_t size,
				   const struct host_link *wanted)
{
	uint64_t hash = (wanted->inode ^ (uint64_t)wanted->minor << 40) * MULTIPLIER;
	uint32_t index = (uint32_t)(hash >> 32) & (size - 1);

	while (slots[index].node &&
	       (slots[index].inode != wanted->inode || slots[index].major != wanted->major ||
		slots[index].minor != wanted->minor))
		index = (index + 1) & (size - 1);
	return &slots[index];
}

static bool grow(struct host_links *links)
{
	uint32_t size = links->size ? links->size * 2 : SLOTS_AT_FIRST;
	struct host_link *slots = calloc(size, sizeof(*slots));

	if (!slots)
		return false;
	for (uint32_t i = 0; i < links->size; i++) {
		if (links->slots[i].node)
			*find_slot(slots, size, &links->slots[i]) = links->slots[i];
	}
	free(links->slots);
	links->slots = slots;
	links->size = size;
	return true;
}

int64_t host_links_find(struct host_links *links, const struct statx *status, uint32_t node)
{
	const struct host_link wanted = {
		.inode = status->stx_ino,
		.major = status->stx_dev_major,
		.minor = status->stx_dev_minor,
		.node = node + 1,
	};
	struct host_link *slot;

	if (links->count * 2 >= links->size && !grow(links))
		return -ENOMEM;
	slot = find_slot(links->slots, links->size, &wanted);
	if (slot->node)
		return slot->node - 1;
	*slot = wanted;
	links->count++;
	return node;
}

void host_links_free(struct host_links *links)
{
	free(links->slots);
	*links = (struct host_links){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/identity_set.h"

#include <errno.h>
#include <stdlib.h>

#define IDENTITY_SET_FIRST 64U

static uint32_t set_home(const struct identity_set *set, const struct inode_identity *identity)
{
	uint64_t hash = (identity->number ^ identity->device << 20) * 0x9e3779b97f4a7c15ULL;

	return (uint32_t)(hash >> 32) & (set->capacity - 1);
}

/* The slot that holds @identity, or the free one where it would go. */
static uint32_t set_find(const struct identity_set *set, const struct inode_identity *identity)
{
	uint32_t slot = set_home(set, identity);

	while (set->slots[slot].number && !inode_same_file(&set->slots[slot], identity))
		slot = (slot + 1) & (set->capacity - 1);
	return slot;
}

/* Half of the slots stay free, so that searches end soon. */
static int set_grow(struct identity_set *set)
{
	struct identity_set larger = {
		.capacity = set->capacity ? set->capacity * 2 : IDENTITY_SET_FIRST,
		.count = set->count,
	};

	if (set->capacity > set->count * 2)
		return 0;
	if (set->count >= LIMIT_FS_REMEMBERED)
		return -ENOSPC;
	larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < set->capacity; i++)
		if (set->slots[i].number)
			larger.slots[set_find(&larger, &set->slots[i])] = set->slots[i];
	free(set->slots);
	*set = larger;
	return 0;
}

int identity_set_add(struct identity_set *set, const struct inode_identity *identity)
{
	uint32_t slot;
	int error = set_grow(set);

	if (error)
		return error;
	slot = set_find(set, identity);
	if (!set->slots[slot].number)
		set->count++;
	set->slots[slot] = *identity;
	return 0;
}

void identity_set_remove(struct identity_set *set, const struct inode_identity *identity)
{
	uint32_t hole, next;

	if (!set->count)
		return;
	hole = set_find(set, identity);
	if (!set->slots[hole].number)
		return;
	set->count--;
	/* What lies behind moves up unless its home is behind the hole. */
	for (next = (hole + 1) & (set->capacity - 1); set->slots[next].number;
	     next = (next + 1) & (set->capacity - 1)) {
		uint32_t home = set_home(set, &set->slots[next]);

		if (((next - home) & (set->capacity - 1)) < ((next - hole) & (set->capacity - 1)))
			continue;
		set->slots[hole] = set->slots[next];
		hole = next;
	}
	set->slots[hole] = (struct inode_identity){0};
}

bool identity_set_has(const struct identity_set *set, const struct inode_identity *identity)
{
	return set->count && set->slots[set_find(set, identity)].number;
}

void identity_set_destroy(struct identity_set *set)
{
	free(set->slots);
	*set = (struct identity_set){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/base/inode_set.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/random.h>

#define INODE_SET_FIRST 64U

static bool inode_is(const struct inode_key *one, const struct inode_key *other)
{
	return one->number == other->number && one->device == other->device &&
	       one->birth_ns == other->birth_ns && one->type == other->type;
}

static uint32_t set_home(const struct inode_set *set, const struct inode_key *inode)
{
	uint64_t hash = (inode->number + inode->device * 0x9e3779b97f4a7c15ULL) ^ set->key;

	/* The mixing of splitmix64: each bit of the key changes where inodes meet. */
	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
	hash = (hash ^ hash >> 27) * (set->key | 1);
	return (uint32_t)(hash >> 32) & (set->capacity - 1);
}

/* The slot that holds @wanted, or the free one where it would go. */
static uint32_t set_find(const struct inode_set *set, const struct inode_key *wanted)
{
	uint32_t slot = set_home(set, wanted);

	while (set->slots[slot].value && !inode_is(&set->slots[slot].inode, wanted))
		slot = (slot + 1) & (set->capacity - 1);
	return slot;
}

/* Half of the slots stay free, so that searches end soon. */
static int set_grow(struct inode_set *set)
{
	struct inode_set larger = {
		.capacity = set->capacity ? set->capacity * 2 : INODE_SET_FIRST,
		.count = set->count,
		.limit = set->limit,
	};

	if (set->count >= set->limit)
		return -ENOSPC;
	if (set->capacity > set->count * 2)
		return 0;
	larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	if (getrandom(&larger.key, sizeof(larger.key), GRND_NONBLOCK) < 0)
		larger.key = (uint64_t)(uintptr_t)larger.slots;
	for (uint32_t i = 0; i < set->capacity; i++)
		if (set->slots[i].value)
			larger.slots[set_find(&larger, &set->slots[i].inode)] = set->slots[i];
	free(set->slots);
	*set = larger;
	return 0;
}

int inode_set_put(struct inode_set *set, const struct inode_key *inode, uint32_t value)
{
	uint32_t slot = set->count ? set_find(set, inode) : 0;
	int error;

	/* One that is there needs no room. */
	if (set->count && set->slots[slot].value) {
		set->slots[slot].value = value;
		return 0;
	}
	error = set_grow(set);
	if (error)
		return error;
	set->slots[set_find(set, inode)] = (struct inode_slot){*inode, value};
	set->count++;
	return 0;
}

void inode_set_remove(struct inode_set *set, const struct inode_key *inode)
{
	uint32_t hole, next;

	if (!set->count)
		return;
	hole = set_find(set, inode);
	if (!set->slots[hole].value)
		return;
	set->count--;
	/* What lies behind moves up unless its home is behind the hole. */
	for (next = (hole + 1) & (set->capacity - 1); set->slots[next].value;
	     next = (next + 1) & (set->capacity - 1)) {
		uint32_t home = set_home(set, &set->slots[next].inode);

		if (((next - home) & (set->capacity - 1)) < ((next - hole) & (set->capacity - 1)))
			continue;
		set->slots[hole] = set->slots[next];
		hole = next;
	}
	set->slots[hole] = (struct inode_slot){0};
}

uint32_t inode_set_value(const struct inode_set *set, const struct inode_key *inode)
{
	return set->count ? set->slots[set_find(set, inode)].value : 0;
}

void inode_set_destroy(struct inode_set *set)
{
	free(set->slots);
	*set = (struct inode_set){.limit = set->limit};
}

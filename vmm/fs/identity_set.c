/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/identity_set.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#define IDENTITY_SET_FIRST 64U

static bool slot_is(const struct identity_slot *slot, const struct identity_slot *other)
{
	return slot->number == other->number && slot->device == other->device &&
	       slot->birth_ns == other->birth_ns && slot->type == other->type;
}

static struct identity_slot slot_of(const struct inode_identity *identity, uint32_t value)
{
	return (struct identity_slot){
		.device = identity->device,
		.number = identity->number,
		.birth_ns = identity->birth_ns,
		.type = identity->type,
		.value = value,
	};
}

static uint32_t set_home(const struct identity_set *set, const struct identity_slot *slot)
{
	uint64_t hash = (slot->number + slot->device * 0x9e3779b97f4a7c15ULL) ^ set->key;

	/* The mixing of splitmix64: each bit of the key changes where inodes meet. */
	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
	hash = (hash ^ hash >> 27) * (set->key | 1);
	return (uint32_t)(hash >> 32) & (set->capacity - 1);
}

/* The slot that holds @wanted, or the free one where it would go. */
static uint32_t set_find(const struct identity_set *set, const struct identity_slot *wanted)
{
	uint32_t slot = set_home(set, wanted);

	while (set->slots[slot].number && !slot_is(&set->slots[slot], wanted))
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
	if (getrandom(&larger.key, sizeof(larger.key), GRND_NONBLOCK) < 0)
		larger.key = (uint64_t)(uintptr_t)larger.slots;
	for (uint32_t i = 0; i < set->capacity; i++)
		if (set->slots[i].number)
			larger.slots[set_find(&larger, &set->slots[i])] = set->slots[i];
	free(set->slots);
	*set = larger;
	return 0;
}

int identity_set_put(struct identity_set *set, const struct inode_identity *identity,
		     uint32_t value)
{
	const struct identity_slot wanted = slot_of(identity, value);
	uint32_t slot = set->count ? set_find(set, &wanted) : 0;
	int error;

	/* One that is there needs no room. */
	if (set->count && set->slots[slot].number) {
		set->slots[slot] = wanted;
		return 0;
	}
	error = set_grow(set);
	if (error)
		return error;
	set->slots[set_find(set, &wanted)] = wanted;
	set->count++;
	return 0;
}

int identity_set_add(struct identity_set *set, const struct inode_identity *identity)
{
	return identity_set_put(set, identity, 1);
}

void identity_set_remove(struct identity_set *set, const struct inode_identity *identity)
{
	const struct identity_slot wanted = slot_of(identity, 0);
	uint32_t hole, next;

	if (!set->count)
		return;
	hole = set_find(set, &wanted);
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
	set->slots[hole] = (struct identity_slot){0};
}

uint32_t identity_set_value(const struct identity_set *set, const struct inode_identity *identity)
{
	const struct identity_slot wanted = slot_of(identity, 0);

	return set->count ? set->slots[set_find(set, &wanted)].value : 0;
}

bool identity_set_has(const struct identity_set *set, const struct inode_identity *identity)
{
	return identity_set_value(set, identity) != 0;
}

void identity_set_destroy(struct identity_set *set)
{
	free(set->slots);
	*set = (struct identity_set){0};
}

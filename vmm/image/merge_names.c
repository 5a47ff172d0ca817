/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a merged tree: found by a hash of directory and text, listed by directory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/limits.h"
#include "vmm/image/merge_internal.h"

#define BUCKETS_AT_FIRST 1024U

/* FNV-1a from a seed that an archive cannot know: it could make all its names meet otherwise. */
static uint32_t bucket_of(const struct merge *merge, uint32_t parent, const char *text,
			  size_t length)
{
	uint64_t value = merge->seed ^ parent * 0x9e3779b97f4a7c15ULL;

	for (size_t i = 0; i < length; i++)
		value = (value ^ (uint8_t)text[i]) * 0x100000001b3ULL;
	return (uint32_t)(value ^ value >> 32) & (merge->bucket_count - 1);
}

static void enter_bucket(struct merge *merge, uint32_t index)
{
	struct merge_name *name = &merge->names[index];
	uint32_t bucket =
		bucket_of(merge, name->parent, merge_text(merge, name->text), name->length);

	name->bucket_next = merge->buckets[bucket];
	merge->buckets[bucket] = index;
}

static int grow_buckets(struct merge *merge)
{
	uint32_t count = merge->bucket_count ? merge->bucket_count * 2 : BUCKETS_AT_FIRST;
	uint32_t *buckets = reallocarray(merge->buckets, count, sizeof(*buckets));

	if (!buckets)
		return -ENOMEM;
	memset(buckets, 0xff, count * sizeof(*buckets));
	merge->buckets = buckets;
	merge->bucket_count = count;
	for (uint32_t i = 1; i < merge->name_count; i++) {
		if (!merge->names[i].gone)
			enter_bucket(merge, i);
	}
	return 0;
}

uint32_t merge_names_find(const struct merge *merge, uint32_t parent, const char *text,
			  size_t length)
{
	uint32_t index;

	if (!merge->bucket_count)
		return MERGE_NONE;
	index = merge->buckets[bucket_of(merge, parent, text, length)];
	while (index != MERGE_NONE) {
		const struct merge_name *name = &merge->names[index];

		if (name->parent == parent && name->length == length &&
		    memcmp(merge_text(merge, name->text), text, length) == 0)
			return index;
		index = name->bucket_next;
	}
	return MERGE_NONE;
}

static int make_room(struct merge *merge)
{
	uint32_t capacity = merge->name_capacity ? merge->name_capacity * 2 : BUCKETS_AT_FIRST;
	struct merge_name *grown;

	if (merge->name_count == LIMIT_IMAGE_ENTRIES)
		return -E2BIG;
	if (merge->name_count >= merge->bucket_count && grow_buckets(merge))
		return -ENOMEM;
	if (merge->name_count < merge->name_capacity)
		return 0;
	grown = reallocarray(merge->names, capacity, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	merge->names = grown;
	merge->name_capacity = capacity;
	return 0;
}

int merge_names_add(struct merge *merge, uint32_t parent, const char *text, size_t length,
		    uint32_t inode, uint32_t *name)
{
	uint32_t index = merge->name_count;
	struct merge_name *directory;
	int64_t place;
	int error = make_room(merge);

	if (error)
		return error;
	if (merge->texts.pool_bytes > LIMIT_IMAGE_POOL_BYTES)
		return -E2BIG;
	place = tree_add_text(&merge->texts, text, length);
	if (place < 0)
		return (int)place;
	merge->names[index] = (struct merge_name){
		.parent = parent,
		.next = MERGE_NONE,
		.previous = MERGE_NONE,
		.first_child = MERGE_NONE,
		.inode = inode,
		.text = (uint32_t)place,
		.bucket_next = MERGE_NONE,
		.layer = merge->layer,
		.length = (uint8_t)length,
	};
	merge->name_count++;
	*name = index;
	if (index == MERGE_ROOT)
		return 0;
	enter_bucket(merge, index);
	directory = &merge->names[parent];
	merge->names[index].next = directory->first_child;
	if (directory->first_child != MERGE_NONE)
		merge->names[directory->first_child].previous = index;
	directory->first_child = index;
	directory->child_count++;
	return 0;
}

static void leave_bucket(struct merge *merge, uint32_t index)
{
	const struct merge_name *name = &merge->names[index];
	uint32_t *place = &merge->buckets[bucket_of(merge, name->parent,
						    merge_text(merge, name->text), name->length)];

	while (*place != index)
		place = &merge->names[*place].bucket_next;
	*place = name->bucket_next;
}

/* One name, below which there is nothing. */
static void remove_one(struct merge *merge, uint32_t index)
{
	struct merge_name *name = &merge->names[index];
	struct merge_name *directory = &merge->names[name->parent];

	leave_bucket(merge, index);
	if (name->next != MERGE_NONE)
		merge->names[name->next].previous = name->previous;
	if (name->previous != MERGE_NONE)
		merge->names[name->previous].next = name->next;
	else
		directory->first_child = name->next;
	directory->child_count--;
	name->gone = true;
}

void merge_names_remove(struct merge *merge, uint32_t name)
{
	uint32_t index = name;

	/* From the leaves up: the first child of the first child, as long as there are any. */
	for (;;) {
		uint32_t parent = merge->names[index].parent;

		if (merge->names[index].first_child != MERGE_NONE) {
			index = merge->names[index].first_child;
			continue;
		}
		remove_one(merge, index);
		if (index == name)
			return;
		index = parent;
	}
}

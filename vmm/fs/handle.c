/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/handle.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/fd.h"
#include "vmm/fs/layer.h"

static_assert(LIMIT_FS_HANDLES % HANDLE_SLAB_SIZE == 0, "slabs cover the handles exactly");
static_assert(LIMIT_FS_DIRECTORY_HANDLES <= LIMIT_FS_HANDLES, "directories are handles");

static struct handle *handle_at(struct handle_table *table, uint32_t slot)
{
	return &table->slabs[slot / HANDLE_SLAB_SIZE][slot % HANDLE_SLAB_SIZE];
}

void handle_table_create(struct handle_table *table)
{
	memset(table, 0, sizeof(*table));
}

static int handle_take_slot(struct handle_table *table, struct handle **handle)
{
	uint32_t slot;

	if (table->free_slot) {
		slot = table->free_slot - 1;
		*handle = handle_at(table, slot);
		table->free_slot = (*handle)->next_free;
		return (int)slot;
	}
	slot = table->slot_count;
	if (slot >= LIMIT_FS_HANDLES)
		return -ENFILE;
	if (!table->slabs[slot / HANDLE_SLAB_SIZE]) {
		table->slabs[slot / HANDLE_SLAB_SIZE] =
			calloc(HANDLE_SLAB_SIZE, sizeof(struct handle));
		if (!table->slabs[slot / HANDLE_SLAB_SIZE])
			return -ENOMEM;
	}
	table->slot_count++;
	*handle = handle_at(table, slot);
	return (int)slot;
}

int handle_add(struct handle_table *table, enum handle_type type, int fd, uint64_t node_id,
	       struct handle **handle)
{
	int slot;

	if (type == HANDLE_DIRECTORY && table->directory_count >= LIMIT_FS_DIRECTORY_HANDLES)
		return -ENFILE;
	slot = handle_take_slot(table, handle);
	if (slot < 0)
		return slot;
	if (++(*handle)->generation == 0)
		(*handle)->generation = 1;
	(*handle)->id = (uint64_t)(*handle)->generation << 32 | (uint32_t)slot;
	(*handle)->type = type;
	(*handle)->fd = fd;
	(*handle)->node_id = node_id;
	(*handle)->buffer = NULL;
	(*handle)->position = 0;
	(*handle)->layers = INODE_LOWER;
	(*handle)->listing = NULL;
	(*handle)->begun = false;
	table->open_count++;
	table->directory_count += type == HANDLE_DIRECTORY;
	return 0;
}

struct handle *handle_find(struct handle_table *table, uint64_t id, enum handle_type type)
{
	uint32_t slot = (uint32_t)id;
	struct handle *handle;

	if (slot >= table->slot_count)
		return NULL;
	handle = handle_at(table, slot);
	return handle->type == type && handle->id == id ? handle : NULL;
}

struct handle *handle_next_of(struct handle_table *table, uint64_t node_id, uint32_t *cursor)
{
	while (*cursor < table->slot_count) {
		struct handle *handle = handle_at(table, (*cursor)++);

		if (handle->type == HANDLE_FILE && handle->node_id == node_id)
			return handle;
	}
	return NULL;
}

void handle_set_listing(struct handle_table *table, struct handle *handle,
			struct layer_listing *listing)
{
	if (handle->listing)
		table->listing_bytes -= handle->listing->size;
	if (listing)
		table->listing_bytes += listing->size;
	free(handle->listing);
	handle->listing = listing;
}

void handle_remove(struct handle_table *table, struct handle *handle)
{
	fd_close(&handle->fd);
	handle_set_listing(table, handle, NULL);
	if (handle->buffer) {
		handle->buffer->next_free = table->free_buffers;
		table->free_buffers = handle->buffer;
		handle->buffer = NULL;
	}
	table->open_count--;
	table->directory_count -= handle->type == HANDLE_DIRECTORY;
	handle->type = HANDLE_FREE;
	handle->next_free = table->free_slot;
	table->free_slot = (uint32_t)handle->id + 1;
	handle->id = 0;
}

struct directory_buffer *handle_buffer(struct handle_table *table, struct handle *handle)
{
	if (!handle->buffer) {
		handle->buffer = table->free_buffers;
		if (handle->buffer)
			table->free_buffers = handle->buffer->next_free;
		else
			handle->buffer = malloc(sizeof(*handle->buffer));
		if (handle->buffer)
			handle->buffer->start = handle->buffer->end = 0;
	}
	return handle->buffer;
}

uint32_t handle_table_reset(struct handle_table *table)
{
	uint32_t count = table->open_count;

	for (uint32_t slot = 0; slot < table->slot_count; slot++) {
		struct handle *handle = handle_at(table, slot);

		if (handle->type != HANDLE_FREE)
			handle_remove(table, handle);
	}
	return count;
}

void handle_table_destroy(struct handle_table *table)
{
	handle_table_reset(table);
	while (table->free_buffers) {
		struct directory_buffer *buffer = table->free_buffers;

		table->free_buffers = buffer->next_free;
		free(buffer);
	}
	for (uint32_t slab = 0; slab < HANDLE_SLAB_COUNT; slab++)
		free(table->slabs[slab]);
	memset(table, 0, sizeof(*table));
}

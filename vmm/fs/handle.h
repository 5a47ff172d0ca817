/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files and directories. A handle (fh of the protocol) is an index and a generation, with a
 * type: a file's handle is no use for READDIR, nor a directory's for READ.
 */
#ifndef MVAGENT_FS_HANDLE_H
#define MVAGENT_FS_HANDLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "vmm/base/limits.h"
#include "vmm/fs/inode.h"

struct layer_listing;

#define HANDLE_SLAB_SIZE        256U
#define HANDLE_SLAB_COUNT       (LIMIT_FS_HANDLES / HANDLE_SLAB_SIZE)
#define HANDLE_DIRECTORY_BUFFER 8192U

enum handle_type { HANDLE_FREE, HANDLE_FILE, HANDLE_DIRECTORY };

/* Directory entries read ahead of what the guest has asked for. */
struct directory_buffer {
	struct directory_buffer *next_free;
	uint32_t start; /* the next entry */
	uint32_t end;
	_Alignas(8) uint8_t bytes[HANDLE_DIRECTORY_BUFFER]; /* of struct linux_dirent64 */
};

struct handle {
	uint64_t id; /* generation << 32 | index; 0 while the slot is free */
	enum handle_type type;
	int fd;
	uint32_t generation;
	uint32_t next_free;
	uint64_t node_id; /* the inode it was opened on */
	/* Directories: entries read and not yet given, and the position they start at. */
	struct directory_buffer *buffer;
	int64_t position;
	/* Of a share under review: which layers @fd has, and what a merged directory holds. */
	enum inode_layers layers;
	struct layer_listing *listing;
	bool begun; /* it has been listed from; a guest that has the beginning goes on elsewhere */
};

struct handle_table {
	struct handle *slabs[HANDLE_SLAB_COUNT];
	struct directory_buffer *free_buffers;
	uint32_t slot_count;
	uint32_t free_slot; /* index + 1; 0: none */
	uint32_t open_count;
	uint32_t directory_count;
	size_t listing_bytes; /* of all handles */
};

void handle_table_create(struct handle_table *table);
void handle_table_destroy(struct handle_table *table);

/* Adds a handle on @fd, taken over on success only. Returns 0, -ENFILE (too many) or -ENOMEM. */
int handle_add(struct handle_table *table, enum handle_type type, int fd, uint64_t node_id,
	       struct handle **handle);

/* The open handle of that id and type, or NULL. */
struct handle *handle_find(struct handle_table *table, uint64_t id, enum handle_type type);

/* The next open file that was opened on the node, from *@cursor (0 at first) on, or NULL. */
struct handle *handle_next_of(struct handle_table *table, uint64_t node_id, uint32_t *cursor);

/* Closes the handle. */
void handle_remove(struct handle_table *table, struct handle *handle);

/* Closes every handle; returns how many there were. */
uint32_t handle_table_reset(struct handle_table *table);

/* Gives the handle a listing, which is taken over (NULL: none), in place of the one it has. */
void handle_set_listing(struct handle_table *table, struct handle *handle,
			struct layer_listing *listing);

/* The handle's directory buffer, made at first use. NULL: no memory. */
struct directory_buffer *handle_buffer(struct handle_table *table, struct handle *handle);

#endif

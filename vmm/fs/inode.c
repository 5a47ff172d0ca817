/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/inode.h"

#include <assert.h>
#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/fd.h"

#define INODE_ROOT_SLOT    1U
#define INODE_BUCKET_COUNT (1U << 18)

static_assert(INODE_ROOT_SLOT == FUSE_ROOT_ID, "the root's generation is 0, so its id is its slot");

struct inode_identity inode_identity_of(const struct statx *status)
{
	struct inode_identity identity = {
		.device = (uint64_t)status->stx_dev_major << 32 | status->stx_dev_minor,
		.number = status->stx_ino,
		.type = status->stx_mode & S_IFMT,
	};

	if (status->stx_mask & STATX_BTIME)
		identity.birth_ns =
			status->stx_btime.tv_sec * 1000000000 + (int64_t)status->stx_btime.tv_nsec;
	return identity;
}

struct inode_number inode_number_of(const struct statx *status)
{
	return (struct inode_number){
		.device = (uint64_t)status->stx_dev_major << 32 | status->stx_dev_minor,
		.number = status->stx_ino,
	};
}

bool inode_same_file(const struct inode_identity *a, const struct inode_identity *b)
{
	return a->number == b->number && a->device == b->device && a->birth_ns == b->birth_ns &&
	       a->type == b->type;
}

bool inode_same_identity(const struct inode_identity *a, const struct inode_identity *b)
{
	return inode_same_file(a, b) && a->alias == b->alias;
}

static struct inode *inode_at(struct inode_table *table, uint32_t slot)
{
	return &table->slabs[slot / INODE_SLAB_SIZE][slot % INODE_SLAB_SIZE];
}

static uint32_t inode_slot(const struct inode *inode)
{
	return (uint32_t)inode->id;
}

static uint32_t *inode_bucket(struct inode_table *table, const struct inode_identity *identity)
{
	/* Fibonacci hashing: the high bits of the product are well mixed */
	uint64_t hash = (identity->number ^ identity->device << 20) * 0x9e3779b97f4a7c15ULL;

	return &table->buckets[hash >> 46];
}

static_assert(INODE_BUCKET_COUNT == 1U << (64 - 46), "the bucket shift follows the bucket count");

/* Takes a free slot; its generation differs from that of all ids given out for it before. */
static int inode_take_slot(struct inode_table *table, struct inode **inode)
{
	uint32_t slot = table->free_slot;

	if (slot) {
		*inode = inode_at(table, slot);
		table->free_slot = (*inode)->hash_next;
		return (int)slot;
	}
	if (table->slot_count >= LIMIT_FS_INODES)
		return -ENFILE;
	slot = table->slot_count;
	if (!table->slabs[slot / INODE_SLAB_SIZE]) {
		table->slabs[slot / INODE_SLAB_SIZE] =
			calloc(INODE_SLAB_SIZE, sizeof(struct inode));
		if (!table->slabs[slot / INODE_SLAB_SIZE])
			return -ENOMEM;
	}
	table->slot_count++;
	*inode = inode_at(table, slot);
	return (int)slot;
}

static void inode_unlist(struct inode_table *table, struct inode *inode)
{
	if (!inode->listed)
		return;
	if (inode->newer)
		inode_at(table, inode->newer)->older = inode->older;
	else
		table->newest = inode->older;
	if (inode->older)
		inode_at(table, inode->older)->newer = inode->newer;
	else
		table->oldest = inode->newer;
	inode->listed = false;
}

void inode_touch(struct inode_table *table, struct inode *inode)
{
	uint32_t slot = inode_slot(inode);

	if (inode->fd < 0 || !inode->name || table->newest == slot)
		return;
	inode_unlist(table, inode);
	inode->newer = 0;
	inode->older = table->newest;
	if (table->newest)
		inode_at(table, table->newest)->newer = slot;
	else
		table->oldest = slot;
	table->newest = slot;
	inode->listed = true;
}

static void inode_drop_fd(struct inode_table *table, int *fd)
{
	if (*fd < 0)
		return;
	fd_close(fd);
	inode_return_fd(table);
}

bool inode_close_fds(struct inode_table *table, struct inode *inode)
{
	if (!inode->name)
		return false;
	inode_unlist(table, inode);
	inode_drop_fd(table, &inode->fd);
	inode_drop_fd(table, &inode->lower_fd);
	return true;
}

int inode_reserve_fd(struct inode_table *table)
{

	if (table->fd_used >= table->fd_limit) {
		/* The two used last may be those that the descriptor is wanted for. */
		if (!table->oldest || table->oldest == table->newest ||
		    table->oldest == inode_at(table, table->newest)->older)
			return -ENFILE;
		inode_close_fds(table, inode_at(table, table->oldest));
	}
	table->fd_used++;
	return 0;
}

void inode_return_fd(struct inode_table *table)
{
	assert(table->fd_used > 0);
	table->fd_used--;
}

void inode_adopt_fd(struct inode_table *table, struct inode *inode, int fd)
{
	/* The newer one: on file systems that go by paths (9p) a descriptor dies with the name that
	 * it was opened by, though the file has others. */
	inode_drop_fd(table, &inode->fd);
	inode->fd = fd;
	inode_touch(table, inode);
}

void inode_adopt_lower_fd(struct inode_table *table, struct inode *inode, int fd)
{
	inode_drop_fd(table, &inode->lower_fd);
	inode->lower_fd = fd;
}

static void inode_hash(struct inode_table *table, struct inode *inode)
{
	uint32_t *bucket = inode_bucket(table, &inode->identity);

	inode->hash_next = *bucket;
	*bucket = inode_slot(inode);
}

static void inode_unhash(struct inode_table *table, struct inode *inode)
{
	uint32_t *link = inode_bucket(table, &inode->identity);

	while (*link != inode_slot(inode))
		link = &inode_at(table, *link)->hash_next;
	*link = inode->hash_next;
}

int inode_add(struct inode_table *table, const struct inode_identity *identity, int fd,
	      struct inode **inode)
{
	int slot = inode_take_slot(table, inode);

	if (slot < 0)
		return slot;
	(*inode)->identity = *identity;
	(*inode)->version = (struct inode_version){0};
	(*inode)->told = (struct inode_told){0};
	(*inode)->watch = NULL;
	(*inode)->policy = (struct inode_policy){0};
	(*inode)->fd = fd;
	(*inode)->lower_fd = -1;
	(*inode)->layers = INODE_LOWER;
	(*inode)->lower = (struct inode_number){0};
	(*inode)->origin = (struct inode_number){0};
	(*inode)->lookups = 0;
	(*inode)->parent = 0;
	(*inode)->name = NULL;
	(*inode)->within_ms = 0;
	(*inode)->journaled = 0;
	(*inode)->listed = false;
	/* The root is the only one of generation 0, so that no other id can ever be 0 or 1. */
	if (slot != INODE_ROOT_SLOT && ++(*inode)->generation == 0)
		(*inode)->generation = 1;
	(*inode)->id = (uint64_t)(*inode)->generation << 32 | (uint32_t)slot;
	inode_hash(table, *inode);
	table->inode_count++;
	return 0;
}

void inode_change_identity(struct inode_table *table, struct inode *inode,
			   const struct inode_identity *identity)
{
	inode_unhash(table, inode);
	inode->identity = *identity;
	inode->version = (struct inode_version){0};
	inode_hash(table, inode);
}

static void inode_remove(struct inode_table *table, struct inode *inode)
{
	uint32_t slot = inode_slot(inode);

	if (table->removing)
		table->removing(table->context, inode);
	inode_unhash(table, inode);
	inode_unlist(table, inode);
	inode_drop_fd(table, &inode->fd);
	inode_drop_fd(table, &inode->lower_fd);
	free(inode->name);
	inode->name = NULL;
	inode->id = 0;
	inode->hash_next = table->free_slot;
	table->free_slot = slot;
	table->inode_count--;
}

void inode_forget(struct inode_table *table, struct inode *inode, uint64_t count)
{
	if (inode->id == FUSE_ROOT_ID)
		return;
	inode->lookups -= count < inode->lookups ? count : inode->lookups;
	if (inode->lookups == 0)
		inode_remove(table, inode);
}

struct inode *inode_find(struct inode_table *table, uint64_t node_id)
{
	uint32_t slot = (uint32_t)node_id;
	struct inode *inode;

	if (slot < INODE_ROOT_SLOT || slot >= table->slot_count)
		return NULL;
	inode = inode_at(table, slot);
	return inode->id == node_id ? inode : NULL;
}

struct inode *inode_find_identity(struct inode_table *table, const struct inode_identity *identity)
{
	uint32_t slot = *inode_bucket(table, identity);

	while (slot) {
		struct inode *inode = inode_at(table, slot);

		if (inode_same_identity(&inode->identity, identity))
			return inode;
		slot = inode->hash_next;
	}
	return NULL;
}

void inode_clear_place(struct inode_table *table, struct inode *inode)
{
	inode_unlist(table, inode);
	free(inode->name);
	inode->name = NULL;
}

void inode_set_place(struct inode_table *table, struct inode *inode, uint64_t parent,
		     const char *name)
{
	if (inode->id == FUSE_ROOT_ID)
		return;
	inode->parent = parent;
	if (!inode->name || strcmp(inode->name, name) != 0) {
		inode_clear_place(table, inode);
		inode->name = strdup(name);
	}
	inode_touch(table, inode);
}

int inode_table_create(struct inode_table *table, int root_fd,
		       const struct inode_identity *identity, unsigned int fd_limit)
{
	struct inode *root;
	int error;

	memset(table, 0, sizeof(*table));
	table->slot_count = INODE_ROOT_SLOT;
	table->fd_limit = fd_limit;
	table->fd_used = 1;
	table->buckets = calloc(INODE_BUCKET_COUNT, sizeof(*table->buckets));
	error = table->buckets ? inode_add(table, identity, root_fd, &root) : -ENOMEM;
	if (error) {
		fd_close(&root_fd);
		inode_table_destroy(table);
	}
	return error;
}

void inode_table_reset(struct inode_table *table)
{
	for (uint32_t slot = INODE_ROOT_SLOT + 1; slot < table->slot_count; slot++) {
		struct inode *inode = inode_at(table, slot);

		if (inode->id)
			inode_forget(table, inode, UINT64_MAX);
	}
}

void inode_table_destroy(struct inode_table *table)
{
	struct inode *root = table->slabs[0] ? inode_at(table, INODE_ROOT_SLOT) : NULL;

	if (table->buckets)
		inode_table_reset(table);
	if (root && root->id)
		inode_remove(table, root);
	for (uint32_t slab = 0; slab < INODE_SLAB_COUNT; slab++)
		free(table->slabs[slab]);
	free(table->buckets);
	memset(table, 0, sizeof(*table));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What putting, looking up and flattening share. */
#ifndef MVAGENT_IMAGE_MERGE_INTERNAL_H
#define MVAGENT_IMAGE_MERGE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/image/merge.h"

#define MERGE_NONE UINT32_MAX
#define MERGE_ROOT 0U

/* A file, under whatever names. */
struct merge_inode {
	uint64_t size; /* of a file; of a link: of its text */
	uint64_t contents;
	int64_t mtime;
	uint32_t mtime_ns;
	uint32_t uid;
	uint32_t gid;
	uint32_t text; /* of a symbolic link, in the pool */
	uint32_t xattrs;
	uint16_t xattr_bytes;
	uint16_t mode;
	uint8_t kind; /* enum tree_kind */
};

/* A name in a directory. */
struct merge_name {
	uint32_t parent;
	uint32_t next; /* in the directory, as the next one */
	uint32_t previous;
	uint32_t first_child;
	uint32_t child_count;
	uint32_t inode;
	uint32_t text; /* in the pool */
	uint32_t bucket_next;
	uint16_t layer; /* the last that had it, or something below it */
	uint8_t length;
	bool gone;
};

struct merge {
	struct tree texts; /* its pool only */
	struct merge_name *names;
	uint32_t name_count;
	uint32_t name_capacity;
	struct merge_inode *inodes;
	uint32_t inode_count;
	uint32_t inode_capacity;
	uint32_t *buckets; /* the first name of each */
	uint32_t bucket_count;
	uint64_t seed;
	uint16_t layer;
};

static inline const char *merge_text(const struct merge *merge, uint32_t place)
{
	return merge->texts.pool + place;
}

static inline struct merge_inode *merge_inode_of(const struct merge *merge, uint32_t name)
{
	return &merge->inodes[merge->names[name].inode];
}

/* The name in a directory, or MERGE_NONE. */
uint32_t merge_names_find(const struct merge *merge, uint32_t parent, const char *text,
			  size_t length);

/* Adds a name that is not there, of a file that is. 0 or -errno. */
int merge_names_add(struct merge *merge, uint32_t parent, const char *text, size_t length,
		    uint32_t inode, uint32_t *name);

/* Takes a name out of its directory, with all that is below it. */
void merge_names_remove(struct merge *merge, uint32_t name);

/* A new file: its index, or -errno. */
int64_t merge_add_inode(struct merge *merge, enum tree_kind kind,
			const struct merge_attributes *attributes);

/* What of a path is its last name. */
struct merge_last {
	const char *text;
	size_t length;
};

/* Looks up the directory that the path's last name is in. @make: what is missing is made, and what
 * is there belongs to this layer, too. 0 or -errno; -EINVAL also when there is no last name. */
int merge_find_parent(struct merge *merge, const char *path, bool make, uint32_t *parent,
		      struct merge_last *last);

/* Looks up what a path leads to, over links at its end, too. */
int merge_follow(struct merge *merge, const char *path, uint32_t *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layers of an image, put one over the other in memory. Nothing here touches a file system:
 * names are texts, links lead from node to node, and so no path of an archive leads anywhere else,
 * whatever it says.
 *
 * As tools for containers do it: a name's parents are looked up over symbolic links, inside the
 * tree; what is missing of them is made; the name itself is replaced, but a directory stays where
 * another comes. A whiteout takes away what lower layers had, never what its own layer has.
 */
#ifndef MVAGENT_IMAGE_MERGE_H
#define MVAGENT_IMAGE_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "vmm/root/tree.h"

struct merge;

struct merge_attributes {
	uint16_t mode; /* permissions, set-id and sticky bits */
	uint32_t uid;
	uint32_t gid;
	int64_t mtime;
	uint32_t mtime_ns;
	const void *xattrs; /* as erofs_xattr_add has them; copied */
	uint16_t xattr_bytes;
};

/* An empty root directory. 0 or -ENOMEM. */
int merge_create(struct merge **merge);
void merge_destroy(struct merge *merge);

/* What comes from here on is one layer higher. */
void merge_begin_layer(struct merge *merge);

/*
 * Each takes a path as an archive has it. 0 or -errno: -EINVAL (".." in it, or it is the root, or
 * empty), -ENAMETOOLONG, -ELOOP, -ENOTDIR (a parent is no directory), -ENOENT and -EISDIR (a hard
 * link's target), -E2BIG (LIMIT_IMAGE_ENTRIES, LIMIT_IMAGE_POOL_BYTES), -ENOMEM.
 */
int merge_put_directory(struct merge *merge, const char *path,
			const struct merge_attributes *attributes);
/* @contents is the caller's own number for where the contents are. */
int merge_put_file(struct merge *merge, const char *path, const struct merge_attributes *attributes,
		   uint64_t size, uint64_t contents);
int merge_put_symlink(struct merge *merge, const char *path,
		      const struct merge_attributes *attributes, const char *target);
int merge_put_link(struct merge *merge, const char *path, const char *target_path);

/* The name is not there any more; that it was not is no error. */
int merge_remove(struct merge *merge, const char *path);
/* Nothing of lower layers is any more in the directory that the path's last name would be in. */
int merge_remove_around(struct merge *merge, const char *path);

/* Where a path leads, over symbolic links, and what is there: for files their size and contents. 0,
 * -ENOENT, -EISDIR or as above. */
int merge_find_file(struct merge *merge, const char *path, uint64_t *size, uint64_t *contents);

/* Makes a directory with its parents, of root's, where there is nothing yet. */
int merge_make_directories(struct merge *merge, const char *path);

/* The whole as a tree for the EROFS writer, to be freed by tree_free in every case, and for each of
 * its nodes where the contents are (allocated). 0, -ENOMEM or -E2BIG. */
int merge_flatten(const struct merge *merge, struct tree *tree, uint64_t **contents);

#endif

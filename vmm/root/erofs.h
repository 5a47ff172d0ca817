/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the metadata of an EROFS image: superblock, inodes, directories, symbolic links and the
 * files that are made. The contents of all other files follow as runs of blocks that are not
 * written at all: whoever serves the image takes them from where they are.
 *
 * In the metadata the directories come first, each right behind its inode, so that a walk through
 * the tree reads few blocks; then the other inodes, directory by directory; then what does not fit
 * behind an inode.
 */
#ifndef MVAGENT_ROOT_EROFS_H
#define MVAGENT_ROOT_EROFS_H

#include <stdint.h>

#include "vmm/root/tree.h"

struct erofs_layout {
	uint64_t metadata_bytes; /* whole blocks */
	uint32_t block_count;    /* of the image: metadata and contents */
	uint32_t inode_count;
};

/* Gives everything in @tree its place: sets nid and first_block of each node, size of directories
 * and link counts. Runs of the contents ascend with the indexes of their nodes. 0, -ENOMEM, or
 * -EFBIG when there are more blocks than an image can have. */
int erofs_lay_out(struct tree *tree, struct erofs_layout *layout);

/* Writes layout->metadata_bytes. The same tree gives the same bytes. 0 or -ENOMEM. */
int erofs_write(const struct tree *tree, const struct erofs_layout *layout, uint8_t *metadata);

/* How many blocks a file of @size bytes takes. */
uint64_t erofs_blocks_of(uint64_t size);

#endif

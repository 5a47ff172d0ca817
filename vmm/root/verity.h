/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree of hashes behind an image, in the format of dm-verity (Linux,
 * Documentation/admin-guide/device-mapper/verity.rst; hash type 1, SHA-256, no salt, blocks of 4
 * KiB): each block of the tree has the hashes of 128 blocks, and the hash of the topmost one stands
 * for every byte of the image. `veritysetup verify IMAGE IMAGE ROOT --hash-offset=BYTES` reads it
 * too.
 *
 * In the file: the image; one block with verity's superblock; the levels of the tree, the topmost
 * first.
 */
#ifndef MVAGENT_ROOT_VERITY_H
#define MVAGENT_ROOT_VERITY_H

#include <stdint.h>

#include "vmm/base/sha256.h"

#define VERITY_BLOCK_BYTES 4096U
#define VERITY_LEVELS_MAX  6U /* 128^6 blocks are more than any file has */

struct verity_layout {
	uint64_t data_blocks;
	unsigned int levels;
	uint64_t level_start[VERITY_LEVELS_MAX]; /* block in the file; [0] is above the data */
	uint64_t level_blocks[VERITY_LEVELS_MAX];
	uint64_t end_block; /* of all */
};

/* Where the tree of @data_blocks blocks (1 to 2^32) is. */
void verity_lay_out(uint64_t data_blocks, struct verity_layout *layout);

/* Writes the tree behind the image that @fd (open for reading and writing) begins with, and gives
 * its root. 0 or -errno. */
int verity_write(int fd, const struct verity_layout *layout, uint8_t root[SHA256_BYTES]);

/* The tree of a file, as far as it was needed so far. */
struct verity;

/* @fd, which stays the caller's, is as long as @layout says. 0 or -errno. */
int verity_open(struct verity **verity, int fd, const struct verity_layout *layout,
		const uint8_t root[SHA256_BYTES]);
void verity_close(struct verity *verity);

/* Whether @data is block @index (below data_blocks) of the image that the root stands for. 0,
 * -EBADMSG: it is not, or -errno of reading the tree. */
int verity_check(struct verity *verity, uint64_t index, const uint8_t *data);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The host's directories as an EROFS image: the metadata, and where the contents are. */
#ifndef MVAGENT_ROOT_HOST_IMAGE_H
#define MVAGENT_ROOT_HOST_IMAGE_H

#include <stdint.h>

#include "vmm/base/sha256.h"
#include "vmm/root/erofs.h"
#include "vmm/root/host_tree.h"

/* A file of the host and the first of its blocks in the image. */
struct host_extent {
	uint32_t first_block;
	uint32_t node;
};

struct host_image {
	struct tree tree;
	struct erofs_layout layout;
	struct host_counts counts;
	const uint8_t *metadata;
	uint8_t metadata_hash[SHA256_BYTES];
	const struct host_extent *extents; /* ascending, without gaps, from metadata to the end */
	uint32_t extent_count;
	void *mapping; /* NULL: all of the above is on the heap; else it is in there */
	size_t mapping_bytes;
};

/* Reads the host's directories and makes the image of them. @progress as in host_tree_build. 0 or
 * -errno with the sentence printed; destroy in every case. */
int host_image_build(struct host_image *image, const struct host_plan *plan,
		     const struct host_progress *progress);
void host_image_destroy(struct host_image *image);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_image.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "vmm/base/log.h"
#include "vmm/root/erofs_format.h"

static int list_extents(struct host_image *image)
{
	const struct tree *tree = &image->tree;
	struct host_extent *extents = calloc(tree->node_count, sizeof(*extents));

	if (!extents)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		if (node->kind == TREE_FILE && node->first_block != EROFS_BLOCK_NONE)
			extents[image->extent_count++] = (struct host_extent){node->first_block, i};
	}
	image->extents = extents;
	return 0;
}

static int write_metadata(struct host_image *image)
{
	uint8_t *metadata = malloc(image->layout.metadata_bytes);
	int error;

	if (!metadata)
		return -ENOMEM;
	image->metadata = metadata;
	error = erofs_write(&image->tree, &image->layout, metadata);
	if (!error)
		sha256_of(metadata, image->layout.metadata_bytes, image->metadata_hash);
	return error;
}

int host_image_build(struct host_image *image, const struct host_plan *plan,
		     const struct host_progress *progress)
{
	int error;

	*image = (struct host_image){0};
	error = host_tree_build(plan, &image->tree, &image->counts, progress);
	if (error)
		return error;
	error = erofs_lay_out(&image->tree, &image->layout);
	if (!error)
		error = list_extents(image);
	if (!error)
		error = write_metadata(image);
	return error ? log_errno(error, "cannot make the image of the host's directories") : 0;
}

void host_image_destroy(struct host_image *image)
{
	if (image->mapping) {
		munmap(image->mapping, image->mapping_bytes);
	} else {
		tree_free(&image->tree);
		free((void *)image->metadata);
		free((void *)image->extents);
	}
	*image = (struct host_image){0};
}

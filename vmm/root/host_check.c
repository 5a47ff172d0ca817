/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/host_check.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "vmm/root/erofs_format.h"

/* Times of files go by the kernel's tick, some file systems' by the second or two. */
#define SETTLED_SECONDS 2

static bool node_is_sound(const struct tree *tree, uint32_t index, unsigned int sources)
{
	const struct tree_node *node = &tree->nodes[index];

	return node->kind <= TREE_SYMLINK && node->parent <= index &&
	       (index == 0 || node->parent < index) && node->same_as <= index &&
	       (uint64_t)node->name + node->name_length < tree->pool_bytes &&
	       (node->source < sources || node->source == TREE_NO_SOURCE);
}

/* The extents are the blocks from the metadata to the end, each a file with as many bytes. */
static bool extents_are_sound(const struct host_image *image)
{
	uint64_t next = image->layout.metadata_bytes / EROFS_BLOCK_BYTES;

	for (uint32_t i = 0; i < image->extent_count; i++) {
		const struct host_extent *extent = &image->extents[i];
		const struct tree_node *node;

		if (extent->node >= image->tree.node_count || extent->first_block != next)
			return false;
		node = &image->tree.nodes[extent->node];
		if (node->kind != TREE_FILE || node->size == 0 || node->source == TREE_NO_SOURCE)
			return false;
		next += erofs_blocks_of(node->size);
		if (next > image->layout.block_count)
			return false;
	}
	return next == image->layout.block_count;
}

bool host_check_numbers(const struct host_image *image, const struct host_plan *plan)
{
	const struct tree *tree = &image->tree;

	if (tree->node_count == 0 || tree->pool_bytes == 0)
		return false;
	for (uint32_t i = 0; i < tree->node_count; i++) {
		if (!node_is_sound(tree, i, plan->source_count))
			return false;
	}
	return extents_are_sound(image);
}

/* Whether a directory, or a file, is as it was. */
static bool is_unchanged(const struct tree *tree, uint32_t index, const struct host_plan *plan)
{
	const struct tree_node *node = &tree->nodes[index];
	const struct plan_source *source = &plan->sources[node->source];
	char path[PATH_MAX];
	struct statx status;

	/* Links in the path would be found in the directory that has them. */
	if (tree_path(tree, index, 0, path) ||
	    statx(source->fd, host_plan_below(source, path), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		  STATX_INO | STATX_MTIME | STATX_CTIME | STATX_SIZE, &status))
		return false;
	return status.stx_ino == node->host_inode && status.stx_mtime.tv_sec == node->mtime &&
	       status.stx_mtime.tv_nsec == node->mtime_ns &&
	       status.stx_ctime.tv_sec == node->ctime &&
	       status.stx_ctime.tv_nsec == node->ctime_ns &&
	       (node->kind == TREE_DIRECTORY || status.stx_size == node->size);
}

bool host_check_directories(const struct host_image *image, const struct host_plan *plan)
{
	const struct tree *tree = &image->tree;

	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		bool is_checked =
			node->source != TREE_NO_SOURCE &&
			(node->kind == TREE_DIRECTORY ||
			 (node->kind == TREE_FILE && plan->sources[node->source].checked));

		if (is_checked && !is_unchanged(tree, i, plan))
			return false;
	}
	return true;
}

bool host_check_is_settled(const struct host_image *image, int64_t second)
{
	const struct tree *tree = &image->tree;

	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		if (node->source != TREE_NO_SOURCE && node->kind <= TREE_FILE &&
		    node->ctime >= second - SETTLED_SECONDS)
			return false;
	}
	return true;
}

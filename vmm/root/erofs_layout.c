/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "vmm/base/bytes.h"
#include "vmm/root/erofs.h"
#include "vmm/root/erofs_format.h"
#include "vmm/root/erofs_internal.h"

uint64_t erofs_blocks_of(uint64_t size)
{
	return size / EROFS_BLOCK_BYTES + (size % EROFS_BLOCK_BYTES != 0);
}

size_t erofs_xattr_area(const struct tree_node *node)
{
	return node->xattr_bytes ? sizeof(struct erofs_xattr_header) + node->xattr_bytes : 0;
}

size_t erofs_inline_bytes(const struct tree_node *node)
{
	size_t tail = node->size % EROFS_BLOCK_BYTES;
	size_t before = sizeof(struct erofs_inode) + erofs_xattr_area(node);

	/* Inode and tail must lie in one block. */
	if (node->kind == TREE_FILE || tail + before > EROFS_BLOCK_BYTES)
		return 0;
	return tail;
}

/* How many blocks the rest takes. */
static uint64_t whole_blocks(const struct tree_node *node)
{
	return erofs_blocks_of(node->size - erofs_inline_bytes(node));
}

static int gather(const struct tree *tree, uint32_t index, struct erofs_names *names)
{
	const struct tree_node *directory = &tree->nodes[index];
	size_t count = (size_t)directory->child_count + 2;

	if (count > names->capacity) {
		struct erofs_name *grown = reallocarray(names->list, count, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		names->list = grown;
		names->capacity = count;
	}
	names->count = count;
	names->list[0] = (struct erofs_name){".", 1, EROFS_TYPE_DIRECTORY, directory->nid};
	names->list[1] = (struct erofs_name){"..", 2, EROFS_TYPE_DIRECTORY,
					     tree->nodes[directory->parent].nid};
	return 0;
}

int erofs_gather_names(const struct tree *tree, uint32_t index, struct erofs_names *names)
{
	static const uint8_t types[] = {
		[TREE_DIRECTORY] = EROFS_TYPE_DIRECTORY,
		[TREE_FILE] = EROFS_TYPE_FILE,
		[TREE_MADE] = EROFS_TYPE_FILE,
		[TREE_SYMLINK] = EROFS_TYPE_SYMLINK,
	};
	const struct tree_node *directory = &tree->nodes[index];
	int error = gather(tree, index, names);

	if (error)
		return error;
	for (uint32_t i = 0; i < directory->child_count; i++) {
		const struct tree_node *child = &tree->nodes[directory->first_child + i];

		names->list[i + 2] = (struct erofs_name){
			.text = tree_name(tree, child),
			.length = child->name_length,
			.type = types[child->kind],
			.nid = tree->nodes[child->same_as].nid,
		};
	}
	/* Few names are smaller than "." and "..": the two sink to their places. */
	for (size_t first = 2; first-- > 0;) {
		for (size_t i = first; i + 1 < names->count; i++) {
			struct erofs_name swapped = names->list[i];

			if (erofs_name_compare(&names->list[i], &names->list[i + 1]) < 0)
				break;
			names->list[i] = names->list[i + 1];
			names->list[i + 1] = swapped;
		}
	}
	return 0;
}

/* Sizes of directories; how many names each file has. */
static int measure(struct tree *tree)
{
	struct erofs_names names = {0};
	int error = 0;

	for (uint32_t i = 0; i < tree->node_count; i++)
		tree->nodes[i].link_count = tree->nodes[i].kind == TREE_DIRECTORY ? 2 : 0;
	for (uint32_t i = 0; i < tree->node_count && !error; i++) {
		struct tree_node *node = &tree->nodes[i];

		if (node->kind != TREE_DIRECTORY) {
			tree->nodes[node->same_as].link_count++;
			continue;
		}
		if (i)
			tree->nodes[node->parent].link_count++;
		error = erofs_gather_names(tree, i, &names);
		if (!error)
			node->size = erofs_directory_bytes(names.list, names.count);
	}
	free(names.list);
	return error;
}

/* Gives an inode its place: aligned to its own size, so that none crosses a block. */
static void place_inode(struct tree_node *node, uint64_t *place)
{
	uint64_t bytes =
		sizeof(struct erofs_inode) + erofs_xattr_area(node) + erofs_inline_bytes(node);

	*place = bytes_align_up(*place, sizeof(struct erofs_inode));
	if (*place % EROFS_BLOCK_BYTES + bytes > EROFS_BLOCK_BYTES)
		*place = bytes_align_up(*place, EROFS_BLOCK_BYTES);
	node->nid = (uint32_t)(*place / EROFS_NID_BYTES);
	*place += bytes;
}

static bool is_own_inode(const struct tree *tree, uint32_t index)
{
	return tree->nodes[index].same_as == index;
}

static void place_inodes(struct tree *tree, uint64_t *place)
{
	for (uint32_t i = 0; i < tree->node_count; i++) {
		if (tree->nodes[i].kind == TREE_DIRECTORY)
			place_inode(&tree->nodes[i], place);
	}
	for (uint32_t i = 0; i < tree->node_count; i++) {
		struct tree_node *node = &tree->nodes[i];

		if (node->kind != TREE_DIRECTORY && is_own_inode(tree, i))
			place_inode(node, place);
	}
	*place = bytes_align_up(*place, EROFS_BLOCK_BYTES);
}

/* Gives a run of blocks to each node that is or is not a file of the host. */
static int place_blocks(struct tree *tree, bool host_files, uint64_t *next)
{
	for (uint32_t i = 0; i < tree->node_count; i++) {
		struct tree_node *node = &tree->nodes[i];
		uint64_t blocks = whole_blocks(node);

		if (!is_own_inode(tree, i) || (node->kind == TREE_FILE) != host_files)
			continue;
		node->first_block = blocks ? (uint32_t)*next : EROFS_BLOCK_NONE;
		if (blocks > EROFS_BLOCKS_MAX - *next)
			return -EFBIG;
		*next += blocks;
	}
	return 0;
}

int erofs_lay_out(struct tree *tree, struct erofs_layout *layout)
{
	uint64_t place = EROFS_SUPER_OFFSET + sizeof(struct erofs_superblock);
	uint64_t blocks;
	int error = measure(tree);

	if (error)
		return error;
	*layout = (struct erofs_layout){0};
	place_inodes(tree, &place);
	blocks = place / EROFS_BLOCK_BYTES;
	error = place_blocks(tree, false, &blocks);
	layout->metadata_bytes = blocks * EROFS_BLOCK_BYTES;
	if (!error)
		error = place_blocks(tree, true, &blocks);
	layout->block_count = (uint32_t)blocks;
	for (uint32_t i = 0; i < tree->node_count; i++)
		layout->inode_count += is_own_inode(tree, i);
	return error;
}

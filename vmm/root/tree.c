/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/tree.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/limits.h"
#include "vmm/root/erofs_format.h"

#define NODES_AT_FIRST 4096U
#define POOL_AT_FIRST  (64U << 10)

int64_t tree_add_text(struct tree *tree, const void *text, size_t length)
{
	uint32_t place = tree->pool_bytes;

	if (length >= LIMIT_ROOT_POOL_BYTES - place)
		return -E2BIG;
	while (tree->pool_capacity - place <= length) {
		uint32_t capacity = tree->pool_capacity ? tree->pool_capacity * 2 : POOL_AT_FIRST;
		char *grown = realloc(tree->pool, capacity);

		if (!grown)
			return -ENOMEM;
		tree->pool = grown;
		tree->pool_capacity = capacity;
	}
	if (length)
		memcpy(tree->pool + place, text, length);
	tree->pool[place + length] = '\0';
	tree->pool_bytes += (uint32_t)length + 1;
	return place;
}

int64_t tree_add_node(struct tree *tree, const char *name, size_t length)
{
	uint32_t index = tree->node_count;
	int64_t place;

	if (length > EROFS_NAME_MAXIMUM)
		return -ENAMETOOLONG;
	if (index == LIMIT_ROOT_NODES)
		return -E2BIG;
	if (index == tree->node_capacity) {
		uint32_t capacity = index ? index * 2 : NODES_AT_FIRST;
		struct tree_node *grown = reallocarray(tree->nodes, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		tree->nodes = grown;
		tree->node_capacity = capacity;
	}
	place = tree_add_text(tree, name, length);
	if (place < 0)
		return place;
	tree->nodes[index] = (struct tree_node){
		.same_as = index,
		.name = (uint32_t)place,
		.name_length = (uint8_t)length,
		.first_block = EROFS_BLOCK_NONE,
	};
	tree->node_count++;
	return index;
}

int tree_path(const struct tree *tree, uint32_t index, uint32_t top, char *path)
{
	size_t place = PATH_MAX - 1;

	path[place] = '\0';
	while (index != top) {
		const struct tree_node *node = &tree->nodes[index];

		/* Parents come before their children; in a tree that was read back from a file they
		 * might not. */
		if (node->parent >= index)
			return -EINVAL;
		if (place < node->name_length + 1U)
			return -ENAMETOOLONG;
		place -= node->name_length;
		memcpy(path + place, tree_name(tree, node), node->name_length);
		index = node->parent;
		if (index != top)
			path[--place] = '/';
	}
	memmove(path, path + place, PATH_MAX - place);
	return 0;
}

void tree_free(struct tree *tree)
{
	free(tree->nodes);
	free(tree->pool);
	*tree = (struct tree){0};
}

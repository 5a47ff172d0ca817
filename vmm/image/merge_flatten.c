/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/image/merge_internal.h"

/* Names that were taken in, by the tree's nodes, and files that have a node. */
struct flattening {
	const struct merge *merge;
	struct tree *tree;
	uint32_t *name_of; /* of each node */
	uint32_t *node_of; /* the first of each inode; MERGE_NONE */
	uint32_t *sorted;  /* the children of one directory */
};

static int compare(const void *a, const void *b, void *context)
{
	const struct merge *merge = context;
	const struct merge_name *left = &merge->names[*(const uint32_t *)a];
	const struct merge_name *right = &merge->names[*(const uint32_t *)b];
	int order = memcmp(merge_text(merge, left->text), merge_text(merge, right->text),
			   bytes_minimum(left->length, right->length));

	return order ? order : (int)left->length - (int)right->length;
}

/* Copies a text from one pool to the other. */
static int copy_text(struct flattening *flat, uint32_t place, size_t length, uint32_t *copied)
{
	int64_t text = tree_add_text(flat->tree, merge_text(flat->merge, place), length);

	*copied = text < 0 ? 0 : (uint32_t)text;
	return text < 0 ? (int)text : 0;
}

static int fill_node(struct flattening *flat, uint32_t index, uint32_t name)
{
	const struct merge_inode *inode = merge_inode_of(flat->merge, name);
	uint32_t *first = &flat->node_of[flat->merge->names[name].inode];
	struct tree_node *node = &flat->tree->nodes[index];
	uint32_t text = 0;
	int error = 0;

	if (*first == MERGE_NONE)
		*first = index;
	node->same_as = *first;
	node->kind = inode->kind;
	node->mode = inode->mode;
	node->uid = inode->uid;
	node->gid = inode->gid;
	node->mtime = inode->mtime;
	node->mtime_ns = inode->mtime_ns;
	node->size = inode->kind == TREE_DIRECTORY ? 0 : inode->size;
	node->xattr_bytes = inode->xattr_bytes;
	if (inode->kind == TREE_SYMLINK)
		error = copy_text(flat, inode->text, inode->size, &text);
	node->text = text;
	if (!error && inode->xattr_bytes)
		error = copy_text(flat, inode->xattrs, inode->xattr_bytes, &node->xattrs);
	return error;
}

static int add_children(struct flattening *flat, uint32_t index)
{
	const struct merge *merge = flat->merge;
	const struct merge_name *directory = &merge->names[flat->name_of[index]];
	uint32_t count = 0;
	int error = 0;

	for (uint32_t name = directory->first_child; name != MERGE_NONE;
	     name = merge->names[name].next)
		flat->sorted[count++] = name;
	qsort_r(flat->sorted, count, sizeof(*flat->sorted), compare, (void *)(uintptr_t)merge);
	flat->tree->nodes[index].first_child = flat->tree->node_count;
	flat->tree->nodes[index].child_count = count;
	for (uint32_t i = 0; i < count && !error; i++) {
		const struct merge_name *name = &merge->names[flat->sorted[i]];
		int64_t added =
			tree_add_node(flat->tree, merge_text(merge, name->text), name->length);

		if (added < 0)
			return (int)added;
		flat->tree->nodes[added].parent = index;
		flat->name_of[added] = flat->sorted[i];
		error = fill_node(flat, (uint32_t)added, flat->sorted[i]);
	}
	return error;
}

static int flatten(struct flattening *flat, uint64_t *contents)
{
	struct tree *tree = flat->tree;
	int64_t root = tree_add_node(tree, "", 0);
	int error;

	if (root < 0)
		return (int)root;
	flat->name_of[0] = MERGE_ROOT;
	error = fill_node(flat, 0, MERGE_ROOT);
	/* Level by level: the array of nodes is its own queue. */
	for (uint32_t i = 0; i < tree->node_count && !error; i++) {
		contents[i] = merge_inode_of(flat->merge, flat->name_of[i])->contents;
		if (tree->nodes[i].kind == TREE_DIRECTORY)
			error = add_children(flat, i);
	}
	return error;
}

int merge_flatten(const struct merge *merge, struct tree *tree, uint64_t **contents)
{
	struct flattening flat = {
		.merge = merge,
		.tree = tree,
		.name_of = calloc(merge->name_count, sizeof(uint32_t)),
		.node_of = malloc(merge->inode_count * sizeof(uint32_t)),
		.sorted = calloc(merge->name_count, sizeof(uint32_t)),
	};
	int error = -ENOMEM;

	*tree = (struct tree){0};
	*contents = calloc(merge->name_count, sizeof(uint64_t));
	if (flat.name_of && flat.node_of && flat.sorted && *contents) {
		memset(flat.node_of, 0xff, merge->inode_count * sizeof(uint32_t));
		error = flatten(&flat, *contents);
	}
	free(flat.name_of);
	free(flat.node_of);
	free(flat.sorted);
	return error;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/root_names.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/text.h"

/* A name of the host's may be any bytes. */
static void make_printable(char *path)
{
	for (char *newline = path; (newline = strchr(newline, '\n'));)
		*newline = '?';
	text_make_printable(path, strlen(path));
}

void root_names_left_out(void *context, const char *path, size_t count)
{
	struct root_names *names = context;
	size_t index = count / sizeof(uint64_t);
	char *copy;

	if (names->counts[index] == LIMIT_ROOT_SHOWN)
		return;
	copy = strdup(path);
	if (!copy)
		return;
	make_printable(copy);
	names->names[index][names->counts[index]++] = copy;
}

void root_names_destroy(struct root_names *names)
{
	for (size_t i = 0; i < ROOT_NAMES_COUNTS; i++) {
		for (unsigned int k = 0; k < names->counts[i]; k++)
			free(names->names[i][k]);
		names->counts[i] = 0;
	}
}

/* Where the source begins: its other nodes come later. 0: it is not there. */
static uint32_t find_top(const struct tree *tree, unsigned int source)
{
	for (uint32_t i = 0; i < tree->node_count; i++) {
		if (tree->nodes[i].source == source)
			return i;
	}
	return 0;
}

/* Whether a list names it, or something above it that is not all of the source: what is below a
 * whole directory need not be shown. */
static bool is_listed(const struct tree *tree, uint32_t index)
{
	const struct tree_node *node = &tree->nodes[index];

	return (node->whole || node->kind != TREE_DIRECTORY) && !tree->nodes[node->parent].whole;
}

unsigned int root_names_entered(const struct host_image *image, unsigned int source,
				void (*show)(void *context, const char *path), void *context)
{
	const struct tree *tree = &image->tree;
	uint32_t top = find_top(tree, source);
	unsigned int count = 0;
	char path[PATH_MAX + 2];

	for (uint32_t i = top + 1; top && i < tree->node_count; i++) {
		const struct tree_node *node = &tree->nodes[i];

		if (node->source != source || !is_listed(tree, i) || count++ >= LIMIT_ROOT_SHOWN)
			continue;
		if (tree_path(tree, i, top, path) < 0)
			continue;
		make_printable(path);
		if (node->kind == TREE_DIRECTORY)
			memcpy(path + strlen(path), "/", 2); /* there is room: PATH_MAX + 2 */
		show(context, path);
	}
	return count > LIMIT_ROOT_SHOWN ? count - LIMIT_ROOT_SHOWN : 0;
}

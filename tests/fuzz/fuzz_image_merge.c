/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers merged from hostile entries. Each line of the input is one: a letter that says what, a
 * path, and for links a tab and where they lead. Whatever they are, the tree is one that the EROFS
 * writer takes: names that are names, sorted, none twice, links to files that are there.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "tests/fuzz/silent_log.h"
#include "vmm/image/merge.h"
#include "vmm/root/erofs.h"
#include "vmm/root/erofs_directory.h"
#include "vmm/root/erofs_xattr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)        \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static void apply(struct merge *merge, char *line)
{
	struct merge_attributes attributes = {.mode = 0644, .uid = 1, .gid = 2, .mtime = 3};
	struct erofs_xattrs xattrs = {0};
	char *path = line + 1, *target = path + strcspn(path, "\t");
	uint64_t value, place;

	if (!*line)
		return;
	if (*target)
		*target++ = '\0';
	if (strlen(path) % 3 == 0 &&
	    erofs_xattr_add(&xattrs, "user.x", target, strlen(target)) == 0) {
		attributes.xattrs = xattrs.bytes;
		attributes.xattr_bytes = xattrs.length;
	}
	switch (*line) {
	case 'd':
		merge_put_directory(merge, path, &attributes);
		break;
	case 's':
		merge_put_symlink(merge, path, &attributes, target);
		break;
	case 'h':
		merge_put_link(merge, path, target);
		break;
	case 'w':
		merge_remove(merge, path);
		break;
	case 'o':
		merge_remove_around(merge, path);
		break;
	case 'm':
		merge_make_directories(merge, path);
		break;
	case 'q':
		merge_find_file(merge, path, &value, &place);
		break;
	case 'l':
		merge_begin_layer(merge);
		break;
	default:
		merge_put_file(merge, path, &attributes, strlen(target) * 1000, 4096);
		break;
	}
}

static void check(const struct tree *tree)
{
	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		const char *name = tree_name(tree, node);
		const struct erofs_name this = {.text = name, .length = node->name_length};

		REQUIRE(node->same_as <= i && tree->nodes[node->same_as].kind == node->kind);
		if (!i)
			continue;
		REQUIRE(node->parent < i && tree->nodes[node->parent].kind == TREE_DIRECTORY);
		REQUIRE(node->name_length && strlen(name) == node->name_length);
		REQUIRE(!strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
		if (tree->nodes[i - 1].parent == node->parent && i > 1) {
			const struct tree_node *before = &tree->nodes[i - 1];
			const struct erofs_name last = {.text = tree_name(tree, before),
							.length = before->name_length};

			REQUIRE(erofs_name_compare(&last, &this) < 0);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct merge *merge;
	struct tree tree;
	struct erofs_layout layout;
	uint64_t *contents;
	uint8_t *metadata;
	char *text = calloc(1, size + 1), *line = text, *end;

	REQUIRE(text && merge_create(&merge) == 0);
	if (size)
		memcpy(text, data, size);
	while ((end = strchr(line, '\n'))) {
		*end = '\0';
		apply(merge, line);
		line = end + 1;
	}
	REQUIRE(merge_flatten(merge, &tree, &contents) == 0);
	check(&tree);
	REQUIRE(erofs_lay_out(&tree, &layout) == 0);
	metadata = malloc(layout.metadata_bytes);
	REQUIRE(metadata && erofs_write(&tree, &layout, metadata) == 0);
	free(metadata);
	free(contents);
	tree_free(&tree);
	merge_destroy(merge);
	free(text);
	return 0;
}

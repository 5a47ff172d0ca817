/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees for the tests of the EROFS writer, and what erofs-utils says of the images. After cmocka.h.
 */
#ifndef MVAGENT_TESTS_EROFS_IMAGE_H
#define MVAGENT_TESTS_EROFS_IMAGE_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/root/erofs.h"
#include "vmm/root/erofs_format.h"
#include "vmm/root/tree.h"

#define TEST_TIME 1234567890

/* Runs a shell command made by printf; returns its exit status, and its first output line in @line
 * (may be NULL, else of 512 bytes). */
__attribute__((format(printf, 2, 3))) static inline int shell(char *line, const char *format, ...)
{
	char command[2048], unused[512];
	va_list arguments;
	FILE *pipe;
	int status;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	pipe = popen(command, "re"); /* NOLINT(cert-env33-c) */
	assert_non_null(pipe);
	line = line ? line : unused;
	if (!fgets(line, 512, pipe))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	while (fgets(unused, sizeof(unused), pipe))
		;
	status = pclose(pipe);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline uint32_t add_node(struct tree *tree, uint32_t parent, enum tree_kind kind,
				const char *name)
{
	int64_t index = tree_add_node(tree, name, strlen(name));
	struct tree_node *node;

	assert_true(index >= 0);
	node = &tree->nodes[index];
	node->parent = parent;
	node->kind = (uint8_t)kind;
	node->mode = kind == TREE_DIRECTORY ? 0755 : kind == TREE_SYMLINK ? 0777 : 0644;
	node->mtime = TEST_TIME + index;
	node->mtime_ns = (uint32_t)index * 1001;
	if (index) {
		struct tree_node *directory = &tree->nodes[parent];

		if (!directory->child_count)
			directory->first_child = (uint32_t)index;
		assert_int_equal(directory->first_child + directory->child_count, index);
		directory->child_count++;
	}
	return (uint32_t)index;
}

static inline uint32_t add_text(struct tree *tree, uint32_t parent, enum tree_kind kind,
				const char *name, const void *text, size_t length)
{
	uint32_t index = add_node(tree, parent, kind, name);
	int64_t place = tree_add_text(tree, text, length);

	assert_true(place >= 0);
	tree->nodes[index].text = (uint32_t)place;
	tree->nodes[index].size = length;
	return index;
}

/* The bytes of file @index: any, but not all the same. */
static inline uint8_t content_byte(uint32_t index, uint64_t offset)
{
	return (uint8_t)(index * 7 + offset * 13 + offset / 4096);
}

/* Lays the tree out and writes it to a new file, with contents for the files of at most
 * @fill_limit bytes; larger ones are holes. */
static inline struct erofs_layout write_image(struct tree *tree, const char *path,
					      uint64_t fill_limit)
{
	struct erofs_layout layout;
	uint8_t *metadata;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(erofs_lay_out(tree, &layout), 0);
	metadata = malloc(layout.metadata_bytes);
	assert_non_null(metadata);
	memset(metadata, 0xa5, layout.metadata_bytes);
	assert_int_equal(erofs_write(tree, &layout, metadata), 0);
	assert_int_equal(fd_write_full(fd, metadata, layout.metadata_bytes), 0);
	for (uint32_t i = 0; i < tree->node_count; i++) {
		const struct tree_node *node = &tree->nodes[i];
		uint8_t *bytes;

		if (node->kind != TREE_FILE || node->same_as != i || !node->size ||
		    node->size > fill_limit)
			continue;
		bytes = malloc(node->size);
		assert_non_null(bytes);
		for (uint64_t j = 0; j < node->size; j++)
			bytes[j] = content_byte(i, j);
		assert_int_equal(
			pwrite(fd, bytes, node->size, (off_t)node->first_block * EROFS_BLOCK_BYTES),
			(ssize_t)node->size);
		free(bytes);
	}
	assert_int_equal(ftruncate(fd, (off_t)layout.block_count * EROFS_BLOCK_BYTES), 0);
	close(fd);
	free(metadata);
	return layout;
}

#endif

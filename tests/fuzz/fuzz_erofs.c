/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random trees to the EROFS writer, and a reader of our own, which does as the kernel's does
 * (fs/erofs of Linux 6.12: inode.c, namei.c, dir.c): it must find everything again, and nothing may
 * lie outside the metadata, cross a block where it must not, or overlap.
 *
 * Input, for each node until it ends: a byte that chooses the directory it goes to, one with its
 * kind (bits 0 and 1) and how long its name is, one that the name is made of, two for its size.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "vmm/base/bytes.h"
#include "vmm/root/erofs.h"
#include "vmm/root/erofs_directory.h"
#include "vmm/root/erofs_format.h"

#define NODES_MAX      700U
#define REQUIRE(truth) ((truth) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the input asks for, before it is put into the order of a tree. */
struct wish {
	uint32_t parent; /* an earlier wish that is a directory */
	enum tree_kind kind;
	uint8_t length;
	char name[EROFS_NAME_MAXIMUM];
	uint16_t size;
	uint32_t place; /* in the tree */
};

static struct wish wishes[NODES_MAX];
static uint32_t wish_count;
static uint8_t contents[65536];

static void take_wishes(const uint8_t *data, size_t size)
{
	wishes[0] = (struct wish){.kind = TREE_DIRECTORY};
	wish_count = 1;
	for (; size >= 5 && wish_count < NODES_MAX; data += 5, size -= 5) {
		struct wish *wish = &wishes[wish_count];

		*wish = (struct wish){.parent = data[0] % wish_count, .kind = data[1] & 3};
		while (wishes[wish->parent].kind != TREE_DIRECTORY)
			wish->parent--;
		wish->length = (uint8_t)(1 + (data[1] >> 2) * 4);
		wish->size = (uint16_t)(data[3] | data[4] << 8);
		for (unsigned int i = 0; i < wish->length; i++) {
			wish->name[i] = (char)(data[2] + i * (data[3] & 3));
			if (wish->name[i] == '\0' || wish->name[i] == '/')
				wish->name[i] = '_';
		}
		if (wish->length == 1 && wish->name[0] == '.')
			wish->name[0] = ',';
		wish_count++;
	}
}

static int compare_wishes(const void *a, const void *b)
{
	const struct wish *left = *(struct wish *const *)a, *right = *(struct wish *const *)b;
	const struct erofs_name left_name = {left->name, left->length, 0, 0};
	const struct erofs_name right_name = {right->name, right->length, 0, 0};

	return erofs_name_compare(&left_name, &right_name);
}

static void add_child(struct tree *tree, uint32_t parent, struct wish *wish)
{
	int64_t index = tree_add_node(tree, wish->name, wish->length);
	struct tree_node *node;
	int64_t text;

	REQUIRE(index > 0);
	wish->place = (uint32_t)index;
	node = &tree->nodes[index];
	node->parent = parent;
	node->kind = (uint8_t)wish->kind;
	node->mode = wish->size & 0777;
	node->mtime = wish->size * 100001LL;
	node->mtime_ns = wish->size;
	if (wish->kind == TREE_DIRECTORY)
		return;
	node->size = wish->kind == TREE_SYMLINK ? wish->size % EROFS_SYMLINK_MAX + 1 : wish->size;
	if (wish->kind == TREE_FILE)
		return;
	text = tree_add_text(tree, contents, node->size);
	REQUIRE(text >= 0);
	tree->nodes[index].text = (uint32_t)text;
}

/* Level by level, each directory's children sorted and without doubles. */
static void make_tree(struct tree *tree)
{
	static struct wish *children[NODES_MAX];
	static uint32_t wish_of[NODES_MAX];

	REQUIRE(tree_add_node(tree, "", 0) == 0);
	wish_of[0] = 0;
	for (uint32_t i = 0; i < tree->node_count; i++) {
		size_t count = 0;

		if (tree->nodes[i].kind != TREE_DIRECTORY)
			continue;
		for (uint32_t j = 1; j < wish_count; j++) {
			if (wishes[j].parent == wish_of[i])
				children[count++] = &wishes[j];
		}
		if (count)
			qsort(children, count, sizeof(children[0]), compare_wishes);
		tree->nodes[i].first_child = tree->node_count;
		for (size_t j = 0; j < count; j++) {
			if (j && compare_wishes(&children[j - 1], &children[j]) == 0)
				continue;
			if (children[j]->length == 2 && memcmp(children[j]->name, "..", 2) == 0)
				continue;
			add_child(tree, i, children[j]);
			wish_of[children[j]->place] = (uint32_t)(children[j] - wishes);
		}
		tree->nodes[i].child_count = tree->node_count - tree->nodes[i].first_child;
	}
}

struct image {
	const uint8_t *metadata;
	struct erofs_layout layout;
	uint8_t *used; /* a bit of each byte of metadata: who uses it */
};

/* A range of the metadata that nothing else may use. */
static const uint8_t *claim(struct image *image, uint64_t offset, uint64_t length)
{
	REQUIRE(bytes_range_fits(offset, length, image->layout.metadata_bytes));
	for (uint64_t i = 0; i < length; i++)
		REQUIRE(!image->used[offset + i]++);
	return image->metadata + offset;
}

/* The contents of an inode that lie in the metadata, put together; free them. */
static uint8_t *read_contents(struct image *image, uint64_t nid, const struct erofs_inode *inode)
{
	uint64_t whole = inode->size, offset = (uint64_t)inode->first_block * EROFS_BLOCK_BYTES;
	uint8_t *bytes = malloc(inode->size + 1);
	unsigned int layout = inode->format & ~EROFS_FORMAT_EXTENDED;

	REQUIRE(bytes && (layout == EROFS_LAYOUT_PLAIN || layout == EROFS_LAYOUT_INLINE));
	if (layout == EROFS_LAYOUT_INLINE) {
		uint64_t tail = nid * EROFS_NID_BYTES + sizeof(*inode);
		uint64_t length = inode->size % EROFS_BLOCK_BYTES;

		whole -= length;
		REQUIRE(length && tail % EROFS_BLOCK_BYTES + length <= EROFS_BLOCK_BYTES);
		memcpy(bytes + whole, claim(image, tail, length), length);
	}
	if (whole)
		memcpy(bytes, claim(image, offset, whole), whole);
	return bytes;
}

static struct erofs_inode read_inode(struct image *image, uint64_t nid)
{
	struct erofs_inode inode;
	uint64_t offset = nid * EROFS_NID_BYTES;

	REQUIRE(offset % EROFS_BLOCK_BYTES + sizeof(inode) <= EROFS_BLOCK_BYTES);
	memcpy(&inode, claim(image, offset, sizeof(inode)), sizeof(inode));
	REQUIRE(inode.format & EROFS_FORMAT_EXTENDED);
	return inode;
}

/* One block of a directory, as erofs_fill_dentries reads it. Returns the count of its entries. */
static uint32_t read_block(const uint8_t *block, uint64_t length, struct erofs_name *last)
{
	struct erofs_entry first, entry;
	uint32_t count;

	memcpy(&first, block, sizeof(first));
	REQUIRE(first.name_offset && first.name_offset < EROFS_BLOCK_BYTES &&
		first.name_offset % sizeof(first) == 0);
	count = first.name_offset / sizeof(first);
	for (uint32_t i = 0; i < count; i++) {
		struct erofs_name name;
		size_t name_length;

		memcpy(&entry, block + i * sizeof(entry), sizeof(entry));
		REQUIRE(entry.name_offset < length);
		if (i + 1 < count) {
			struct erofs_entry next;

			memcpy(&next, block + (i + 1) * sizeof(next), sizeof(next));
			name_length = (size_t)next.name_offset - entry.name_offset;
		} else {
			name_length = strnlen((const char *)block + entry.name_offset,
					      length - entry.name_offset);
		}
		REQUIRE(name_length >= 1 && name_length <= EROFS_NAME_MAXIMUM);
		REQUIRE(entry.name_offset + name_length <= length);
		name = (struct erofs_name){(const char *)block + entry.name_offset,
					   (uint8_t)name_length, entry.type, entry.nid};
		REQUIRE(!last->text || erofs_name_compare(last, &name) < 0);
		*last = name;
	}
	return count;
}

/* Whether a name leads to @nid: two searches by halves would find it, as the order was checked. */
static bool directory_has(const uint8_t *bytes, uint64_t size, const char *text, size_t length,
			  uint64_t nid)
{
	for (uint64_t offset = 0; offset < size; offset += EROFS_BLOCK_BYTES) {
		struct erofs_entry entry;
		uint64_t in_block = bytes_minimum(size - offset, EROFS_BLOCK_BYTES);
		uint16_t end;

		memcpy(&entry, bytes + offset, sizeof(entry));
		end = entry.name_offset;
		for (uint64_t at = 0; at < end; at += sizeof(entry)) {
			memcpy(&entry, bytes + offset + at, sizeof(entry));
			if (entry.nid == nid && entry.name_offset + length <= in_block &&
			    memcmp(bytes + offset + entry.name_offset, text, length) == 0)
				return true;
		}
	}
	return false;
}

static void check_directory(const struct tree *tree, uint32_t index, const uint8_t *bytes,
			    uint64_t size)
{
	const struct tree_node *directory = &tree->nodes[index];
	struct erofs_name last = {0};
	uint32_t count = 0;

	for (uint64_t offset = 0; offset < size; offset += EROFS_BLOCK_BYTES)
		count += read_block(bytes + offset, bytes_minimum(size - offset, EROFS_BLOCK_BYTES),
				    &last);
	REQUIRE(count == directory->child_count + 2);
	REQUIRE(directory_has(bytes, size, ".", 1, directory->nid));
	REQUIRE(directory_has(bytes, size, "..", 2, tree->nodes[directory->parent].nid));
	for (uint32_t i = 0; i < directory->child_count; i++) {
		const struct tree_node *child = &tree->nodes[directory->first_child + i];

		REQUIRE(directory_has(bytes, size, tree_name(tree, child), child->name_length,
				      child->nid));
	}
}

static void check_node(struct image *image, const struct tree *tree, uint32_t index,
		       uint64_t *next_block)
{
	static const uint16_t types[] = {S_IFDIR, S_IFREG, S_IFREG, S_IFLNK};
	const struct tree_node *node = &tree->nodes[index];
	struct erofs_inode inode = read_inode(image, node->nid);
	uint8_t *bytes;

	REQUIRE(inode.mode == (types[node->kind] | node->mode));
	REQUIRE((int64_t)inode.mtime == node->mtime && inode.mtime_ns == node->mtime_ns);
	REQUIRE(inode.link_count >= (node->kind == TREE_DIRECTORY ? 2 : 1));
	if (node->kind == TREE_FILE) {
		uint64_t blocks = erofs_blocks_of(inode.size);

		REQUIRE(inode.size == node->size);
		REQUIRE(!blocks || inode.first_block == *next_block);
		*next_block += blocks;
		return;
	}
	bytes = read_contents(image, node->nid, &inode);
	if (node->kind == TREE_DIRECTORY)
		check_directory(tree, index, bytes, inode.size);
	else
		REQUIRE(inode.size == node->size && memcmp(bytes, contents, inode.size) == 0);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tree tree = {0};
	struct image image;
	struct erofs_superblock superblock;
	uint8_t *metadata;
	uint64_t next_block;

	for (size_t i = 0; !contents[0] && i < sizeof(contents); i++)
		contents[i] = (uint8_t)((i + 1) % 251 + 1);
	take_wishes(data, size);
	make_tree(&tree);
	REQUIRE(erofs_lay_out(&tree, &image.layout) == 0);
	metadata = malloc(image.layout.metadata_bytes);
	image.used = calloc(1, image.layout.metadata_bytes);
	REQUIRE(metadata && image.used);
	REQUIRE(erofs_write(&tree, &image.layout, metadata) == 0);
	image.metadata = metadata;
	memcpy(&superblock, claim(&image, EROFS_SUPER_OFFSET, sizeof(superblock)),
	       sizeof(superblock));
	REQUIRE(superblock.magic == EROFS_MAGIC && superblock.root_nid == tree.nodes[0].nid);
	next_block = image.layout.metadata_bytes / EROFS_BLOCK_BYTES;
	for (uint32_t i = 0; i < tree.node_count; i++)
		check_node(&image, &tree, i, &next_block);
	REQUIRE(next_block == image.layout.block_count && next_block == superblock.blocks);
	free(metadata);
	free(image.used);
	tree_free(&tree);
	return 0;
}

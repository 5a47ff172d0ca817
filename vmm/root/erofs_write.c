/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "vmm/base/bytes.h"
#include "vmm/root/erofs.h"
#include "vmm/root/erofs_format.h"
#include "vmm/root/erofs_internal.h"

#define CRC32C_POLYNOMIAL 0x82f63b78U /* of Castagnoli, reversed */

static const uint8_t image_uuid[16] = "mvagent host 001";

/* CRC-32C as the kernel's crc32c() has it: begun with all ones, and not inverted in the end. */
static uint32_t crc32c(const uint8_t *bytes, size_t length)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < length; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? CRC32C_POLYNOMIAL : 0);
	}
	return crc;
}

/* Written last: the checksum covers what lies behind it in the first block. */
static void write_superblock(const struct tree *tree, const struct erofs_layout *layout,
			     uint8_t *metadata)
{
	struct erofs_superblock superblock = {
		.magic = htole32(EROFS_MAGIC),
		.feature_compat = htole32(EROFS_COMPAT_CRC | EROFS_COMPAT_MTIME),
		.block_bits = EROFS_BLOCK_BITS,
		.root_nid = htole16((uint16_t)tree->nodes[0].nid),
		.inode_count = htole64(layout->inode_count),
		.blocks = htole32(layout->block_count),
		.volume_name = "mvagent-root",
	};
	uint8_t *place = metadata + EROFS_SUPER_OFFSET;

	memcpy(superblock.uuid, image_uuid, sizeof(image_uuid));
	memcpy(place, &superblock, sizeof(superblock));
	superblock.checksum = htole32(crc32c(place, EROFS_BLOCK_BYTES - EROFS_SUPER_OFFSET));
	memcpy(place, &superblock, sizeof(superblock));
}

/* i_xattr_icount: the header counts as one, and each four bytes behind it. */
static uint16_t xattr_count(const struct tree_node *node)
{
	return node->xattr_bytes ? (uint16_t)(node->xattr_bytes / 4 + 1) : 0;
}

static void write_xattrs(const struct tree *tree, const struct tree_node *node, uint8_t *metadata)
{
	uint8_t *place =
		metadata + (uint64_t)node->nid * EROFS_NID_BYTES + sizeof(struct erofs_inode);

	/* The header is all zeros. */
	if (node->xattr_bytes)
		memcpy(place + sizeof(struct erofs_xattr_header), tree->pool + node->xattrs,
		       node->xattr_bytes);
}

static void write_inode(const struct tree_node *node, uint32_t number, uint8_t *metadata)
{
	static const uint16_t types[] = {
		[TREE_DIRECTORY] = S_IFDIR,
		[TREE_FILE] = S_IFREG,
		[TREE_MADE] = S_IFREG,
		[TREE_SYMLINK] = S_IFLNK,
	};
	unsigned int layout = erofs_inline_bytes(node) ? EROFS_LAYOUT_INLINE : EROFS_LAYOUT_PLAIN;
	const struct erofs_inode inode = {
		.format = htole16((uint16_t)(EROFS_FORMAT_EXTENDED | layout)),
		.xattr_count = htole16(xattr_count(node)),
		.mode = htole16(types[node->kind] | node->mode),
		.size = htole64(node->size),
		.first_block = htole32(node->first_block),
		.number = htole32(number),
		.uid = htole32(node->uid),
		.gid = htole32(node->gid),
		.mtime = htole64((uint64_t)node->mtime),
		.mtime_ns = htole32(node->mtime_ns),
		.link_count = htole32(node->link_count),
	};

	memcpy(metadata + (uint64_t)node->nid * EROFS_NID_BYTES, &inode, sizeof(inode));
}

/* Puts contents where the layout has them: whole blocks, then the tail behind the inode. */
static void write_contents(const struct tree_node *node, const uint8_t *contents, uint8_t *metadata)
{
	size_t tail = erofs_inline_bytes(node);
	size_t head = node->size - tail;

	if (head)
		memcpy(metadata + (uint64_t)node->first_block * EROFS_BLOCK_BYTES, contents, head);
	memcpy(metadata + (uint64_t)node->nid * EROFS_NID_BYTES + sizeof(struct erofs_inode) +
		       erofs_xattr_area(node),
	       contents + head, tail);
}

/* The buffers that serve all directories, one after the other. */
struct scratch {
	struct erofs_names names;
	uint8_t *blocks;
	size_t capacity;
};

static int write_directory(const struct tree *tree, uint32_t index, struct scratch *scratch,
			   uint8_t *metadata)
{
	const struct tree_node *node = &tree->nodes[index];
	int error = erofs_gather_names(tree, index, &scratch->names);

	if (error)
		return error;
	if (node->size > scratch->capacity) {
		uint8_t *grown = realloc(scratch->blocks, node->size);

		if (!grown)
			return -ENOMEM;
		scratch->blocks = grown;
		scratch->capacity = node->size;
	}
	erofs_directory_write(scratch->names.list, scratch->names.count, scratch->blocks);
	write_contents(node, scratch->blocks, metadata);
	return 0;
}

int erofs_write(const struct tree *tree, const struct erofs_layout *layout, uint8_t *metadata)
{
	struct scratch scratch = {0};
	uint32_t number = 0;
	int error = 0;

	memset(metadata, 0, layout->metadata_bytes);
	for (uint32_t i = 0; i < tree->node_count && !error; i++) {
		const struct tree_node *node = &tree->nodes[i];

		if (node->same_as != i)
			continue;
		write_inode(node, ++number, metadata);
		write_xattrs(tree, node, metadata);
		if (node->kind == TREE_DIRECTORY)
			error = write_directory(tree, i, &scratch, metadata);
		else if (node->kind != TREE_FILE && node->size)
			write_contents(node, (const uint8_t *)tree->pool + node->text, metadata);
	}
	if (!error)
		write_superblock(tree, layout, metadata);
	free(scratch.blocks);
	free(scratch.names.list);
	return error;
}

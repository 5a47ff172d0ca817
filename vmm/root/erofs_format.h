/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EROFS on disk, as far as we write it (Documentation/filesystems/erofs.rst; Linux 5.4 and later
 * read it): no compression, blocks of 4 KiB. Everything is little endian.
 *
 * An inode's number (nid) is its place: 32 bytes times nid behind the start of the metadata, which
 * for us is the start of the image. A file's contents are one run of blocks (FLAT_PLAIN), or whole
 * blocks and then a tail right behind the inode, in the same block (FLAT_INLINE).
 */
#ifndef MVAGENT_ROOT_EROFS_FORMAT_H
#define MVAGENT_ROOT_EROFS_FORMAT_H

#include <assert.h>
#include <stdint.h>

#define EROFS_BLOCK_BITS   12U
#define EROFS_BLOCK_BYTES  (1U << EROFS_BLOCK_BITS)
#define EROFS_NID_BYTES    32U
#define EROFS_NAME_MAXIMUM 255U
#define EROFS_SYMLINK_MAX  4095U /* PATH_MAX without its NUL */
#define EROFS_SUPER_OFFSET 1024U
#define EROFS_MAGIC        0xe0f5e1e2U
#define EROFS_COMPAT_CRC   0x00000001U /* superblock.checksum is valid */
#define EROFS_COMPAT_MTIME 0x00000002U /* extended inodes carry mtime, not ctime */
#define EROFS_BLOCK_NONE   UINT32_MAX  /* block address of what has no blocks */
#define EROFS_BLOCKS_MAX   UINT32_MAX  /* of an image: block addresses have 32 bits */
#define EROFS_ROOT_NID_MAX UINT16_MAX  /* the root's nid has 16 bits */

struct erofs_superblock {
	uint32_t magic;
	uint32_t checksum; /* CRC-32C from here to the end of the block, this field being 0 */
	uint32_t feature_compat;
	uint8_t block_bits;
	uint8_t extension_slots;
	uint16_t root_nid;
	uint64_t inode_count;
	uint64_t build_time;
	uint32_t build_time_ns;
	uint32_t blocks; /* of the whole image, for statfs(2) */
	uint32_t metadata_block;
	uint32_t xattr_block;
	uint8_t uuid[16];
	uint8_t volume_name[16];
	uint32_t feature_incompat;
	uint16_t compression;
	uint16_t extra_devices;
	uint16_t device_slots;
	uint8_t directory_block_bits; /* beyond block_bits: always 0 */
	uint8_t reserved[37];
};
static_assert(sizeof(struct erofs_superblock) == 128, "as on disk");

/* The extended form of an inode. The compact one is half as long, and has no time of its own. */
struct erofs_inode {
	uint16_t format; /* bit 0: extended; bits 1 to 3: layout */
	uint16_t xattr_count;
	uint16_t mode;
	uint16_t reserved;
	uint64_t size;
	uint32_t first_block;
	uint32_t number; /* for programs with an ino_t of 32 bits */
	uint32_t uid;
	uint32_t gid;
	uint64_t mtime;
	uint32_t mtime_ns;
	uint32_t link_count;
	uint8_t reserved2[16];
};
static_assert(sizeof(struct erofs_inode) == 64, "as on disk");

/* Extended attributes lie between the inode and its tail: this, and the attributes, each an entry
 * with its name and value behind it, padded to four bytes. */
struct erofs_xattr_header {
	uint32_t reserved;
	uint8_t shared_count; /* of attributes that are elsewhere: we have none */
	uint8_t reserved2[7];
};
static_assert(sizeof(struct erofs_xattr_header) == 12, "as on disk");

struct erofs_xattr_entry {
	uint8_t name_length; /* without the prefix that name_index stands for */
	uint8_t name_index;  /* enum erofs_xattr_prefix */
	uint16_t value_bytes;
};
static_assert(sizeof(struct erofs_xattr_entry) == 4, "as on disk");

enum erofs_xattr_prefix { EROFS_XATTR_USER = 1, EROFS_XATTR_SECURITY = 6 };

/* Of one inode, so that it stays in one block with them: the header, the entries. */
#define EROFS_XATTR_BYTES_MAX (4096U - 64U - 12U)

#define EROFS_FORMAT_EXTENDED 0x1U
#define EROFS_LAYOUT_PLAIN    (0U << 1)
#define EROFS_LAYOUT_INLINE   (2U << 1)

/* A block of a directory: these, and behind them the names, without NULs. All entries of a
 * directory ascend by the bytes of their names, "." and ".." among them. */
struct erofs_entry {
	uint64_t nid;
	uint16_t name_offset; /* in the block; the first one's also tells the count */
	uint8_t type;
	uint8_t reserved;
} __attribute__((packed));
static_assert(sizeof(struct erofs_entry) == 12, "as on disk");

enum erofs_type { EROFS_TYPE_FILE = 1, EROFS_TYPE_DIRECTORY = 2, EROFS_TYPE_SYMLINK = 7 };

#endif

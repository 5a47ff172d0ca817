/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree of files, as it is to appear in an EROFS image: one array of nodes, level by level, the
 * children of a directory side by side and sorted by the bytes of their names. Node 0 is the root.
 * All texts are in one pool. It holds no pointers, so it is good wherever it is mapped.
 */
#ifndef MVAGENT_ROOT_TREE_H
#define MVAGENT_ROOT_TREE_H

#include <stddef.h>
#include <stdint.h>

enum tree_kind {
	TREE_DIRECTORY,
	TREE_FILE,    /* its contents stay in a file of the host */
	TREE_MADE,    /* its contents are in the pool */
	TREE_SYMLINK, /* its target is in the pool */
};

#define TREE_NO_SOURCE UINT16_MAX

struct tree_node {
	uint64_t size; /* bytes; of a directory: once it is laid out */
	int64_t mtime;
	int64_t ctime;       /* the host's, as the next ones: what a file must still be like */
	uint64_t host_inode; /* 0: no file or directory of the host */
	uint32_t mtime_ns;
	uint32_t ctime_ns;
	uint32_t parent;
	uint32_t first_child;
	uint32_t child_count;
	uint32_t same_as; /* the first name of the same file; itself if there is no other */
	uint32_t name;    /* place in the pool, with a NUL behind it */
	uint32_t text;    /* of the target or the contents there */
	uint32_t uid;
	uint32_t gid;
	uint32_t link_count;
	uint32_t nid;         /* once laid out, as the next one */
	uint32_t first_block; /* of what is not behind the inode; EROFS_BLOCK_NONE: nothing */
	uint32_t xattrs; /* place in the pool: erofs_xattr_add (erofs_xattr.h) put them there */
	uint16_t xattr_bytes; /* 0: none */
	uint16_t mode;        /* permissions, set-id and sticky bits */
	uint16_t source;      /* which directory of host_plan.h it is from; TREE_NO_SOURCE */
	uint16_t plan;        /* what else was declared for this place; 0: nothing */
	uint8_t kind;
	uint8_t name_length;
	uint8_t whole; /* no list says what of this directory enters: all does */
	uint8_t reserved[1];
};

struct tree {
	struct tree_node *nodes;
	uint32_t node_count;
	uint32_t node_capacity;
	char *pool;
	uint32_t pool_bytes;
	uint32_t pool_capacity;
};

/* Adds a node whose name is copied, all else being 0 but same_as, which is itself. Its index, or
 * -errno: -ENOMEM, -E2BIG (LIMIT_ROOT_NODES), -ENAMETOOLONG. Pointers to nodes end their life. */
int64_t tree_add_node(struct tree *tree, const char *name, size_t length);

/* Copies a text into the pool, with a NUL behind it. Its place there, or -ENOMEM or -E2BIG. */
int64_t tree_add_text(struct tree *tree, const void *text, size_t length);

static inline const char *tree_name(const struct tree *tree, const struct tree_node *node)
{
	return tree->pool + node->name;
}

/* Writes the path of a node, seen from its ancestor @top: "a/b", and "" for @top itself.
 * @path has PATH_MAX bytes. 0 or -ENAMETOOLONG. */
int tree_path(const struct tree *tree, uint32_t index, uint32_t top, char *path);

void tree_free(struct tree *tree);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What laying out and writing share. */
#ifndef MVAGENT_ROOT_EROFS_INTERNAL_H
#define MVAGENT_ROOT_EROFS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/root/erofs_directory.h"
#include "vmm/root/tree.h"

/* The names of one directory; used for one after the other. Free the list in the end. */
struct erofs_names {
	struct erofs_name *list;
	size_t count;
	size_t capacity;
};

/* Fills @names with the directory's entries, "." and ".." too, in order. 0 or -ENOMEM. */
int erofs_gather_names(const struct tree *tree, uint32_t index, struct erofs_names *names);

/* How much lies between the node's inode and its tail. */
size_t erofs_xattr_area(const struct tree_node *node);

/* How much of a node's contents lies right behind its inode. */
size_t erofs_inline_bytes(const struct tree_node *node);

#endif

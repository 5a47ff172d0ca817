/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded set of host inodes: what must be remembered of files that the guest has forgotten. */
#ifndef MVAGENT_FS_IDENTITY_SET_H
#define MVAGENT_FS_IDENTITY_SET_H

#include "vmm/fs/inode.h"

struct identity_set {
	struct inode_identity *slots; /* open addressing; number 0: free (no file system uses it) */
	uint32_t capacity;            /* a power of two, or 0 before the first */
	uint32_t count;
};

void identity_set_destroy(struct identity_set *set);

/* Adds one; there already is no error. 0, -ENOSPC (LIMIT_FS_REMEMBERED) or -ENOMEM. */
int identity_set_add(struct identity_set *set, const struct inode_identity *identity);
void identity_set_remove(struct identity_set *set, const struct inode_identity *identity);
bool identity_set_has(const struct identity_set *set, const struct inode_identity *identity);

#endif

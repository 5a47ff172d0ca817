/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded set of host inodes: what must be remembered of files that the guest has forgotten. */
#ifndef MVAGENT_FS_IDENTITY_SET_H
#define MVAGENT_FS_IDENTITY_SET_H

#include "vmm/fs/inode.h"

struct identity_slot {
	uint64_t device;
	uint64_t number; /* 0: free (no file system uses it) */
	int64_t birth_ns;
	mode_t type;
	uint32_t value;
};

struct identity_set {
	struct identity_slot *slots; /* open addressing */
	uint64_t key;                /* random: the guest can choose among many inodes */
	uint32_t capacity;           /* a power of two, or 0 before the first */
	uint32_t count;
};

void identity_set_destroy(struct identity_set *set);

/* Adds one; there already is no error. 0, -ENOSPC (LIMIT_FS_REMEMBERED) or -ENOMEM. */
int identity_set_add(struct identity_set *set, const struct inode_identity *identity);
void identity_set_remove(struct identity_set *set, const struct inode_identity *identity);

/* The same with a value other than 0, as a map; 0: it is not there. */
int identity_set_put(struct identity_set *set, const struct inode_identity *identity,
		     uint32_t value);
uint32_t identity_set_value(const struct identity_set *set, const struct inode_identity *identity);
bool identity_set_has(const struct identity_set *set, const struct inode_identity *identity);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* inode_set.h for the identities of inodes: what must be remembered of files that the guest has
 * forgotten. At most LIMIT_FS_REMEMBERED. */
#ifndef MVAGENT_FS_IDENTITY_SET_H
#define MVAGENT_FS_IDENTITY_SET_H

#include "vmm/base/inode_set.h"
#include "vmm/fs/inode.h"

struct identity_set {
	struct inode_set inodes;
};

static inline struct inode_key identity_key(const struct inode_identity *identity)
{
	return (struct inode_key){
		.device = identity->device,
		.number = identity->number,
		.birth_ns = identity->birth_ns,
		.type = identity->type,
	};
}

static inline void identity_set_destroy(struct identity_set *set)
{
	inode_set_destroy(&set->inodes);
}

/* Adds one with a value other than 0, or gives it another. 0, -ENOSPC or -ENOMEM. */
static inline int identity_set_put(struct identity_set *set, const struct inode_identity *identity,
				   uint32_t value)
{
	const struct inode_key key = identity_key(identity);

	set->inodes.limit = LIMIT_FS_REMEMBERED;
	return inode_set_put(&set->inodes, &key, value);
}

static inline int identity_set_add(struct identity_set *set, const struct inode_identity *identity)
{
	return identity_set_put(set, identity, 1);
}

static inline void identity_set_remove(struct identity_set *set,
				       const struct inode_identity *identity)
{
	const struct inode_key key = identity_key(identity);

	inode_set_remove(&set->inodes, &key);
}

/* 0: it is not there. */
static inline uint32_t identity_set_value(const struct identity_set *set,
					  const struct inode_identity *identity)
{
	const struct inode_key key = identity_key(identity);

	return inode_set_value(&set->inodes, &key);
}

static inline bool identity_set_has(const struct identity_set *set,
				    const struct inode_identity *identity)
{
	return identity_set_value(set, identity) != 0;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded table of host inodes, each with a number: what must be remembered of files. */
#ifndef MVAGENT_BASE_INODE_SET_H
#define MVAGENT_BASE_INODE_SET_H

#include <stdint.h>
#include <sys/types.h>

/* Which inode it is. Whoever need not tell a new one from an old one of that number leaves birth
 * and type 0. */
struct inode_key {
	uint64_t device;
	uint64_t number;
	int64_t birth_ns;
	mode_t type;
};

struct inode_slot {
	struct inode_key inode;
	uint32_t value; /* 0: free */
};

/* Zero at first, but for its limit. */
struct inode_set {
	struct inode_slot *slots; /* open addressing */
	uint64_t key;             /* random: a guest can choose among many inodes */
	uint32_t capacity;        /* a power of two, or 0 before the first */
	uint32_t count;
	uint32_t limit; /* of the count */
};

void inode_set_destroy(struct inode_set *set);

/* Adds an inode with a value other than 0, or gives it another one. 0, -ENOSPC or -ENOMEM. */
int inode_set_put(struct inode_set *set, const struct inode_key *inode, uint32_t value);
void inode_set_remove(struct inode_set *set, const struct inode_key *inode);

/* 0: it is not there. */
uint32_t inode_set_value(const struct inode_set *set, const struct inode_key *inode);

#endif

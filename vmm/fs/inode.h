/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inodes that the guest knows. A node id is an index and a generation, never a pointer or a
 * descriptor; one that is not in the table is answered ESTALE. An inode is held by an O_PATH
 * descriptor while there is room for one; of those that were not used for longest the descriptor is
 * closed, and path_inode_fd (path.h) finds them again by parent and name.
 */
#ifndef MVAGENT_FS_INODE_H
#define MVAGENT_FS_INODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "vmm/base/limits.h"
#include "vmm/fs/policy.h"

#define INODE_SLAB_SIZE  1024U
#define INODE_SLAB_COUNT ((LIMIT_FS_INODES + INODE_SLAB_SIZE - 1) / INODE_SLAB_SIZE)

/*
 * What makes two inodes of the host the same one. The birth time (0 where the file system has none)
 * and the type tell a reused inode number from the old one.
 *
 * A file with links that were not made in this run is one inode to the guest under each of its
 * names, told apart by @alias: the first write gives that name a copy of its own (link_break.c).
 */
struct inode_identity {
	uint64_t device;
	uint64_t number;
	int64_t birth_ns;
	mode_t type; /* S_IFMT bits */
	uint64_t alias;
};

/* What the share's rules say of the inode, by the name it was looked up with last: guard.c. */
struct inode_policy {
	const struct policy_state *state; /* of a directory; the policy's */
	bool protected;
	bool checked;  /* each change of its contents is: guard_repository.c */
	uint16_t rule; /* that protects */
};

/* What the guest's page cache held when the file was opened last; see data.c. */
struct inode_version {
	int64_t change_ns;
	uint64_t size;
	bool settled; /* the change was old enough that a later one cannot bear the same time */
};

/* What the guest believes of the file's state: coherence.h. */
struct inode_told {
	int64_t change_ns;
	uint64_t size;
	bool known;
	bool by_guest; /* it has changed the file since, and knows */
};

/* Which layers of a share under review have the inode: layer.h. Other shares have one layer. */
enum inode_layers {
	INODE_LOWER,
	INODE_UPPER,
	INODE_MERGED, /* a directory that is in both */
};

/* An inode of the host by its number alone; number 0: none. */
struct inode_number {
	uint64_t device;
	uint64_t number;
};

struct watch_place;

struct inode {
	uint64_t id;      /* generation << 32 | index; 0 while the slot is free */
	uint64_t lookups; /* references the guest holds; FORGET gives them back */
	struct inode_identity identity;
	struct inode_version version;
	struct inode_told told;
	struct watch_place *watch; /* of a directory that is watched, or NULL */
	struct inode_policy policy;
	uint64_t parent; /* node id of the directory it was seen in last */
	char *name;      /* its name there; NULL: none is known, so the descriptor must stay open */
	int fd;          /* O_PATH, or -1 when it was closed to make room */
	int lower_fd;    /* INODE_MERGED: that of the lower layer, fd being the upper's; else -1 */
	enum inode_layers layers;
	struct inode_number lower;  /* INODE_MERGED: the lower directory */
	struct inode_number origin; /* what it was copied from; the guest sees this number */
	uint32_t generation;
	uint32_t hash_next; /* index of the next in the bucket, or in the list of free slots */
	uint32_t within_ms; /* when its directory was last seen to be in the share: path.c */
	uint32_t newer;     /* the list of descriptors that may be closed, by last use */
	uint32_t older;
	bool listed;
	uint8_t journaled; /* the journal knows what it was: 1 its attributes, 2 contents, too */
};

struct inode_table {
	/* Called for an inode that is about to go; may be NULL. */
	void (*removing)(void *context, struct inode *inode);
	/* Called before a directory of the upper layer gets a lower one, loses it or gets another.
	 */
	void (*lower_changes)(void *context, struct inode *inode);
	void *context;
	struct inode *slabs[INODE_SLAB_COUNT];
	uint32_t *buckets;
	uint32_t slot_count; /* slots ever used; slot 0 never is, slot 1 is the root */
	uint32_t free_slot;  /* head of the list of free slots, 0: none */
	uint32_t inode_count;
	uint32_t newest;
	uint32_t oldest;
	unsigned int fd_used;  /* descriptors open for the guest, those of handles included */
	unsigned int fd_limit; /* past it, old ones are closed or the guest gets ENFILE */
};

/* The identity in a statx result that has STATX_BASIC_STATS | STATX_BTIME. */
struct statx;
struct inode_identity inode_identity_of(const struct statx *status);
struct inode_number inode_number_of(const struct statx *status);
/* Whether they are the same file of the host, and also the same inode to the guest. */
bool inode_same_file(const struct inode_identity *a, const struct inode_identity *b);
bool inode_same_identity(const struct inode_identity *a, const struct inode_identity *b);

/* Makes a table whose only inode is the root (node id 1), on @root_fd, which is taken over, also on
 * failure. Returns 0 or -ENOMEM. */
int inode_table_create(struct inode_table *table, int root_fd,
		       const struct inode_identity *identity, unsigned int fd_limit);
void inode_table_destroy(struct inode_table *table);

/* Forgets every inode but the root. */
void inode_table_reset(struct inode_table *table);

/* The inode of a node id, or NULL. Pointers stay good until the inode is forgotten. */
struct inode *inode_find(struct inode_table *table, uint64_t node_id);
struct inode *inode_find_identity(struct inode_table *table, const struct inode_identity *identity);

/* Adds an inode with no lookups and no place, on @fd (reserved with inode_reserve_fd), which is
 * taken over on success only. Returns 0, -ENFILE (table full) or -ENOMEM. */
int inode_add(struct inode_table *table, const struct inode_identity *identity, int fd,
	      struct inode **inode);

/* The inode is another file of the host from now on. */
void inode_change_identity(struct inode_table *table, struct inode *inode,
			   const struct inode_identity *identity);

/* Gives back @count lookups, more than there are counting as all, and drops the inode when none is
 * left. The root stays. */
void inode_forget(struct inode_table *table, struct inode *inode, uint64_t count);

/* Notes where the inode is found from now on. Without memory for the name, as after
 * inode_clear_place, the descriptor just stays open. */
void inode_set_place(struct inode_table *table, struct inode *inode, uint64_t parent,
		     const char *name);
void inode_clear_place(struct inode_table *table, struct inode *inode);

/* Counts one more descriptor, closing those of the inode that was not used for longest if need be,
 * but never those of the two inodes used last. Returns 0 or -ENFILE. */
int inode_reserve_fd(struct inode_table *table);
void inode_return_fd(struct inode_table *table);

/* Closes the inode's descriptors if it can be found again by its name. Whether it can. */
bool inode_close_fds(struct inode_table *table, struct inode *inode);

/* Gives the inode a descriptor (reserved) when it has none; otherwise closes @fd. */
void inode_adopt_fd(struct inode_table *table, struct inode *inode, int fd);

/* The same for the lower layer's descriptor; -1 closes it. */
void inode_adopt_lower_fd(struct inode_table *table, struct inode *inode, int fd);

/* Marks the inode's descriptor as just used. */
void inode_touch(struct inode_table *table, struct inode *inode);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the guest may believe what it was told, and how it hears that something has changed.
 *
 * shared: each directory is watched before its first entry is told. What is told of a watched one
 * holds for minutes, because a change by the host is sent after it (vmm/wire/notify.h); anything
 * else holds for a second. Until the guest says that it takes such notes, nothing is watched.
 * exclusive: the host keeps its hands off; all holds for the whole run.
 * none: nothing holds; file data is not cached either.
 */
#ifndef MVAGENT_FS_COHERENCE_H
#define MVAGENT_FS_COHERENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct fs_server;
struct inode;
struct watch;

enum fs_cache { FS_CACHE_SHARED, FS_CACHE_EXCLUSIVE, FS_CACHE_NONE };

/* Its name on the command line: "shared", "exclusive", "none"; or -EINVAL. */
int fs_cache_parse(const char *text);
const char *fs_cache_name(enum fs_cache cache);

struct coherence {
	enum fs_cache cache;
	struct watch *watch; /* NULL: nothing can be watched */
	bool ready;          /* the guest takes notes */
	bool lost;           /* notes were dropped: all must be forgotten */
	bool full;           /* no more directories can be watched; that was said */
	int notify_fd;       /* to the guest's init, non-blocking, or -1 */
	uint32_t ready_length;
	uint32_t start, end; /* of what waits in bytes */
	uint64_t notes;
	uint8_t *bytes; /* LIMIT_FS_NOTIFY_BYTES */
};

/* Seconds for entries and attributes. */
struct validity {
	uint64_t entry;
	uint64_t attributes;
};

/* @notify_fd (-1: none) is taken over. 0 or -errno; not being able to watch is no error. */
int coherence_create(struct coherence *coherence, enum fs_cache cache, int notify_fd, int root_fd);
void coherence_destroy(struct coherence *coherence);

/* Before an entry of @directory is told. */
void coherence_watch(struct fs_server *server, struct inode *directory);

/* The inode is about to be forgotten. */
void coherence_forget(struct fs_server *server, struct inode *inode);

/* The guest must forget all that it was told. */
void coherence_lose(struct fs_server *server);

/* For what is found, or not found (NULL), in @directory (NULL: unknown). */
struct validity coherence_validity(struct fs_server *server, const struct inode *directory,
				   const struct inode *inode, const struct statx *status);

/* Whether changes of the host to this file are told to the guest. */
bool coherence_covers(struct fs_server *server, const struct inode *inode,
		      const struct statx *status);

/* Whether the guest may keep the listing of @directory. */
bool coherence_caches_listing(const struct fs_server *server, const struct inode *directory);

/* What the guest now believes of @inode; or: it has changed it itself and knows. */
void coherence_told(struct fs_server *server, struct inode *inode, const struct statx *status);
void coherence_changed_by_guest(struct fs_server *server, uint64_t node_id);

/*
 * Whether the host has changed the file since the guest was told of it. A guest that opens it
 * before the note has arrived must ask for the attributes again, so that size and contents belong
 * together.
 */
bool coherence_is_stale(const struct fs_server *server, const struct inode *inode,
			const struct statx *status);

/* Hears the guest, and sends what notes are left. */
void coherence_serve_notify(struct fs_server *server);

/* Reads some of what the host changed, and sends notes of it. Returns whether there may be more: to
 * be called again once the guest's requests have had their turn. */
bool coherence_serve_watch(struct fs_server *server);

#endif

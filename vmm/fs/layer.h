/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A share under review has two layers: the lower one is the host's directory, which is only ever
 * read; the upper one takes what the guest changes (vmm/review/layout.h says how). A name is the
 * upper layer's if that has it, or has a whiteout for it, and else the lower one's as it is now. A
 * directory that is in both is merged. Whatever is to be changed is copied up first.
 *
 * The kernel's overlayfs is not used: it leaves undefined what happens when the lower layer
 * changes, which here is a tree that its user works in.
 */
#ifndef MVAGENT_FS_LAYER_H
#define MVAGENT_FS_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "vmm/fs/path.h"
#include "vmm/fs/replace.h"

struct fs_place;
struct fs_server;
struct linux_dirent64;
struct layer;

/* @base_fd: takes the lines of a base, opened to append (-1: they are dropped); duplicated. 0 or
 * -errno. */
int layer_create(struct layer **layer, int base_fd);
void layer_destroy(struct layer *layer);

/* The descriptor of a directory's lower layer, or -1. It must be open. */
int layer_lower_fd(const struct inode *directory);

/* What a name in a directory stands for. */
struct layer_view {
	bool visible;
	bool upper;          /* the upper layer has an object */
	bool whiteout;       /* the upper layer has a whiteout */
	bool lower;          /* the lower layer has something, be it visible or not */
	struct statx status; /* of what is visible */
};

/* Looks at both layers of an open directory. 0 or -errno. */
int layer_view(const struct inode *directory, const char *name, struct layer_view *view);

/* In any share: the status of @name of @directory, which is open as @directory_fd. 0 or -errno. */
int layer_look(const struct fs_server *server, const struct inode *directory, int directory_fd,
	       const char *name, struct statx *status);

/* Whether this is the status of a whiteout. */
bool layer_is_whiteout(const struct statx *status);

/* Learns from an object of the upper layer what it was copied from. */
void layer_read_origin(struct inode *inode, int fd);

/* Makes the status what the guest is shown: the number that the inode had before it was copied. */
void layer_show(const struct inode *inode, struct statx *status);

/* The number of @inode as the guest is shown it. */
uint64_t layer_number(const struct fs_server *server, const struct inode *inode);

/* The number that the guest is shown for @name, an object of the upper layer of @directory_fd. */
uint64_t layer_shown_number(const struct fs_server *server, int directory_fd, const char *name);

/*
 * Entries of both layers of a merged directory as struct linux_dirent64; the position of one is
 * where it begins. Names that the upper layer has a whiteout for are there as DT_WHT.
 */
struct layer_listing {
	size_t size;
	uint8_t bytes[];
};

/* Lists a directory whose descriptors are open. At most @room bytes. 0, -ENOMEM or -errno; free()
 * it. */
int layer_list(struct fs_server *server, const struct inode *directory, size_t room,
	       struct layer_listing **listing);

/* The position of the first entry at or after @position, which may be anything. */
size_t layer_listing_seek(const struct layer_listing *listing, uint64_t position);

/* The entry at a position that was told by layer_listing_seek or an entry's d_off, or the first
 * visible one after it; NULL at the end. */
const struct linux_dirent64 *layer_listing_at(const struct layer_listing *listing, size_t at);

/* Before @inode changes: sees to it that it, and all directories above it, are in the upper layer.
 * 0 or -errno. */
int layer_copy_up(struct fs_server *server, struct inode *inode);

/* Whether this user may change the names in @directory, which is open. 0 or -errno. */
int layer_may_write(const struct inode *directory);

/* A name in the making. */
struct layer_new {
	bool over_whiteout;
	char temporary[REPLACE_NAME_BYTES];
};

/* Before something is made at @place: checks that it may, copies the directory up, and gives the
 * name to make it by. 0 or -errno. */
int layer_begin_new(struct fs_server *server, struct fs_place *place, struct layer_new *new,
		    const char **name);

/* After that: gives it its own name. 0, or -errno and nothing was made. */
int layer_finish_new(struct fs_server *server, const struct fs_place *place,
		     const struct layer_new *new);

/* unlinkat(2) */
int layer_remove(struct fs_server *server, struct fs_place *place, int flags);

/* renameat2(2) with NOREPLACE or EXCHANGE. */
int layer_move(struct fs_server *server, struct fs_place *from, struct fs_place *to,
	       unsigned int flags);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and objects beneath a directory. The guest wrote one of the trees, and anybody may be
 * changing the other: nothing here follows a link, leaves the tree or enters another mount
 * (openat2 with BENEATH, NO_SYMLINKS, NO_MAGICLINKS and NO_XDEV), and only regular files and
 * directories are ever opened other than by O_PATH.
 *
 * Paths are relative to the tree's root, without a slash at either end; the root itself is "".
 * They may be longer than the kernel takes at once.
 */
#ifndef MVAGENT_REVIEW_TREE_H
#define MVAGENT_REVIEW_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "vmm/base/limits.h"

/* An object as it was looked at. */
struct review_object {
	mode_t mode; /* type, set-id and permission bits; 0: there is nothing */
	dev_t rdev;  /* of a device */
	dev_t device;
	uint64_t inode;
	uint64_t links;
	uint64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns;
	uid_t owner;
	gid_t group;
};

struct tree_names {
	size_t count;
	char **names; /* sorted by their bytes */
};

/* Opens the directory @path of the tree @root_fd. @flags: O_PATH or O_RDONLY. fd or -errno. */
int tree_open_directory(int root_fd, const char *path, int flags);

/* Opens the directory that holds @path with O_PATH; *@name is @path's last name. fd or -errno. */
int tree_open_parent(int root_fd, const char *path, const char **name);

/* Opens what is called @name in a directory with O_PATH, whatever it is. fd or -errno (EXDEV: a
 * mount point). */
int tree_open_entry(int directory_fd, const char *name);

/* Opens what an O_PATH descriptor refers to, a regular file or a directory, for reading. fd or
 * -errno; -EINVAL when it is something else. */
int tree_reopen(int fd);

/* What a descriptor refers to. 0 or -errno. */
int tree_status(int fd, struct review_object *object);

/* What is called @name in a directory; mode 0 when there is nothing. 0 or -errno. */
int tree_look(int directory_fd, const char *name, struct review_object *object);

/* The same by path; nothing is there if a directory on the way is missing or is none. */
int tree_look_path(int root_fd, const char *path, struct review_object *object);

/* Opens the regular file at @path for reading. fd or -errno. */
int tree_open_file(int root_fd, const char *path);

/* Reads the symbolic link at @path. Its length or -errno. */
ssize_t tree_read_link(int root_fd, const char *path, char target[LIMIT_FS_SYMLINK_BYTES + 1]);

/* The names in a directory opened for reading, without "." and "..". 0, -errno, or -E2BIG past
 * LIMIT_REVIEW_CHANGES. Destroy in every case. */
int tree_list(int directory_fd, struct tree_names *names);
void tree_names_destroy(struct tree_names *names);
bool tree_names_have(const struct tree_names *names, const char *name);

/* A directory that is still to be walked, in a list of them. */
struct tree_pending {
	struct tree_pending *next;
	int tag; /* the caller's */
	char path[];
};

/* Puts a copy of @path in front. 0 or -ENOMEM. */
int tree_pending_push(struct tree_pending **list, const char *path, int tag);

/* Takes the first one, for the caller to free. */
struct tree_pending *tree_pending_pop(struct tree_pending **list);

/* Changes the permission bits of what a descriptor refers to, O_PATH or not. 0 or -errno. */
int tree_change_mode(int fd, mode_t mode);

/* Whether two looks saw the same object, unchanged. */
bool review_object_same(const struct review_object *one, const struct review_object *other);

/* Orders paths so that a directory comes right before everything below it. */
int tree_compare_paths(const char *one, const char *other);

/* Whether @path is @directory or below it. All are below "". */
bool tree_path_is_within(const char *path, const char *directory);

#endif

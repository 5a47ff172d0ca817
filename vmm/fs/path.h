/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From names to descriptors: the one place where a name of the guest reaches the host's name space.
 * A name is one component, and it is resolved by openat2 beneath an O_PATH descriptor without
 * following anything: no symlink, no magic link, no mount point.
 *
 * What is mounted below the share is not part of it: such a name is answered EACCES, since it is
 * there (a listing shows it, it cannot be created anew) and cannot be entered.
 */
#ifndef MVAGENT_FS_PATH_H
#define MVAGENT_FS_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "vmm/fs/inode.h"

/* What inodes are asked for everywhere. */
#define PATH_STATX_MASK (STATX_BASIC_STATS | STATX_BTIME)

/* Whether @name may be used at all. Returns 0, -EINVAL (empty, "." or "..", has a '/') or
 * -ENAMETOOLONG. */
int path_check_name(const char *name);

/* Opens the entry @name of @directory_fd with O_PATH. fd or -errno (EACCES for a mount point). */
int path_open_name(int directory_fd, const char *name);

/* Makes a file of @directory_fd that was not there (EEXIST otherwise, symlinks included) and opens
 * it. @flags: access mode and no more. fd or -errno. */
int path_create_name(int directory_fd, const char *name, int flags, mode_t mode);

/* Makes a file without a name (O_TMPFILE) in @directory_fd. fd or -errno. */
int path_create_unnamed(int directory_fd, int flags, mode_t mode);

/* statx of the descriptor itself. 0 or -errno. */
int path_status(int fd, struct statx *status);

/* An entry of a directory, opened with O_PATH. */
struct path_entry {
	int fd;       /* the upper layer's, if that has it */
	int lower_fd; /* of a directory that both layers have; else -1 */
	enum inode_layers layers;
	struct inode_number lower; /* what lower_fd is */
	struct statx status;       /* of fd */
};

/* Opens the entry @name of @directory, whose descriptors must be open; they stay the table's. Of a
 * share under review it is what the two layers make of the name: see layer.h. 0 or -errno. */
int path_open_entry(const struct inode *directory, const char *name, struct path_entry *entry);
void path_close_entry(struct path_entry *entry);

/* Gives the inode the descriptors of @entry, of which fd is reserved; they are taken over, also on
 * failure. 0 or -ENFILE. */
int path_adopt_entry(struct inode_table *table, struct inode *inode, struct path_entry *entry);

/* statx of the entry @name, which is not opened. 0 or -errno. */
int path_look(int directory_fd, const char *name, struct statx *status);

/* Opens what an O_PATH descriptor refers to, once more and not by name. The caller has made sure
 * that it is a regular file or a directory: nothing else is ever opened. @proc_fd: /proc/self/fd.
 * fd or -errno. */
int path_reopen(int proc_fd, int fd, int flags);

/* Whether the directory @name of @directory_fd has no entries. False when that cannot be known. */
bool path_is_empty(int proc_fd, int directory_fd, const char *name);

/* Whether both names are regular files of at most LIMIT_FS_COMPARE_BYTES, equal in mode and
 * contents.
 */
bool path_same_file_contents(int proc_fd, int directory_fd, const char *name,
			     int other_directory_fd, const char *other_name);

/* The text of a number, for *at calls below /proc/self/fd. */
struct path_number {
	char text[12];
};
struct path_number path_number(int fd);

/* Whether a directory of the upper layer hides what the lower layer has there. @fd: O_PATH will do.
 */
bool path_is_opaque(int fd);

/* The O_PATH descriptor of an inode: the one it has, or a new one found by its parent and name.
 * It stays the table's, and is good until some 16 others have been asked for.
 * Returns fd, -ESTALE (the inode is not there any more), -ENFILE or -errno. */
int path_inode_fd(struct inode_table *table, struct inode *inode);

#endif

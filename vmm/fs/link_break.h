/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hard links that lead out of the share. A write through one would change a file that is not the
 * guest's (a package store, another work tree), so a file with links that were not made in this run
 * is given its own copy first, under the name that the guest knows it by.
 */
#ifndef MVAGENT_FS_LINK_BREAK_H
#define MVAGENT_FS_LINK_BREAK_H

#include "vmm/fs/identity_set.h"

struct fs_server;

/* The identity of what was found as @name of @directory: see struct inode_identity about links. */
struct inode_identity link_identity(struct fs_server *server, const struct inode *directory,
				    const char *name, const struct statx *status);

/* Before the inode's contents or attributes change: makes it a file of the guest's own if it has
 * links that are not. Its descriptor may be another one after that. 0 or -errno. */
int link_break(struct fs_server *server, struct inode *inode);

/* After LINK and UNLINK: how many names in the share files have. (Of too many to remember, some are
 * taken for files with others elsewhere.) @status: of the file before the name was removed. */
void link_note_made(struct fs_server *server, const struct inode *inode);
void link_note_removed(struct fs_server *server, const struct statx *status);

#endif

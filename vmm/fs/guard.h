/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The share's policy at each operation: asked before a name is made, removed or moved, and before a
 * file is changed. A refusal is told to the user once for each rule; the guest gets the errno.
 */
#ifndef MVAGENT_FS_GUARD_H
#define MVAGENT_FS_GUARD_H

#include "vmm/fs/identity_set.h"
#include "vmm/fs/policy.h"
#include "vmm/fs/scan.h"

struct fs_server;
struct handle;
struct iovec;

struct guard {
	struct policy *policy;
	/* Old places do not bind what was made in this run: see policy.h. */
	struct identity_set made;
	struct scan_result scanned;                        /* what names do not tell */
	uint64_t told[POLICY_RULE_NUMBERS / 64];           /* rules whose refusal was told */
	uint32_t refused[POLICY_RULE_NUMBERS];             /* how often each rule was the reason */
	uint64_t refused_hidden[POLICY_RULE_NUMBERS / 64]; /* because it hides */
	uint64_t refusals;
	unsigned int told_made;    /* repositories that the guest made */
	unsigned int told_refused; /* refusals of what git on the host would obey */
	bool hide_only; /* what is changed is a copy, and `mvagent apply` protects the original */
};

/* Takes @policy over. */
void guard_create(struct guard *guard, struct policy *policy);
void guard_destroy(struct guard *guard);

/* Gives the root its place, also when the share has been looked through as guard.scanned says. 0 or
 * -ENOMEM. */
int guard_enter_root(struct fs_server *server);

/* Whether @directory may take names for others, as one does that ignores case. */
bool guard_may_fold(struct fs_server *server, const struct inode *directory);

/* Whether @name of @directory does not exist for the guest, as far as its name says. */
bool guard_hides(struct fs_server *server, const struct inode *directory, const char *name);

/* Whether the inode of that number is a hidden file, whatever this name of it is. */
bool guard_hides_number(const struct fs_server *server, uint64_t device, uint64_t number);

/* Gives @inode, found as @name of @directory, the place that the rules give it there. 0, or
 * -ENOENT: it is a hidden file by another name. */
int guard_enter(struct fs_server *server, const struct inode *directory, const char *name,
		const struct statx *status, struct inode *inode);

/* Before an entry of @type (S_IFMT bits) is made, or comes to be there. 0 or -EACCES. */
int guard_make(struct fs_server *server, const struct inode *directory, int directory_fd,
	       const char *name, mode_t type);

/* After it was made, before it is looked up. */
void guard_note_made(struct fs_server *server, const struct inode *directory, int directory_fd,
		     const char *name);

/* Before an entry is removed, or replaced by a rename if it is there. 0, -ENOENT or -EACCES. */
int guard_remove(struct fs_server *server, const struct inode *directory, int directory_fd,
		 const char *name);

/* Whether the rules protect what is @name of @directory, or would, whatever it is. */
bool guard_protects(struct fs_server *server, const struct inode *directory, const char *name);

/* Before what is @name of @directory moves to @new_name of @new_directory. Where something may be
 * there already, guard_remove is asked as well; for an exchange, this both ways. */
int guard_move(struct fs_server *server, const struct inode *directory, int directory_fd,
	       const char *name, const struct inode *new_directory, int new_directory_fd,
	       const char *new_name);

/* Before the contents or the attributes of @inode change: 0 or -EACCES. */
int guard_change(struct fs_server *server, const struct inode *inode);

/* --- guard_repository.c: what git on the host would obey in repositories that the guest makes ---
 */

/* Before a symbolic link to @target is made. 0 or -EACCES. */
int guard_symlink(struct fs_server *server, const struct inode *directory, const char *name,
		  const char *target);

/* Before @inode gets another name. 0 or -EACCES. */
int guard_link(struct fs_server *server, const struct inode *inode, const struct inode *directory,
	       const char *name);

/* Before @vector is written to what @handle is open on at @offset (-1: the end): 0 to go on; how
 * many bytes were written in its stead, once they had been looked at; -EACCES; or -EBADF: the guest
 * has forgotten the inode and goes on writing. Such a file only grows: whoever reads it meanwhile
 * sees the beginning of what was looked at, and no mixture. */
int guard_write(struct fs_server *server, const struct handle *handle, off_t offset,
		const struct iovec *vector, int count);

/* Before it changes in some other way: -EXDEV if each write to it is looked at, else 0. */
int guard_rewrite(struct fs_server *server, const struct handle *handle);

/* Before @inode is cut off, or grows, to @size. 0 or -EACCES. */
int guard_truncate(struct fs_server *server, struct inode *inode, uint64_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Between guard.c and guard_repository.c. */
#ifndef MVAGENT_FS_GUARD_INTERNAL_H
#define MVAGENT_FS_GUARD_INTERNAL_H

#include "vmm/fs/guard.h"

struct guard_path {
	char text[512];
};

/* The path of @name from the share's root, for a message; its end if it is long. */
const char *guard_path(struct fs_server *server, const struct inode *directory, const char *name,
		       struct guard_path *path);

/* Before an entry of @type is made; @state: of what is below it. 0 or -EACCES. */
int guard_repository_make(struct fs_server *server, const struct inode *directory, int directory_fd,
			  const char *name, mode_t type, const struct policy_state *state);

/* Before what is @name, whose status is @status, is moved. 0, -EACCES or -EXDEV. */
int guard_repository_move(struct fs_server *server, const struct inode *directory, int directory_fd,
			  const char *name, const struct statx *status,
			  const struct inode *new_directory, const char *new_name);

/* Whether a file of that name is a hook, which the guest has not made and does not change. */
bool guard_repository_protects(struct fs_server *server, const struct inode *directory,
			       const char *name, const struct policy_state *state);

/* Whether contents of a file of that name are looked at. */
bool guard_repository_checks(struct fs_server *server, const struct inode *directory,
			     const char *name, const struct policy_state *state);

/* Says of the first few repositories that the guest makes that they are the guest's. */
void guard_repository_tell(struct fs_server *server, const struct inode *directory,
			   const char *name);

#endif

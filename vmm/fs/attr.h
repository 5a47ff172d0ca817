/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes as the guest sees them: the host's, but for owners and, on what is mounted of several
 * devices, inode numbers.
 */
#ifndef MVAGENT_FS_ATTR_H
#define MVAGENT_FS_ATTR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "vmm/fs/wire.h"

/* The kernel's overflow id: what files of other owners belong to. */
#define ATTR_OVERFLOW_ID 65534U

/* The user of this process appears in the guest as one user and one group. */
struct attr_owner {
	uid_t host_uid;
	gid_t host_gid;
	gid_t *groups; /* supplementary ones; owned */
	unsigned int group_count;
	uint32_t guest_uid;
	uint32_t guest_gid;
};

/* Takes the ids of this process. Returns 0 or -errno. */
int attr_owner_create(struct attr_owner *owner, uint32_t guest_uid, uint32_t guest_gid);
void attr_owner_destroy(struct attr_owner *owner);

/* Whether a file of that owner is the invoking user's own. */
bool attr_owned(const struct attr_owner *owner, const struct statx *status);

/* The file's number as the guest sees it. */
uint64_t attr_inode_number(uint64_t root_device, const struct statx *status);

/* Converts. @root_device: device number (major << 32 | minor) of the share's root; a file on
 * another one (a btrfs subvolume, a layer of an overlay) gets a number that cannot clash. */
void attr_fill(const struct attr_owner *owner, uint64_t root_device, const struct statx *status,
	       struct fuse_attr *attr);
void attr_fill_statx(const struct attr_owner *owner, uint64_t root_device,
		     const struct statx *status, struct fuse_statx *attr);

#endif

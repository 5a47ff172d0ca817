/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/attr.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int attr_owner_create(struct attr_owner *owner, uint32_t guest_uid, uint32_t guest_gid)
{
	int count = getgroups(0, NULL);

	*owner = (struct attr_owner){
		.host_uid = geteuid(),
		.host_gid = getegid(),
		.guest_uid = guest_uid,
		.guest_gid = guest_gid,
	};
	if (count < 0)
		return -errno;
	if (count == 0)
		return 0;
	owner->groups = calloc((size_t)count, sizeof(*owner->groups));
	if (!owner->groups)
		return -ENOMEM;
	count = getgroups(count, owner->groups);
	if (count < 0) {
		int error = -errno;

		attr_owner_destroy(owner);
		return error;
	}
	owner->group_count = (unsigned int)count;
	return 0;
}

void attr_owner_destroy(struct attr_owner *owner)
{
	free(owner->groups);
	owner->groups = NULL;
}

bool attr_owned(const struct attr_owner *owner, const struct statx *status)
{
	return status->stx_uid == owner->host_uid;
}

static uint32_t attr_guest_uid(const struct attr_owner *owner, const struct statx *status)
{
	return attr_owned(owner, status) ? owner->guest_uid : ATTR_OVERFLOW_ID;
}

static uint32_t attr_guest_gid(const struct attr_owner *owner, const struct statx *status)
{
	if (status->stx_gid == owner->host_gid)
		return owner->guest_gid;
	for (unsigned int i = 0; i < owner->group_count; i++)
		if (status->stx_gid == owner->groups[i])
			return owner->guest_gid;
	return ATTR_OVERFLOW_ID;
}

uint64_t attr_inode_number(uint64_t root_device, const struct statx *status)
{
	uint64_t device = (uint64_t)status->stx_dev_major << 32 | status->stx_dev_minor;

	if (device == root_device)
		return status->stx_ino;
	/* The guest sees one device only. Inode numbers seldom reach 2^48. */
	return status->stx_ino ^ ((device ^ root_device) * 0x9e3779b97f4a7c15ULL) << 48;
}

void attr_fill(const struct attr_owner *owner, uint64_t root_device, const struct statx *status,
	       struct fuse_attr *attr)
{
	*attr = (struct fuse_attr){
		.ino = attr_inode_number(root_device, status),
		.size = status->stx_size,
		.blocks = status->stx_blocks,
		.atime = (uint64_t)status->stx_atime.tv_sec,
		.mtime = (uint64_t)status->stx_mtime.tv_sec,
		.ctime = (uint64_t)status->stx_ctime.tv_sec,
		.atimensec = status->stx_atime.tv_nsec,
		.mtimensec = status->stx_mtime.tv_nsec,
		.ctimensec = status->stx_ctime.tv_nsec,
		.mode = status->stx_mode,
		.nlink = status->stx_nlink,
		.uid = attr_guest_uid(owner, status),
		.gid = attr_guest_gid(owner, status),
		.rdev = (uint32_t)makedev(status->stx_rdev_major, status->stx_rdev_minor),
		.blksize = status->stx_blksize,
	};
}

static struct fuse_sx_time attr_time(const struct statx_timestamp *time)
{
	return (struct fuse_sx_time){.tv_sec = time->tv_sec, .tv_nsec = time->tv_nsec};
}

void attr_fill_statx(const struct attr_owner *owner, uint64_t root_device,
		     const struct statx *status, struct fuse_statx *attr)
{
	*attr = (struct fuse_statx){
		.mask = status->stx_mask & (STATX_BASIC_STATS | STATX_BTIME),
		.blksize = status->stx_blksize,
		.nlink = status->stx_nlink,
		.uid = attr_guest_uid(owner, status),
		.gid = attr_guest_gid(owner, status),
		.mode = status->stx_mode,
		.ino = attr_inode_number(root_device, status),
		.size = status->stx_size,
		.blocks = status->stx_blocks,
		.atime = attr_time(&status->stx_atime),
		.btime = attr_time(&status->stx_btime),
		.ctime = attr_time(&status->stx_ctime),
		.mtime = attr_time(&status->stx_mtime),
		.rdev_major = status->stx_rdev_major,
		.rdev_minor = status->stx_rdev_minor,
	};
}

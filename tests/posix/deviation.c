/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/posix/deviation.h"

static const struct deviation_text texts[DEVIATION_COUNT] = {
	[DEVIATION_SET_ID] =
		{
			.name = "set-id-bits",
			.standard = "chmod and creation keep the set-user-id and set-group-id bits",
			.share = "they are dropped without an error; the sticky bit stays",
			.reason = "a set-id program made in the guest would be one on the host",
		},
	[DEVIATION_CHOWN] =
		{
			.name = "chown",
			.standard = "root gives a file to another user or group",
			.share = "EPERM, but for the owner and group that it has",
			.reason = "every file of a share is the invoking user's on the host",
		},
	[DEVIATION_OWNER] =
		{
			.name = "owner",
			.standard = "a new file belongs to the user who made it",
			.share = "it belongs to the user whom the command runs as",
			.reason = "every file of a share is the invoking user's on the host",
		},
	[DEVIATION_RIGHTS] =
		{
			.name = "rights",
			.standard = "root opens any file; others what the mode lets them",
			.share = "nobody opens what the mode keeps from its owner, unless root "
				 "runs mvagent",
			.reason = "the invoking user's rights on the host are all that a share has",
		},
	[DEVIATION_DEVICE] =
		{
			.name = "devices",
			.standard = "root makes character and block devices",
			.share = "EPERM",
			.reason = "a device node would be one on the host",
		},
	[DEVIATION_XATTR] =
		{
			.name = "attribute-namespaces",
			.standard = "security, trusted and system attributes can be read and set",
			.share = "EOPNOTSUPP for all but user.*",
			.reason = "the host acts on them: capabilities, labels, access lists",
		},
	[DEVIATION_ATIME] =
		{
			.name = "access-time",
			.standard = "a read marks the access time (relatime)",
			.share = "a read that the guest's page cache answers does not",
			.reason = "the host does not hear of such reads",
		},
	[DEVIATION_COLLAPSE] =
		{
			.name = "collapse-insert",
			.standard = "fallocate collapses and inserts ranges (ext4)",
			.share = "EOPNOTSUPP",
			.reason = "Linux's FUSE client passes on punch, zero and keep-size only",
		},
	[DEVIATION_FLAGS] =
		{
			.name = "inode-flags",
			.standard = "FS_IOC_GETFLAGS reads the flags that chattr(1) sets",
			.share = "ENOTTY",
			.reason = "no ioctl passes the wall",
		},
	[DEVIATION_WHITEOUT] =
		{
			.name = "whiteouts",
			.standard = "rename leaves a whiteout behind with RENAME_WHITEOUT",
			.share = "EINVAL",
			.reason = "a whiteout is a device node",
		},
};

const struct deviation_text *deviation_text(enum deviation deviation)
{
	return &texts[deviation];
}

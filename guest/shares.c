/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/shares.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "vmm/base/fd.h"

/* Whether one of the first @count shares holds @path. */
static bool lies_in_share(const struct session_share *shares, unsigned int count, const char *path)
{
	for (unsigned int index = 0; index < count; index++) {
		if (directories_contain(shares[index].path, path))
			return true;
	}
	return false;
}

static int mount_share(const struct session_share *share, bool make,
		       const struct directory_owner *owner)
{
	unsigned long flags = MS_NOSUID | MS_NODEV;
	int error;

	/* A mount over the root would not be seen by what has the root already. */
	if (share->path[strspn(share->path, "/")] == 0)
		return -EINVAL;
	if (share->read_only)
		flags |= MS_RDONLY;
	error = make ? directories_make(share->path, owner) : 0;
	if (!error && make && owner->uid)
		error = directories_let_through(share->path);
	if (error)
		return error;
	return mount(share->tag, share->path, "virtiofs", flags, NULL) < 0 ? -errno : 0;
}

int shares_mount(const struct session_start *start, const struct directory_owner *owner,
		 struct shares *shares, struct failure *failure)
{
	shares->count = 0;
	for (unsigned int index = 0; index < start->share_count; index++) {
		const struct session_share *share = &start->shares[index];
		bool make = !lies_in_share(start->shares, index, share->path);
		int error = mount_share(share, make, owner);

		if (!error) {
			/* O_PATH costs the host no request. */
			shares->roots[index] = open(share->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
			if (shares->roots[index] < 0)
				error = -errno;
		}
		if (error)
			return failure_set(failure, SESSION_STAGE_SHARE, error,
					   "mounting the share %s at %s", share->tag, share->path);
		shares->count++;
	}
	return 0;
}

void shares_sync(const struct shares *shares)
{
	/* First whatever else is mounted: it may be an image in a share. */
	sync();
	for (unsigned int index = 0; index < shares->count; index++) {
		FD_CLEANUP int root =
			openat(shares->roots[index], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (root < 0 || syncfs(root) < 0)
			message("cannot sync share %u: errno %d", index, errno);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of the host that the guest sees. */
#ifndef GUEST_SHARES_H
#define GUEST_SHARES_H

#include "guest/directories.h"
#include "guest/message.h"

/* Handles to the shares' roots, which outlast whatever the command does to the mounts. */
struct shares {
	unsigned int count;
	int roots[LIMIT_SHARES];
};

/* Mounts the shares in order, each at a directory that is made if it is missing (but not inside a
 * share, where it would be made on the host). 0 or -errno with @failure filled in. */
int shares_mount(const struct session_start *start, const struct directory_owner *owner,
		 struct shares *shares, struct failure *failure);

/* Hands all that was written to the host. */
void shares_sync(const struct shares *shares);

#endif

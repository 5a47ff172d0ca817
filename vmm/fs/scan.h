/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks through the share for hidden files while the guest boots: to tell the user how many there
 * are, and to know those that have a second name, by which they must be hidden too.
 */
#ifndef MVAGENT_FS_SCAN_H
#define MVAGENT_FS_SCAN_H

#include "vmm/fs/identity_set.h"
#include "vmm/fs/policy.h"

struct scan;

/* Starts, on a thread of its own. @root_fd stays the caller's; @policy must not change any more.
 * 0 or -errno. */
int scan_start(struct scan **scan, int root_fd, const struct policy *policy);

/* Waits for the end, says what was found and puts hidden files with other names into @links (device
 * and number alone). Frees the scan. 0 or -errno: not everything was seen. */
int scan_finish(struct scan *scan, struct identity_set *links);

#endif

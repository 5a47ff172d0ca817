/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through the host's directories and makes the tree of what enters the guest's root. */
#ifndef MVAGENT_ROOT_HOST_TREE_H
#define MVAGENT_ROOT_HOST_TREE_H

#include <stdint.h>

#include "vmm/root/host_plan.h"
#include "vmm/root/tree.h"

/* What was met. A file with several names counts once for each. */
struct host_counts {
	uint64_t directories;
	uint64_t files;
	uint64_t symlinks;
	uint64_t bytes;      /* of files */
	uint64_t unreadable; /* left out: not everybody may read it */
	uint64_t special;    /* left out: devices, sockets, FIFOs */
	uint64_t mounts;     /* left out: another file system is mounted there */
	uint64_t hidden; /* left out: --root-hide, or a credential's name in an added directory */
	uint64_t too_large; /* left out: more bytes than an image can have */
	uint64_t vanished;  /* left out: it went away, or changed, while we looked */
};

/* Who wants to know more; either may be NULL. */
struct host_progress {
	/* Now and then: how many names were met so far. */
	void (*show)(void *context, uint32_t names);
	/* Of each name that is left out: where it would be in the guest, and why, as the offset of
	 * the count in struct host_counts. */
	void (*left_out)(void *context, const char *path, size_t count);
	void *context;
};

/* Reads the directories of the plan, and the links; no file is opened. @progress may be NULL. 0 or
 * -errno with the sentence printed; free the tree in every case. */
int host_tree_build(const struct host_plan *plan, struct tree *tree, struct host_counts *counts,
		    const struct host_progress *progress);

/* Opens what is at @path below a directory of the host: following no link, never out of it, nor
 * into another mount. @flags as open(2) has them; close-on-exec is added. Descriptor or -errno. */
int host_open(int directory_fd, const char *path, uint64_t flags);

#endif

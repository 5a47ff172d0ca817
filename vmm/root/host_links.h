/* SPDX-License-Identifier: Apache-2.0 */
/* Which files with several names were met already. */
#ifndef MVAGENT_ROOT_HOST_LINKS_H
#define MVAGENT_ROOT_HOST_LINKS_H

#include <stdint.h>
#include <sys/stat.h>

struct host_link {
	uint64_t inode;
	uint32_t major;
	uint32_t minor;
	uint32_t node; /* plus 1; 0: free */
};

/* A hash table; zero at first. */
struct host_links {
	struct host_link *slots;
	uint32_t count;
	uint32_t size; /* 0, or a power of two */
};

/* The node of the first name of the file; @node, and remembers it, if this is the first. -ENOMEM.
 */
int64_t host_links_find(struct host_links *links, const struct statx *status, uint32_t node);

void host_links_free(struct host_links *links);

#endif

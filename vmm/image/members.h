/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files of a plain tar archive are in it, for those archives that hold layers. */
#ifndef MVAGENT_IMAGE_MEMBERS_H
#define MVAGENT_IMAGE_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

struct member {
	char *name; /* without "./" and "/" before it */
	char *link; /* of a symbolic link: its target; else NULL */
	uint64_t offset;
	uint64_t size;
};

struct members {
	struct member *list; /* sorted by name; of those that have one name the last */
	unsigned int count;
	unsigned int capacity;
};

/* Looks through the archive that @fd is, of @bytes, as far as LIMIT_IMAGE_MEMBERS: what has more is
 * no archive of layers. 0 or -errno with the sentence printed; free in both cases. */
int members_scan(struct members *members, int fd, uint64_t bytes);
void members_free(struct members *members);

/* The file of that name, over links in the archive. NULL: there is none. */
const struct member *members_find(const struct members *members, const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The two contents that a change is between, ready to be compared. */
#ifndef MVAGENT_REVIEW_CONTENT_H
#define MVAGENT_REVIEW_CONTENT_H

#include "vmm/review/change.h"

/* One side. A symbolic link's content is its target, as it is for git. */
struct content {
	int fd; /* open for reading; -1: there is nothing */
	uint64_t size;
	bool binary; /* a NUL byte among the first, as git tells it */
};

struct content_pair {
	struct content before; /* the host's */
	struct content after;  /* the guest's */
};

/* Whether the object has a content at all: a regular file or a symbolic link. */
bool content_exists(const struct review_object *object);

/* Opens both sides of a change. 0 or -errno; close in every case. */
int content_open_pair(struct content_pair *pair, const struct review_share *share,
		      const struct review_change *change);
void content_close_pair(struct content_pair *pair);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The status that a server answers with (RFC 9112, 4): of all that it says only this is read, and
 * only after an Upgrade. Pure. */
#ifndef MVAGENT_SECRET_ANSWER_H
#define MVAGENT_SECRET_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

/* Zero before the first piece. */
struct answer {
	int status; /* once it is there; -1: it is no answer */
	bool in_fields;
	unsigned int line_ends; /* in a row */
	size_t length;
	char line[16]; /* the beginning of the status line */
};

/* Looks at the next piece. Returns the first status that is final or 101, 0 as long as none is
 * there, -1. What follows is not looked at. */
int answer_read(struct answer *answer, const void *bytes, size_t length);

#endif

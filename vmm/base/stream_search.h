/* SPDX-License-Identifier: Apache-2.0 */
/* Whether one of some texts occurs in a stream that comes in pieces. Pure. */
#ifndef MVAGENT_BASE_STREAM_SEARCH_H
#define MVAGENT_BASE_STREAM_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/limits.h"

struct stream_text {
	const char *text;
	size_t length; /* 1 to LIMIT_SECRET_BYTES */
};

/* Zero before the first piece; the end of what has come is kept. */
struct stream_search {
	size_t kept;
	uint8_t end[LIMIT_SECRET_BYTES - 1];
};

/* Looks at the next piece. The index of a text that ends in it, the first of @texts if there are
 * several, or -1. */
int stream_search_piece(struct stream_search *search, const struct stream_text *texts,
			unsigned int count, const void *bytes, size_t length);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on their way from one stream socket to another: one direction of a connection. What the
 * sink does not take at once is kept, and until it is gone nothing more is read, so that a reader
 * that stops stops the writer at the other end. */
#ifndef MVAGENT_BASE_FLOW_H
#define MVAGENT_BASE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero before use. */
struct flow {
	uint8_t *kept; /* allocated while there is something in it */
	size_t offset, length;
	bool ended;          /* the source has had its end */
	bool done;           /* and the sink was told */
	uint64_t bytes;      /* written so far */
	uint64_t *allowance; /* unless NULL: what may still be read; others may take of it too */
	/* Unless this is NULL: looks at what was read before it is written; false breaks the flow.
	 */
	bool (*inspect)(struct flow *flow, const uint8_t *bytes, size_t length);
};

enum flow_result {
	FLOW_WAITS, /* for one of the two sockets to change */
	FLOW_AGAIN, /* there may be more; others are to have their turn */
	FLOW_DONE,  /* for good */
	FLOW_SPENT, /* there is more than its allowance */
	FLOW_BROKEN,
};

/* Gives it bytes that come before all that is read: @bytes was allocated and is its own then. */
void flow_put(struct flow *flow, uint8_t *bytes, size_t length);

/* Moves what can be moved without waiting, up to a bound. */
enum flow_result flow_move(struct flow *flow, int source, int sink);

void flow_free(struct flow *flow);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on their way from one descriptor to another: one direction of one standard stream. The
 * source is read only when what was read before has been written, so that a reader that stops
 * stops the writer at the other end. */
#ifndef GUEST_RELAY_H
#define GUEST_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELAY_BYTES 65536 /* what a pipe holds */

enum relay_direction {
	RELAY_FROM_HOST, /* from a socket to a pipe or terminal */
	RELAY_TO_HOST,   /* from a pipe or terminal to a socket */
};

struct relay {
	enum relay_direction direction;
	int epoll;
	int source; /* -1: ended or given up */
	int sink;   /* -1: closed */
	bool finished;
	bool more;   /* its turn was over before its work was: pump it again */
	bool ending; /* nothing writes to the source any more: when it is empty it has ended */
	size_t start, end;
	uint8_t buffer[RELAY_BYTES];
};

/* Takes over both descriptors (also on failure), makes them non-blocking and watches them: events
 * have data.u32 @tag for the source and @tag + 1 for the sink. 0 or -errno. */
int relay_open(struct relay *relay, enum relay_direction direction, int epoll, uint32_t tag,
	       int source, int sink);

/* Handles @events of epoll(7) of the source or of the sink. */
void relay_handle(struct relay *relay, bool of_sink, uint32_t events);

/* Moves what can be moved without waiting, up to a bound that gives others their turn. */
void relay_pump(struct relay *relay);

/* Declares that nothing writes to the source any more, and moves what it still holds. */
void relay_end(struct relay *relay);

/* Closes both descriptors, whatever is still under way. */
void relay_abandon(struct relay *relay);

#endif

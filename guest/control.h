/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the host's messages while a session runs: small ones, without blocking, without
 * allocating. */
#ifndef GUEST_CONTROL_H
#define GUEST_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "vmm/wire/session.h"

/* A connection, and the part of a message that has come so far. Zero but for fd at first. */
struct control {
	int fd;
	size_t have;
	uint8_t bytes[sizeof(struct session_header) + sizeof(uint32_t)];
};

struct control_message {
	uint32_t type;
	uint32_t value; /* 0 when the message has no payload */
};

/* Takes the next message. 1, 0 when none is complete yet, -ECONNRESET at the end of the connection,
 * -EPROTO for what is not a message of a running session, -errno. */
int control_next_message(struct control *control, struct control_message *message);

#endif

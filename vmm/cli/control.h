/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's end of the session's control connection. Whatever the guest sends or does not
 * send, the supervisor never waits on it: bytes are taken as they come, and what is to be sent is
 * kept until there is room.
 */
#ifndef MVAGENT_CLI_CONTROL_H
#define MVAGENT_CLI_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include "vmm/wire/session.h"

/* The longest message that init sends is a failure with its text. */
#define CONTROL_RECEIVE_BYTES 1024U

struct control {
	int fd; /* connected stream socket; the caller's */
	size_t received_length;
	uint8_t received[CONTROL_RECEIVE_BYTES];
	uint8_t *outgoing; /* bytes not yet sent */
	size_t outgoing_length;
	size_t outgoing_offset;
};

void control_init(struct control *control, int fd);
void control_destroy(struct control *control);

/* Takes one whole message off the connection if there is one. @message's payload points into
 * @control and is good until the next call. 1, 0 when none is complete yet, -ENODATA when the guest
 * hung up, -EPROTO for a message that init never sends, -errno. */
int control_receive(struct control *control, struct session_message *message);

/* Queues a message; takes over @bytes (from session_encode_*). 0 or -ENOMEM. */
int control_send(struct control *control, uint8_t *bytes, size_t length);

/* Sends what is queued, as far as it goes. 0 or -errno. Call again when the socket is writable. */
int control_flush(struct control *control);

#endif

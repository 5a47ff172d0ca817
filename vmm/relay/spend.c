/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that a run may move, both ways and over all connections: --allow-bytes. */
#include <stdio.h>
#include <sys/socket.h>

#include "vmm/relay/relay_internal.h"

bool connection_pay(struct connection *connection, size_t length)
{
	struct relay *relay = connection->relay;

	if (!relay->settings->byte_limit)
		return true;
	if (relay->bytes_left < length)
		return false;
	relay->bytes_left -= length;
	return true;
}

bool relay_tell_spent(struct relay *relay)
{
	const unsigned long long limit = relay->settings->byte_limit;
	struct relay_event event = {.type = RELAY_EVENT_SPENT, .sent = limit};

	if (!relay->spent || relay->spent_told)
		return true;
	snprintf(event.text, sizeof(event.text),
		 "the %llu bytes of --allow-bytes are used up: the command's connections were "
		 "ended, and it gets no more",
		 limit);
	/* A supervisor that is behind is told at the next tick. */
	relay->spent_told = send(relay->event_fd, &event, sizeof(event),
				 MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(event);
	return relay->spent_told;
}

void relay_end_spent(struct relay *relay)
{
	relay->spent = true;
	for (unsigned int i = 0; i < relay->connection_count; i++) {
		struct connection *connection = &relay->connections[i];

		if (connection->state != CONNECTION_FREE &&
		    connection->state != CONNECTION_CLOSED &&
		    connection->state != CONNECTION_OFFERED)
			connection_close(connection);
	}
	relay_tell_spent(relay);
	relay_start_ticking(relay);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/relay/relay_internal.h"
#include "vmm/wire/sign.h"
#include "vmm/wire/terminate.h"

static void on_inner(struct loop_operation *operation, int result)
{
	struct connection *connection = CONTAINER_OF(operation, struct connection, inner_watch);

	if (result < 0 || connection->state == CONNECTION_CLOSED)
		return;
	connection->guest_gone |= (result & (POLLHUP | POLLERR)) != 0;
	connection_advance(connection);
}

int connection_hand_over(struct connection *connection)
{
	struct relay *relay = connection->relay;
	struct terminate_message message = {
		.port = connection->request.port,
		.length = (uint32_t)connection->first_length,
	};
	int pair[2] = {-1, -1}, error;

	snprintf(message.host, sizeof(message.host), "%s", connection->host);
	memcpy(message.first, connection->first, connection->first_length);
	error = fd_create_socket_pair(SOCK_STREAM | SOCK_NONBLOCK, pair);
	if (error)
		return error;
	/* It always reads on: what it does with a connection does not wait for us. */
	error = fd_send(relay->secret_fd, &message,
			offsetof(struct terminate_message, first) + message.length,
			(int[TERMINATE_DESCRIPTORS]){connection->guest_fd, pair[1]},
			TERMINATE_DESCRIPTORS);
	fd_close(&pair[1]);
	loop_cancel(relay->loop, &connection->guest_watch);
	fd_close(&connection->guest_fd);
	connection->guest_fd = pair[0];
	connection->terminated = true;
	connection->guest_gone = false;
	connection->first_length = 0;
	connection->first_over = false;
	connection->verdict = FIRST_MORE;
	return error ? error
		     : loop_watch(relay->loop, &connection->inner_watch, connection->guest_fd,
				  CONNECTION_EVENTS, on_inner);
}

void connection_hand_over_to_sign(struct connection *connection)
{
	struct sign_hand_over message = {.length = (uint32_t)connection->first_length};

	memcpy(message.first, connection->first, connection->first_length);
	/* It always reads on, as mvagent-secret does. */
	if (fd_send(connection->relay->sign_fd, &message,
		    offsetof(struct sign_hand_over, first) + message.length, &connection->guest_fd,
		    1) < 0)
		log_error("mvagent-sign takes no connection");
	connection_close(connection);
}

/* Whether there is none. */
static bool look(struct connection *connection, const uint8_t *bytes, size_t length)
{
	const struct relay_settings *settings = connection->relay->settings;
	struct stream_text texts[LIMIT_SECRETS];
	char text[RELAY_EVENT_TEXT_BYTES];
	int found;

	for (unsigned int i = 0; i < settings->placeholder_count; i++)
		texts[i] = (struct stream_text){settings->placeholders[i].text,
						strlen(settings->placeholders[i].text)};
	found = stream_search_piece(connection->search, texts, settings->placeholder_count, bytes,
				    length);
	if (found < 0)
		return true;
	snprintf(text, sizeof(text),
		 "%s:%u: a connection was ended: the placeholder of %s was on its way there",
		 connection->host, connection->request.port, settings->placeholders[found].name);
	relay_tell(connection->relay, RELAY_EVENT_DENIED, connection, text);
	return false;
}

static bool inspect(struct flow *flow, const uint8_t *bytes, size_t length)
{
	return look(CONTAINER_OF(flow, struct connection, up), bytes, length);
}

bool connection_inspect(struct connection *connection)
{
	/* Also in what begins like TLS: that it is, only its server could say. */
	if (!connection->relay->settings->placeholder_count || connection->terminated)
		return true;
	connection->search = calloc(1, sizeof(*connection->search));
	if (!connection->search)
		return false;
	connection->up.inspect = inspect;
	return look(connection, connection->first, connection->first_length);
}

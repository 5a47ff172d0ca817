/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/relay/relay.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/base/bytes.h"
#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/relay/relay_internal.h"
#include "vmm/wire/lend.h"

#define TICK_SOON_MS 100U
#define TICK_MS      1000U

/* How long servers may take to accept what the guest has sent, when the machine is gone. */
#define FAREWELL_TICK_MS 20U
#define FAREWELL_NS      (UINT64_C(2000) * CLOCK_NS_PER_MS)

/* At the very end it is waited for once, for as long as servers are. */
static bool wait_for_supervisor(struct relay *relay)
{
	struct pollfd room = {.fd = relay->event_fd, .events = POLLOUT};

	relay->ending = relay->ending && poll(&room, 1, FAREWELL_NS / CLOCK_NS_PER_MS) > 0;
	return relay->ending;
}

bool relay_tell(struct relay *relay, enum relay_event_type type,
		const struct connection *connection, const char *text)
{
	struct relay_event event = {
		.type = type,
		.port = connection->request.port,
		.sent = connection->up.bytes,
		.received = connection->down.bytes,
	};
	ssize_t sent;

	if (type == RELAY_EVENT_ENDED)
		event.microseconds = (clock_monotonic_ns() - connection->opened_ns) / 1000;
	snprintf(event.host, sizeof(event.host), "%s", connection->host);
	snprintf(event.text, sizeof(event.text), "%s", text);
	if (type == RELAY_EVENT_DENIED && !told_is_new(&relay->told, &event))
		return true;
	do {
		sent = send(relay->event_fd, &event, sizeof(event), MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (sent < 0 && errno == EAGAIN && wait_for_supervisor(relay));
	if (sent > 0 && type == RELAY_EVENT_DENIED)
		told_add(&relay->told, &event);
	if (sent >= 0 || errno != EAGAIN)
		return true;
	if (type != RELAY_EVENT_ENDED)
		relay->told.untold++;
	return false;
}

static void on_tick(struct loop_operation *operation, int result)
{
	struct relay *relay = CONTAINER_OF(operation, struct relay, tick);
	const uint64_t now = clock_monotonic_ns();
	bool soon, any;

	if (result < 0)
		return;
	soon = any = !relay_tell_spent(relay);
	lookup_tick(relay->lookup);
	for (unsigned int i = 0; i < relay->connection_count; i++) {
		struct connection *connection = &relay->connections[i];

		soon |= connection_tick(connection, now);
		any |= !connection_is_free(connection);
	}
	if (any)
		loop_timer(relay->loop, &relay->tick, soon ? TICK_SOON_MS : TICK_MS, on_tick);
}

void relay_start_ticking(struct relay *relay)
{
	if (loop_operation_idle(&relay->tick))
		loop_timer(relay->loop, &relay->tick, TICK_SOON_MS, on_tick);
}

static struct connection *find_free(struct relay *relay)
{
	for (unsigned int i = 0; i < relay->connection_count; i++) {
		if (connection_is_free(&relay->connections[i]))
			return &relay->connections[i];
	}
	/* Rather than that the guest waits for the supervisor, ends are only counted. */
	for (unsigned int i = 0; i < relay->connection_count; i++) {
		if (!relay->connections[i].end_untold)
			continue;
		relay->told.ends_untold++;
		relay->connections[i].end_untold = false;
		if (connection_is_free(&relay->connections[i]))
			return &relay->connections[i];
	}
	return NULL;
}

static void send_answer(const struct relay *relay, const struct lend_message *answer, int fd)
{
	/* mvagent-vmm always reads on: its questions do not wait for us. */
	int error = fd_send(relay->lender_fd, answer, sizeof(*answer), &fd, fd >= 0 ? 1 : 0);

	/* Without an answer the guest would wait for ever: it is refused, or the run ends. */
	if (error && error != -EPIPE && fd >= 0)
		error = fd_send(relay->lender_fd, answer, sizeof(*answer), NULL, 0);
	if (error && error != -EPIPE)
		loop_stop(relay->loop, log_errno(error, "cannot answer mvagent-vmm"));
}

/* One end for the guest, one for us; none when there are connections enough. */
static void answer_question(struct relay *relay, const struct lend_message *question)
{
	struct connection *connection = find_free(relay);
	int pair[2] = {-1, -1};

	if (connection && fd_create_socket_pair(SOCK_STREAM | SOCK_NONBLOCK, pair) == 0) {
		connection->relay = relay;
		connection_open(connection, fd_take(&pair[0]));
	}
	send_answer(relay, question, pair[1]);
	fd_close(&pair[1]);
}

/* The machine is gone. What the guest said before still goes to its servers, for a moment. */
static void on_farewell(struct loop_operation *operation, int result)
{
	struct relay *relay = CONTAINER_OF(operation, struct relay, farewell);
	bool any = false;

	if (result < 0)
		return;
	for (unsigned int i = 0; i < relay->connection_count; i++)
		any |= !connection_is_free(&relay->connections[i]);
	if (!any || clock_monotonic_ns() > relay->end_ns)
		loop_stop(relay->loop, 0);
	else
		loop_timer(relay->loop, &relay->farewell, FAREWELL_TICK_MS, on_farewell);
}

static void on_lender(struct loop_operation *operation, int result)
{
	struct relay *relay = CONTAINER_OF(operation, struct relay, lender_watch);
	struct lend_message question;

	if (result == -ECANCELED)
		return;
	for (;;) {
		ssize_t length = recv(relay->lender_fd, &question, sizeof(question), MSG_DONTWAIT);

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0 && errno == EAGAIN)
			return;
		if (length != sizeof(question)) {
			loop_cancel(relay->loop, &relay->lender_watch);
			relay->end_ns = clock_monotonic_ns() + FAREWELL_NS;
			loop_timer(relay->loop, &relay->farewell, 0, on_farewell);
			return;
		}
		answer_question(relay, &question);
	}
}

static struct connection *find_offer(struct relay *relay)
{
	for (unsigned int i = 0; i < relay->connection_count; i++) {
		if (relay->connections[i].state == CONNECTION_OFFERED)
			return &relay->connections[i];
	}
	return NULL;
}

/* Who connects while nothing is offered waits in the kernel's queue. */
void relay_serve_listeners(struct relay *relay)
{
	for (unsigned int i = 0; i < LIMIT_RELAY_PUBLISHED; i++) {
		struct listener *listener = &relay->listeners[i];
		struct connection *offer;
		int fd;

		while (listener->fd >= 0 && (offer = find_offer(relay))) {
			fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
			if (fd < 0)
				break;
			connection_accept(offer, fd, listener->guest_port);
		}
	}
}

static void on_listener(struct loop_operation *operation, int result)
{
	const struct listener *listener = CONTAINER_OF(operation, struct listener, watch);

	if (result >= 0)
		relay_serve_listeners(listener->relay);
}

static int watch_all(struct relay *relay)
{
	int error =
		loop_watch(relay->loop, &relay->lender_watch, relay->lender_fd, POLLIN, on_lender);

	for (unsigned int i = 0; !error && i < LIMIT_RELAY_PUBLISHED; i++) {
		struct listener *listener = &relay->listeners[i];

		if (listener->fd >= 0)
			error = loop_watch(relay->loop, &listener->watch, listener->fd, POLLIN,
					   on_listener);
	}
	return error ? log_errno(error, "cannot wait for connections") : 0;
}

int relay_create(struct relay **relay, struct loop *loop, const struct relay_plan *plan)
{
	struct relay *made = calloc(1, sizeof(*made));
	int error;

	if (!made)
		return log_errno(-ENOMEM, "cannot begin");
	made->loop = loop;
	made->settings = plan->settings;
	made->lender_fd = plan->lender_fd;
	made->event_fd = plan->event_fd;
	made->secret_fd = plan->secret_fd;
	made->sign_fd = plan->sign_fd;
	for (unsigned int i = 0; i < LIMIT_RELAY_PUBLISHED; i++) {
		bool used = i < plan->settings->published_count;

		made->listeners[i] = (struct listener){
			.relay = made,
			.fd = used ? plan->listeners[i] : -1,
			.guest_port = plan->settings->published[i].guest_port,
		};
	}
	made->bytes_left = plan->settings->byte_limit;
	made->connection_count = plan->connections;
	made->connections = calloc(plan->connections, sizeof(*made->connections));
	error = made->connections ? 0 : log_errno(-ENOMEM, "cannot begin");
	if (!error)
		error = lookup_create(&made->lookup, loop,
				      plan->settings->servers[0] ? plan->settings->servers : NULL);
	if (!error)
		error = watch_all(made);
	if (error) {
		relay_destroy(made);
		return error;
	}
	*relay = made;
	return 0;
}

void relay_destroy(struct relay *relay)
{
	if (!relay)
		return;
	relay->ending = true;
	loop_end(relay->loop, &relay->farewell);
	loop_end(relay->loop, &relay->tick);
	loop_end(relay->loop, &relay->lender_watch);
	for (unsigned int i = 0; i < LIMIT_RELAY_PUBLISHED; i++) {
		loop_end(relay->loop, &relay->listeners[i].watch);
		fd_close(&relay->listeners[i].fd);
	}
	for (unsigned int i = 0; relay->connections && i < relay->connection_count; i++) {
		struct connection *connection = &relay->connections[i];

		if (connection->state == CONNECTION_FREE)
			continue;
		if (connection->state != CONNECTION_CLOSED)
			connection_close(connection);
		if (connection->end_untold && !relay_tell(relay, RELAY_EVENT_ENDED, connection, ""))
			relay->told.ends_untold++;
		connection->end_untold = false;
		while (!connection_is_free(connection)) {
			if (loop_run_once(relay->loop, -1) < 0)
				log_fatal("cannot end a connection");
		}
	}
	told_end(&relay->told, relay->event_fd, MSG_DONTWAIT);
	lookup_destroy(relay->lookup);
	fd_close(&relay->lender_fd);
	fd_close(&relay->event_fd);
	fd_close(&relay->secret_fd);
	fd_close(&relay->sign_fd);
	free(relay->connections);
	free(relay);
}

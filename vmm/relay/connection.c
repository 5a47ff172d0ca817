/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/base/bytes.h"
#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/relay/relay_internal.h"

/* How long a connection may be in a state, seconds. */
#define REQUEST_SECONDS 30U
#define LOOKUP_SECONDS  20U
#define DIAL_SECONDS    30U
#define PROXY_SECONDS   30U
#define FIRST_SECONDS   60U  /* until the guest has said what it is, when that is needed */
#define HALF_SECONDS    300U /* without a byte, when one direction is over */

static uint64_t seconds_from_now(unsigned int seconds)
{
	return clock_monotonic_ns() + seconds * (uint64_t)1000 * CLOCK_NS_PER_MS;
}

static void enter(struct connection *connection, enum connection_state state, unsigned int seconds)
{
	connection->state = state;
	connection->deadline_ns = seconds_from_now(seconds);
}

void connection_close(struct connection *connection)
{
	struct relay *relay = connection->relay;

	if (connection->state == CONNECTION_OPEN)
		connection->end_untold = !relay_tell(relay, RELAY_EVENT_ENDED, connection, "");
	connection->state = CONNECTION_CLOSED;
	loop_cancel(relay->loop, &connection->guest_watch);
	loop_cancel(relay->loop, &connection->server_watch);
	loop_cancel(relay->loop, &connection->inner_watch);
	loop_cancel(relay->loop, &connection->again);
	lookup_forget(relay->lookup, &connection->waiter);
	dial_stop(&connection->dial);
	fd_close(&connection->guest_fd);
	fd_close(&connection->server_fd);
	free(connection->first);
	free(connection->proxy_head);
	free(connection->search);
	connection->search = NULL;
	connection->first = NULL;
	connection->proxy_head = NULL;
	flow_free(&connection->up);
	flow_free(&connection->down);
}

/* Tells the guest how its request went; its buffer is empty so far. */
static void answer(struct connection *connection, enum relay_status status)
{
	const uint8_t byte = (uint8_t)status;

	/* Without it what follows would be taken for it, or be waited for. */
	if (send(connection->guest_fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
		shutdown(connection->guest_fd, SHUT_RDWR);
}

static void deny(struct connection *connection, const char *sentence)
{
	relay_tell(connection->relay, RELAY_EVENT_DENIED, connection, sentence);
	if (connection->state != CONNECTION_OPEN)
		answer(connection, RELAY_DENIED);
	connection_close(connection);
}

static void fail(struct connection *connection, const char *why)
{
	char text[RELAY_EVENT_TEXT_BYTES];

	snprintf(text, sizeof(text), "%s:%u cannot be reached: %s", connection->host,
		 connection->request.port, why);
	relay_tell(connection->relay, RELAY_EVENT_FAILED, connection, text);
	answer(connection, RELAY_FAILED);
	connection_close(connection);
}

/* Reads what the guest says before its bytes may pass, as far as there is room. Returns whether the
 * connection is still there. */
static bool read_first(struct connection *connection)
{
	while (!connection->first_over && connection->first_length < LIMIT_RELAY_FIRST_BYTES) {
		ssize_t count =
			recv(connection->guest_fd, connection->first + connection->first_length,
			     LIMIT_RELAY_FIRST_BYTES - connection->first_length, MSG_DONTWAIT);

		if (count > 0)
			connection->first_length += (size_t)count;
		else if (count == 0)
			connection->first_over = true;
		else if (errno == EAGAIN)
			break;
		else if (errno != EINTR) {
			connection_close(connection);
			return false;
		}
	}
	return true;
}

/* Nothing passes by mvagent-secret, neither way. */
static bool awaits_termination(const struct connection *connection)
{
	const struct relay *relay = connection->relay;

	return relay->secret_fd >= 0 && !connection->terminated &&
	       relay_settings_terminate(relay->settings, connection->host,
					connection->request.port);
}

/* Judges what there is. Returns whether the connection is still there. */
static bool judge(struct connection *connection)
{
	char reason[FIRST_REASON_BYTES], text[RELAY_EVENT_TEXT_BYTES];

	if (connection->verdict != FIRST_MORE)
		return true;
	if (awaits_termination(connection))
		connection->verdict = first_judge_secret(connection->host, connection->first,
							 connection->first_length,
							 connection->first_over, reason);
	else
		connection->verdict = first_judge(
			&connection->relay->settings->policy, connection->host,
			connection->is_address, connection->request.port, connection->first,
			connection->first_length, connection->first_over, reason);
	if (connection->verdict != FIRST_REFUSE)
		return true;
	snprintf(text, sizeof(text), "%s:%u: a connection was refused: %s", connection->host,
		 connection->request.port, reason);
	deny(connection, text);
	return false;
}

/* What came first goes first. Returns whether the connection is still there. */
static bool pass_first(struct connection *connection)
{
	if (!connection->first)
		return true;
	if (!connection_inspect(connection)) {
		connection_close(connection);
		return false;
	}
	if (!connection_pay(connection, connection->first_length)) {
		relay_end_spent(connection->relay);
		return false;
	}
	if (connection->first_length) {
		flow_put(&connection->up, connection->first, connection->first_length);
	} else {
		free(connection->first);
	}
	connection->first = NULL;
	connection->up.ended = connection->first_over;
	connection->deadline_ns = 0;
	return true;
}

static void on_again(struct loop_operation *operation, int result)
{
	struct connection *connection = CONTAINER_OF(operation, struct connection, again);

	if (result == 0 && connection->state == CONNECTION_OPEN)
		connection_advance(connection);
}

/* Moves bytes both ways. */
static void serve_open(struct connection *connection)
{
	const uint64_t before = connection->up.bytes + connection->down.bytes;
	enum flow_result up = FLOW_WAITS, down = FLOW_WAITS;

	if (connection->verdict == FIRST_MORE && (!read_first(connection) || !judge(connection)))
		return;
	if (connection->verdict == FIRST_TERMINATE && connection_hand_over(connection) < 0) {
		connection_close(connection);
		return;
	}
	if (connection->verdict == FIRST_PASS) {
		if (!pass_first(connection))
			return;
		up = flow_move(&connection->up, connection->guest_fd, connection->server_fd);
	}
	if (!awaits_termination(connection))
		down = flow_move(&connection->down, connection->server_fd, connection->guest_fd);
	if (connection->up.bytes + connection->down.bytes != before)
		connection->moved_ns = clock_monotonic_ns();
	if (up == FLOW_SPENT || down == FLOW_SPENT) {
		relay_end_spent(connection->relay);
		return;
	}
	if (up == FLOW_BROKEN || down == FLOW_BROKEN || (up == FLOW_DONE && down == FLOW_DONE) ||
	    (up == FLOW_DONE && connection->guest_gone)) {
		connection_close(connection);
		return;
	}
	if ((up == FLOW_AGAIN || down == FLOW_AGAIN) && loop_operation_idle(&connection->again))
		loop_timer(connection->relay->loop, &connection->again, 0, on_again);
}

/* The server is there. */
static void begin_open(struct connection *connection)
{
	answer(connection, RELAY_CONNECTED);
	enter(connection, CONNECTION_OPEN, FIRST_SECONDS);
	/* Elsewhere the server may be the one who speaks first, and the guest listen for long. */
	if (connection->request.port != ROUTE_PORT_TLS)
		connection->deadline_ns = 0;
	connection->opened_ns = connection->moved_ns = clock_monotonic_ns();
	connection_advance(connection);
}

static void read_proxy(struct connection *connection)
{
	char why[64];
	int head = 0;

	while (head == 0) {
		ssize_t count = recv(connection->server_fd,
				     connection->proxy_head + connection->proxy_length,
				     PROXY_RESPONSE_BYTES - connection->proxy_length, MSG_DONTWAIT);

		if (count < 0 && errno == EAGAIN)
			return;
		if (count < 0 && errno == EINTR)
			continue;
		if (count > 0)
			connection->proxy_length += (size_t)count;
		head = count > 0 ? proxy_response(connection->proxy_head, connection->proxy_length)
				 : -1;
	}
	if (head < 0) {
		snprintf(why, sizeof(why),
			 head == -1 ? "the proxy gave no answer that makes sense"
				    : "the proxy says no: status %d",
			 -head);
		fail(connection, why);
		return;
	}
	/* What follows the answer comes from the server already. */
	connection->proxy_length -= (size_t)head;
	if (!connection_pay(connection, connection->proxy_length)) {
		relay_end_spent(connection->relay);
		return;
	}
	if (connection->proxy_length) {
		memmove(connection->proxy_head, connection->proxy_head + head,
			connection->proxy_length);
		flow_put(&connection->down, (uint8_t *)connection->proxy_head,
			 connection->proxy_length);
	} else {
		free(connection->proxy_head);
	}
	connection->proxy_head = NULL;
	begin_open(connection);
}

static void begin_proxy(struct connection *connection)
{
	char request[PROXY_REQUEST_BYTES];
	size_t length = proxy_request(&connection->relay->settings->proxy, connection->host,
				      connection->request.port, request);

	connection->proxy_head = malloc(PROXY_RESPONSE_BYTES);
	/* The first bytes of a connection always find room. */
	if (!connection->proxy_head || send(connection->server_fd, request, length,
					    MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)length) {
		fail(connection, "the proxy has closed the connection");
		return;
	}
	enter(connection, CONNECTION_PROXY, PROXY_SECONDS);
}

static bool uses_proxy(const struct connection *connection)
{
	const struct proxy *proxy = &connection->relay->settings->proxy;

	return proxy->host[0] && !proxy_is_exempt(proxy, connection->host);
}

static void on_server(struct loop_operation *operation, int result)
{
	struct connection *connection = CONTAINER_OF(operation, struct connection, server_watch);

	if (result >= 0)
		connection_advance(connection);
}

static void on_dialed(struct dial *dial, int fd, const struct address *address)
{
	struct connection *connection = CONTAINER_OF(dial, struct connection, dial);
	struct loop *loop = connection->relay->loop;

	(void)address;
	if (fd < 0) {
		fail(connection, strerror(-fd));
		return;
	}
	connection->server_fd = fd;
	if (loop_watch(loop, &connection->server_watch, fd, CONNECTION_EVENTS, on_server) < 0) {
		fail(connection, "too many connections");
		return;
	}
	if (uses_proxy(connection))
		begin_proxy(connection);
	else
		begin_open(connection);
}

static void dial(struct connection *connection, uint16_t port)
{
	connection->dial.port = port;
	dial_sort(connection->dial.addresses, connection->dial.count);
	enter(connection, CONNECTION_DIAL, DIAL_SECONDS);
	dial_start(&connection->dial, connection->relay->loop, on_dialed);
}

/* Exactly the addresses that were looked at here are connected to; a name that has another by then
 * does not matter. */
static void on_found(struct lookup_waiter *waiter, const struct lookup_result *result)
{
	struct connection *connection = CONTAINER_OF(waiter, struct connection, waiter);
	const struct route_policy *policy = &connection->relay->settings->policy;
	char address[ADDRESS_TEXT_BYTES], text[RELAY_EVENT_TEXT_BYTES];
	const uint16_t port = connection->request.port;
	const char *objection = NULL;

	if (result->error) {
		fail(connection, result->error);
		return;
	}
	connection->dial.count = 0;
	for (unsigned int i = 0; i < result->count; i++) {
		const char *why = route_policy_objection(policy, connection->host,
							 &result->addresses[i], port);

		if (!why) {
			connection->dial.addresses[connection->dial.count++] = result->addresses[i];
			continue;
		}
		objection = why;
		address_write(&result->addresses[i], address);
	}
	if (!connection->dial.count) {
		snprintf(text, sizeof(text),
			 "%s:%u: a connection was refused: its address %s is %s; --allow %s:%u "
			 "would let it pass",
			 connection->host, port, address, objection, address, port);
		deny(connection, text);
		return;
	}
	dial(connection, port);
}

static void on_proxy_found(struct lookup_waiter *waiter, const struct lookup_result *result)
{
	struct connection *connection = CONTAINER_OF(waiter, struct connection, waiter);
	char why[256];

	if (result->error) {
		snprintf(why, sizeof(why), "the proxy has no address: %s", result->error);
		fail(connection, why);
		return;
	}
	connection->dial.count = result->count;
	memcpy(connection->dial.addresses, result->addresses,
	       result->count * sizeof(result->addresses[0]));
	dial(connection, connection->relay->settings->proxy.port);
}

/* To the server itself, or to the proxy. */
static void find_server(struct connection *connection)
{
	const struct proxy *proxy = &connection->relay->settings->proxy;
	bool by_proxy = uses_proxy(connection);
	const char *host = by_proxy ? proxy->host : connection->host;

	connection->dial.count = 1;
	if (address_read(host, strlen(host), &connection->dial.addresses[0]) == 0) {
		dial(connection, by_proxy ? proxy->port : connection->request.port);
		return;
	}
	enter(connection, CONNECTION_LOOKUP, LOOKUP_SECONDS);
	lookup_ask(connection->relay->lookup, host, &connection->waiter,
		   by_proxy ? on_proxy_found : on_found);
}

/* The decision about a connection: the guest's own counts for nothing. */
static void decide(struct connection *connection)
{
	const struct relay_request *request = &connection->request;
	struct route_decision decision =
		route_policy_decide(&connection->relay->settings->policy, request->name,
				    request->name_length, request->port);
	char text[ROUTE_SENTENCE_BYTES];
	struct address address;

	connection->is_address = address_read(request->name, request->name_length, &address) == 0;
	if (connection->is_address)
		address_write(&address, connection->host);
	else if (name_read(request->name, request->name_length, connection->host) < 0)
		snprintf(connection->host, sizeof(connection->host), "(no name)");
	if (relay_settings_find_placeholder(connection->relay->settings, request->name,
					    request->name_length)) {
		deny(connection, "a name with a secret's placeholder in it was asked for, and not "
				 "looked up");
		return;
	}
	if (connection->relay->spent) {
		answer(connection, RELAY_DENIED);
		connection_close(connection);
		return;
	}
	if (decision.verdict != ROUTE_ALLOWED) {
		route_explain(&decision, connection->host, request->port, text);
		deny(connection, text);
		return;
	}
	if (judge(connection))
		find_server(connection);
}

static void read_request(struct connection *connection)
{
	int length;

	if (!read_first(connection))
		return;
	length = relay_decode_request(connection->first, connection->first_length,
				      &connection->request);
	if (length < 0 || (length == 0 && connection->first_over)) {
		connection_close(connection);
		return;
	}
	if (length == 0)
		return;
	connection->first_length -= (size_t)length;
	memmove(connection->first, connection->first + length, connection->first_length);
	if (connection->request.kind == RELAY_CONNECT) {
		decide(connection);
		return;
	}
	if (connection->request.kind == RELAY_SIGN) {
		const bool there = connection->relay->sign_fd >= 0;

		answer(connection, there ? RELAY_CONNECTED : RELAY_DENIED);
		if (there)
			connection_hand_over_to_sign(connection);
		else
			connection_close(connection);
		return;
	}
	connection->state = CONNECTION_OFFERED;
	connection->deadline_ns = 0;
	relay_serve_listeners(connection->relay);
}

void connection_accept(struct connection *connection, int server_fd, uint16_t guest_port)
{
	const uint8_t found[RELAY_OFFER_BYTES] = {RELAY_CONNECTED, (uint8_t)guest_port,
						  (uint8_t)(guest_port >> 8)};

	connection->server_fd = server_fd;
	connection->request.port = guest_port;
	snprintf(connection->host, sizeof(connection->host), "(published)");
	connection->verdict = FIRST_PASS;
	send(connection->guest_fd, found, sizeof(found), MSG_DONTWAIT | MSG_NOSIGNAL);
	connection->state = CONNECTION_OPEN;
	connection->opened_ns = connection->moved_ns = clock_monotonic_ns();
	if (loop_watch(connection->relay->loop, &connection->server_watch, server_fd,
		       CONNECTION_EVENTS, on_server) < 0)
		connection_close(connection);
	else
		connection_advance(connection);
}

void connection_advance(struct connection *connection)
{
	switch (connection->state) {
	case CONNECTION_REQUEST:
		read_request(connection);
		break;
	case CONNECTION_LOOKUP:
	case CONNECTION_DIAL:
		/* What the guest says meanwhile, so that a refusal does not wait for the server. */
		if (connection->verdict == FIRST_MORE && read_first(connection))
			judge(connection);
		break;
	case CONNECTION_PROXY:
		read_proxy(connection);
		break;
	case CONNECTION_OPEN:
		serve_open(connection);
		break;
	case CONNECTION_OFFERED:
	case CONNECTION_FREE:
	case CONNECTION_CLOSED:
		break;
	}
}

static void on_guest(struct loop_operation *operation, int result)
{
	struct connection *connection = CONTAINER_OF(operation, struct connection, guest_watch);

	if (result < 0 || connection->state == CONNECTION_CLOSED || connection->terminated)
		return;
	connection->guest_gone |= (result & (POLLHUP | POLLERR)) != 0;
	connection_advance(connection);
	/* What it said before it left still goes to the server, if it said anything. */
	if (connection->guest_gone && connection->state != CONNECTION_OPEN &&
	    connection->state != CONNECTION_CLOSED && !connection->first_length)
		connection_close(connection);
}

void connection_open(struct connection *connection, int guest_fd)
{
	struct relay *relay = connection->relay;

	*connection = (struct connection){
		.relay = relay, .guest_fd = guest_fd, .server_fd = -1, .verdict = FIRST_MORE};
	if (relay->settings->byte_limit)
		connection->up.allowance = connection->down.allowance = &relay->bytes_left;
	enter(connection, CONNECTION_REQUEST, REQUEST_SECONDS);
	connection->first = malloc(LIMIT_RELAY_FIRST_BYTES);
	if (!connection->first || loop_watch(relay->loop, &connection->guest_watch, guest_fd,
					     CONNECTION_EVENTS, on_guest) < 0)
		connection_close(connection);
	relay_start_ticking(relay);
}

static bool is_at_rest(const struct connection *connection)
{
	return loop_operation_idle(&connection->guest_watch) &&
	       loop_operation_idle(&connection->server_watch) &&
	       loop_operation_idle(&connection->inner_watch) &&
	       loop_operation_idle(&connection->again) && dial_is_idle(&connection->dial);
}

bool connection_is_free(struct connection *connection)
{
	if (connection->end_untold)
		connection->end_untold =
			!relay_tell(connection->relay, RELAY_EVENT_ENDED, connection, "");
	if (connection->state == CONNECTION_CLOSED && !connection->end_untold &&
	    is_at_rest(connection))
		connection->state = CONNECTION_FREE;
	return connection->state == CONNECTION_FREE;
}

bool connection_tick(struct connection *connection, uint64_t now_ns)
{
	bool half = connection->up.done || connection->down.done;

	if (connection->state == CONNECTION_FREE || connection->state == CONNECTION_CLOSED)
		return false;
	if (connection->deadline_ns && now_ns > connection->deadline_ns) {
		if (connection->state == CONNECTION_LOOKUP ||
		    connection->state == CONNECTION_DIAL || connection->state == CONNECTION_PROXY)
			fail(connection, "there is no answer");
		else if (connection->state == CONNECTION_REQUEST ||
			 connection->verdict == FIRST_MORE)
			connection_close(connection);
	} else if (connection->state == CONNECTION_OPEN && half &&
		   now_ns - connection->moved_ns >
			   HALF_SECONDS * (uint64_t)1000 * CLOCK_NS_PER_MS) {
		connection_close(connection);
	}
	return connection->state == CONNECTION_LOOKUP;
}

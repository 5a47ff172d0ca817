/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/bridge.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/vsock.h"
#include "vmm/base/fd.h"
#include "vmm/wire/session.h"

void bridge_init(struct bridge *bridge, int epoll, uint32_t tag)
{
	memset(bridge, 0, sizeof(*bridge));
	bridge->epoll = epoll;
	bridge->tag = tag;
}

/* Edge-triggered: whatever changes, all that can be done is done. */
static int watch(const struct bridge *bridge, const struct bridge_connection *connection, int fd)
{
	uint32_t index = (uint32_t)(connection - bridge->connections);
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		.data.u32 = bridge->tag + 2 * index + (fd == connection->host),
	};

	return epoll_ctl(bridge->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void close_connection(struct bridge *bridge, struct bridge_connection *connection)
{
	if (connection->offer && connection->client < 0)
		bridge->offers--;
	fd_close(&connection->client);
	fd_close(&connection->host);
	flow_free(&connection->up);
	flow_free(&connection->down);
	connection->state = BRIDGE_FREE;
	connection->again = false;
	while (bridge->in_use && bridge->connections[bridge->in_use - 1].state == BRIDGE_FREE)
		bridge->in_use--;
}

/* The program sees that the connection failed, and not that it ended well. */
static void refuse_client(int client)
{
	const struct linger at_once = {.l_onoff = 1};

	setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

/* One that has asked by CONNECT and waits for an answer gets one (RFC 9110, 15.5.4 and 15.6.3). */
static void refuse_request(const struct bridge_connection *connection)
{
	static const char denied[] = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n"
				     "Content-Length: 26\r\n\r\nmvagent does not allow it\n";
	static const char failed[] = "HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n"
				     "Content-Length: 0\r\n\r\n";
	const bool is_denied = connection->answer_length && connection->answer[0] == RELAY_DENIED;

	send(connection->client, is_denied ? denied : failed,
	     is_denied ? sizeof(denied) - 1 : sizeof(failed) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(connection->client, SHUT_WR);
}

/* There will be no connection. */
static void refuse(const struct bridge_connection *connection)
{
	if (connection->client < 0)
		return;
	if (connection->asked_by_http && connection->state != BRIDGE_OPEN)
		refuse_request(connection);
	else
		refuse_client(connection->client);
}

static struct bridge_connection *find_free(struct bridge *bridge)
{
	for (unsigned int i = 0; i < LIMIT_RELAY_CONNECTIONS; i++) {
		if (bridge->connections[i].state != BRIDGE_FREE)
			continue;
		if (i >= bridge->in_use)
			bridge->in_use = i + 1;
		return &bridge->connections[i];
	}
	return NULL;
}

/* Begins a stream to the relay. Returns whether it is under way. */
static bool begin(struct bridge *bridge, struct bridge_connection *connection, int client,
		  bool by_http)
{
	*connection = (struct bridge_connection){.state = BRIDGE_CONNECTING,
						 .offer = client < 0,
						 .asked_by_http = by_http,
						 .client = client,
						 .host = -1};
	connection->host = vsock_connect_begin(SESSION_PORT_RELAY);
	return connection->host >= 0 && watch(bridge, connection, connection->host) == 0;
}

/* The stream begins with the request, and goes on with what the program has said so far. */
static void carry(struct bridge *bridge, int client, const struct relay_request *request,
		  bool by_http, const void *rest, size_t rest_length)
{
	struct bridge_connection *connection = find_free(bridge);
	uint8_t *first = malloc(RELAY_REQUEST_BYTES + rest_length);
	const int yes = 1;
	size_t length;

	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (!connection || !first) {
		free(first);
		refuse_client(client);
		fd_close(&client);
		return;
	}
	if (!begin(bridge, connection, client, by_http) || watch(bridge, connection, client) < 0) {
		free(first);
		refuse(connection);
		close_connection(bridge, connection);
		return;
	}
	length = relay_encode_request(request, first);
	if (rest_length)
		memcpy(first + length, rest, rest_length);
	flow_put(&connection->up, first, length + rest_length);
}

static struct relay_request make_request(const char *name, uint16_t port)
{
	struct relay_request request = {.kind = RELAY_CONNECT, .port = port};

	request.name_length = (uint8_t)strlen(name);
	memcpy(request.name, name, request.name_length);
	return request;
}

void bridge_carry(struct bridge *bridge, int client, const char *name, uint16_t port)
{
	const struct relay_request request = make_request(name, port);

	carry(bridge, client, &request, false, NULL, 0);
}

void bridge_carry_agent(struct bridge *bridge, int client)
{
	const struct relay_request request = {.kind = RELAY_SIGN};

	carry(bridge, client, &request, false, NULL, 0);
}

void bridge_carry_request(struct bridge *bridge, int client, const char *name, uint16_t port,
			  const void *rest, size_t rest_length)
{
	const struct relay_request request = make_request(name, port);

	carry(bridge, client, &request, true, rest, rest_length);
}

void bridge_offer(struct bridge *bridge, unsigned int count)
{
	bridge->wanted_offers = count;
	while (bridge->offers < count) {
		struct bridge_connection *connection = find_free(bridge);

		if (!connection)
			return;
		bridge->offers++;
		if (!begin(bridge, connection, -1, false)) {
			close_connection(bridge, connection);
			return;
		}
	}
}

static int connect_loopback(int family, uint16_t port)
{
	const struct sockaddr_in four = {.sin_family = AF_INET,
					 .sin_port = htons(port),
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 six = {.sin6_family = AF_INET6,
					 .sin6_port = htons(port),
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	const struct sockaddr *to =
		family == AF_INET ? (const struct sockaddr *)&four : (const struct sockaddr *)&six;
	const int yes = 1;
	FD_CLEANUP int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* On the loopback interface it does not wait: the other end takes it or refuses. */
	if (fd < 0 || connect(fd, to, family == AF_INET ? sizeof(four) : sizeof(six)) < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	fd_set_nonblocking(fd, 1);
	return fd_take(&fd);
}

/* Somebody on the host wants the guest's @port. Returns whether there is a server. */
static bool take_offer(struct bridge *bridge, struct bridge_connection *connection, uint16_t port)
{
	int client = connect_loopback(AF_INET, port);

	if (client < 0)
		client = connect_loopback(AF_INET6, port);
	if (client < 0 || watch(bridge, connection, client) < 0) {
		fd_close(&client);
		return false;
	}
	connection->client = client;
	bridge->offers--;
	bridge_offer(bridge, bridge->wanted_offers);
	return true;
}

/* The answer comes before all that the server says. */
static bool accept_request(struct bridge_connection *connection)
{
	char *answer = strdup("HTTP/1.1 200 Connection established\r\n\r\n");

	if (answer)
		flow_put(&connection->down, (uint8_t *)answer, strlen(answer));
	return answer != NULL;
}

/* Reads what the relay says first. Returns whether the connection is still there. */
static bool read_answer(struct bridge *bridge, struct bridge_connection *connection)
{
	const unsigned int wanted = connection->offer ? RELAY_OFFER_BYTES : 1;
	ssize_t count;

	while (connection->answer_length < wanted) {
		count = recv(connection->host, connection->answer + connection->answer_length,
			     wanted - connection->answer_length, MSG_DONTWAIT);
		if (count < 0 && errno == EAGAIN)
			return true;
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0 || connection->answer[0] != RELAY_CONNECTED) {
			connection->answer_length += count > 0;
			refuse(connection);
			close_connection(bridge, connection);
			return false;
		}
		connection->answer_length += (unsigned int)count;
	}
	if (connection->asked_by_http && !accept_request(connection)) {
		refuse(connection);
		close_connection(bridge, connection);
		return false;
	}
	connection->state = BRIDGE_OPEN;
	if (connection->offer &&
	    !take_offer(bridge, connection,
			(uint16_t)(connection->answer[1] | connection->answer[2] << 8))) {
		close_connection(bridge, connection);
		bridge_offer(bridge, bridge->wanted_offers);
		return false;
	}
	return true;
}

/* Whether the stream to the relay stands; -errno when it never will. */
static int check_connected(struct bridge_connection *connection, uint32_t events)
{
	socklen_t length = sizeof(int);
	int error = 0;

	if (getsockopt(connection->host, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
		return -errno;
	if (error)
		return -error;
	return (events & EPOLLOUT) != 0;
}

static void advance(struct bridge *bridge, struct bridge_connection *connection)
{
	enum flow_result up = FLOW_WAITS, down = FLOW_WAITS;

	connection->again = false;
	if (connection->state == BRIDGE_ASKED && !read_answer(bridge, connection))
		return;
	if (connection->client < 0)
		return; /* an offer that nobody has taken */
	up = flow_move(&connection->up, connection->client, connection->host);
	if (connection->state == BRIDGE_OPEN)
		down = flow_move(&connection->down, connection->host, connection->client);
	if (up == FLOW_BROKEN || down == FLOW_BROKEN) {
		refuse(connection);
		close_connection(bridge, connection);
	} else if (up == FLOW_DONE && down == FLOW_DONE) {
		close_connection(bridge, connection);
	} else {
		connection->again = up == FLOW_AGAIN || down == FLOW_AGAIN;
	}
}

/* It is short, and the first of its stream: there is room for it. */
static void say_offer(struct bridge_connection *connection)
{
	const struct relay_request request = {.kind = RELAY_OFFER};
	uint8_t bytes[RELAY_REQUEST_BYTES];

	send(connection->host, bytes, relay_encode_request(&request, bytes),
	     MSG_DONTWAIT | MSG_NOSIGNAL);
}

void bridge_handle(struct bridge *bridge, uint32_t tag, uint32_t events)
{
	struct bridge_connection *connection = &bridge->connections[tag / 2];

	if (connection->state == BRIDGE_FREE)
		return;
	if (connection->state == BRIDGE_CONNECTING) {
		int connected = tag % 2 ? check_connected(connection, events) : 0;

		if (connected < 0) {
			refuse(connection);
			close_connection(bridge, connection);
		}
		if (connected <= 0)
			return;
		connection->state = BRIDGE_ASKED;
		if (connection->offer)
			say_offer(connection);
	}
	advance(bridge, connection);
}

bool bridge_do_rest(struct bridge *bridge)
{
	bool more = false;

	for (unsigned int i = 0; i < bridge->in_use; i++) {
		struct bridge_connection *connection = &bridge->connections[i];

		if (connection->state != BRIDGE_FREE && connection->again)
			advance(bridge, connection);
		more |= connection->state != BRIDGE_FREE && connection->again;
	}
	return more;
}

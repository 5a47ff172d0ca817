/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's half of the ways out: names get addresses, connections to them are carried. The host
 * is here; what would be vsock is a pair of sockets. */
#include "guest/ways.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "guest/vsock.h"
#include "vmm/base/fd.h"
#include "vmm/wire/session.h"

#define HOST_ENDS 64

/* In place of guest/vsock.c: each connection's other end waits here. */
static struct {
	unsigned int port;
	int fd;
} host_ends[HOST_ENDS];
static unsigned int host_end_count;
static int next_names_fd = -1;
static bool host_is_gone;

int vsock_connect_begin(unsigned int port)
{
	int pair[2];

	if (host_is_gone || host_end_count == HOST_ENDS)
		return -ECONNRESET;
	if (port == SESSION_PORT_NAMES)
		return fd_take(&next_names_fd);
	if (fd_create_socket_pair(SOCK_STREAM | SOCK_NONBLOCK, pair) < 0)
		abort();
	host_ends[host_end_count].port = port;
	host_ends[host_end_count++].fd = pair[1];
	return pair[0];
}

int vsock_connect_finish(int fd)
{
	(void)fd;
	return 0;
}

enum { TAG_BRIDGE, TAG_WAYS = BRIDGE_TAGS };

struct fixture {
	int epoll;
	int names; /* the supervisor's end */
	in_port_t port;
	struct bridge bridge;
	struct ways ways;
};

static void turn(struct fixture *f)
{
	struct epoll_event events[64];
	int count;

	for (int i = 0; i < 20; i++) {
		count = epoll_wait(f->epoll, events, 64, 1);
		for (int j = 0; j < count; j++) {
			if (events[j].data.u32 >= TAG_WAYS)
				ways_accept(&f->ways, events[j].data.u32 - TAG_WAYS);
			else
				bridge_handle(&f->bridge, events[j].data.u32, events[j].events);
		}
		if (!bridge_do_rest(&f->bridge) && count <= 0)
			break;
	}
}

static in_port_t free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	FD_CLEANUP int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	return ntohs(address.sin_port);
}

static int open_ways(struct fixture *f, unsigned int offers)
{
	struct names_greeting greeting = {.offers = (uint8_t)offers, .address_count = 1};
	uint8_t bytes[NAMES_GREETING_BYTES];
	size_t length;
	int pair[2];

	greeting.addresses[0] =
		(struct names_address){.version = 4, .bytes = {127, 0, 0, 1}, .port = f->port};
	length = names_encode_greeting(&greeting, bytes);
	assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pair), 0);
	assert_int_equal(send(pair[1], bytes, length, 0), length);
	next_names_fd = pair[0];
	f->names = pair[1];
	bridge_init(&f->bridge, f->epoll, TAG_BRIDGE);
	return ways_open(&f->ways, &f->bridge, f->epoll, TAG_WAYS);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	host_is_gone = false;
	host_end_count = 0;
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	f->port = free_port();
	*state = f;
	return open_ways(f, 0);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < host_end_count; i++)
		fd_close(&host_ends[i].fd);
	for (unsigned int i = 0; i < f->ways.listener_count; i++)
		fd_close(&f->ways.listeners[i].fd);
	for (unsigned int i = 0; i < LIMIT_RELAY_CONNECTIONS; i++) {
		if (f->bridge.connections[i].state == BRIDGE_FREE)
			continue;
		fd_close(&f->bridge.connections[i].client);
		fd_close(&f->bridge.connections[i].host);
		flow_free(&f->bridge.connections[i].up);
		flow_free(&f->bridge.connections[i].down);
	}
	fd_close(&f->ways.host);
	fd_close(&f->names);
	fd_close(&f->epoll);
	free(f);
	return 0;
}

/* The host will answer the next question so. */
static void prepare_answer(struct fixture *f, unsigned int count, uint16_t port)
{
	struct names_answer answer = {.port_count = (uint8_t)count, .ports = {port}};
	uint8_t bytes[NAMES_ANSWER_BYTES];
	size_t length = names_encode_answer(&answer, bytes);

	assert_int_equal(send(f->names, bytes, length, 0), length);
}

static void assert_asked(struct fixture *f, const char *name)
{
	uint8_t bytes[NAMES_QUESTION_BYTES];
	ssize_t length = recv(f->names, bytes, sizeof(bytes), MSG_DONTWAIT);

	assert_int_equal(length, 1 + strlen(name));
	assert_int_equal(bytes[0], strlen(name));
	assert_memory_equal(bytes + 1, name, strlen(name));
}

static struct in_addr learn(struct fixture *f, const char *name)
{
	struct in_addr address = {0};

	prepare_answer(f, 1, f->port);
	assert_true(ways_find(&f->ways, name, &address));
	assert_asked(f, name);
	return address;
}

static int connect_to(struct fixture *f, struct in_addr address)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(f->port), .sin_addr = address};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	turn(f);
	return fd;
}

/* The host's end of the last connection; what the guest said at its start must be this. */
static int take_request(const char *name, uint16_t port)
{
	struct relay_request request;
	uint8_t bytes[RELAY_REQUEST_BYTES];
	ssize_t length;
	int fd = host_ends[host_end_count - 1].fd;

	assert_int_equal(host_ends[host_end_count - 1].port, SESSION_PORT_RELAY);
	length = recv(fd, bytes, RELAY_HEADER_BYTES + strlen(name), MSG_DONTWAIT);
	assert_int_equal(length, RELAY_HEADER_BYTES + strlen(name));
	assert_int_equal(relay_decode_request(bytes, (size_t)length, &request), length);
	assert_string_equal(request.name, name);
	assert_int_equal(request.port, port);
	return fd;
}

static void names_have_addresses(void **state)
{
	struct fixture *f = *state;
	struct in_addr first = learn(f, "a.example"), second = learn(f, "b.example"), again;
	char name[DNS_NAME_BYTES];

	assert_int_equal(ntohl(first.s_addr) >> 16, 0x7f4d);
	assert_int_not_equal(first.s_addr, second.s_addr);
	/* Known names are not asked for again. */
	assert_true(ways_find(&f->ways, "a.example", &again));
	assert_int_equal(first.s_addr, again.s_addr);
	assert_true(ways_find_address(&f->ways, second, name));
	assert_string_equal(name, "b.example");
	assert_false(ways_find_address(&f->ways, (struct in_addr){htonl(INADDR_LOOPBACK)}, name));
	prepare_answer(f, 0, 0);
	assert_false(ways_find(&f->ways, "evil.example", &again));
	assert_asked(f, "evil.example");
	/* An address that is allowed is no name. */
	prepare_answer(f, 0, 0);
	assert_false(ways_find(&f->ways, "127.0.0.1", &again));
}

static void nobody_to_ask(void **state)
{
	struct fixture *f = *state;
	struct in_addr address;

	fd_close(&f->names);
	assert_false(ways_find(&f->ways, "a.example", &address));
	assert_false(ways_find(&f->ways, "a.example", &address));
	host_is_gone = true;
	assert_int_not_equal(ways_open(&f->ways, &f->bridge, f->epoll, TAG_WAYS), 0);
	assert_false(ways_find(&f->ways, "a.example", &address));
}

static void bytes_both_ways(void **state)
{
	struct fixture *f = *state;
	char bytes[100];
	int client = connect_to(f, learn(f, "a.example")), host;

	/* What the program says goes on before the host has answered. */
	assert_int_equal(send(client, "hello", 5, 0), 5);
	turn(f);
	host = take_request("a.example", f->port);
	assert_int_equal(recv(host, bytes, sizeof(bytes), MSG_DONTWAIT), 5);
	assert_int_equal(send(host, "\0world", 6, 0), 6);
	turn(f);
	assert_int_equal(recv(client, bytes, sizeof(bytes), MSG_DONTWAIT), 5);
	assert_memory_equal(bytes, "world", 5);
	/* Each direction ends by itself. */
	shutdown(client, SHUT_WR);
	turn(f);
	assert_int_equal(recv(host, bytes, sizeof(bytes), MSG_DONTWAIT), 0);
	assert_int_equal(send(host, "late", 4, 0), 4);
	shutdown(host, SHUT_WR);
	turn(f);
	assert_int_equal(recv(client, bytes, sizeof(bytes), MSG_DONTWAIT), 4);
	assert_int_equal(recv(client, bytes, sizeof(bytes), MSG_DONTWAIT), 0);
	assert_int_equal(f->bridge.in_use, 0);
	close(client);
}

/* An address that is allowed as such is told as text. */
static void by_address(void **state)
{
	struct fixture *f = *state;
	int client = connect_to(f, (struct in_addr){htonl(INADDR_LOOPBACK)});

	take_request("127.0.0.1", f->port);
	close(client);
}

/* A program whose connection is refused, or whose server is lost, sees that. */
static void refusals(void **state)
{
	struct fixture *f = *state;
	struct in_addr address = learn(f, "a.example");
	char bytes[10];

	for (unsigned int i = 0; i < 3; i++) {
		int client = connect_to(f, address);
		int host = take_request("a.example", f->port);

		if (i < 2)
			assert_int_equal(send(host, i ? "\2" : "\1", 1, 0), 1);
		fd_close(&host_ends[host_end_count - 1].fd);
		turn(f);
		assert_int_equal(recv(client, bytes, sizeof(bytes), MSG_DONTWAIT), -1);
		assert_int_equal(errno, ECONNRESET);
		assert_int_equal(f->bridge.in_use, 0);
		close(client);
	}
	host_is_gone = true;
	close(connect_to(f, address));
	assert_int_equal(f->bridge.in_use, 0);
}

/* A host that does not read stops the program, and nothing grows. */
static void back_pressure(void **state)
{
	struct fixture *f = *state;
	static char bytes[65536];
	int client = connect_to(f, learn(f, "a.example")), host;
	size_t sent = 0, received = 0;
	ssize_t count;

	host = take_request("a.example", f->port);
	assert_int_equal(send(host, "\0", 1, 0), 1);
	assert_int_equal(fd_set_nonblocking(client, 1), 0);
	for (unsigned int idle = 0; idle < 3;) {
		count = send(client, bytes, sizeof(bytes), MSG_NOSIGNAL);
		sent += count > 0 ? (size_t)count : 0;
		idle = count > 0 ? 0 : idle + 1;
		turn(f);
	}
	assert_true(sent < 32 << 20);
	assert_true(f->bridge.connections[0].up.length <= LIMIT_RELAY_BUFFER_BYTES);
	shutdown(client, SHUT_WR);
	while ((count = recv(host, bytes, sizeof(bytes), MSG_DONTWAIT)) != 0) {
		received += count > 0 ? (size_t)count : 0;
		turn(f);
	}
	assert_int_equal(received, sent);
	close(client);
}

static void published(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), host, client;
	char bytes[100];
	uint16_t port;

	assert_int_equal(bind(server, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(server, 5), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&address, &length), 0);
	port = ntohs(address.sin_port);
	bridge_offer(&f->bridge, 2);
	turn(f);
	assert_int_equal(host_end_count, 2);
	host = take_request("", 0);
	/* Somebody comes: the guest's server is reached, and another stream waits in its place. */
	memcpy(bytes, (uint8_t[]){RELAY_CONNECTED, (uint8_t)port, (uint8_t)(port >> 8)}, 3);
	memcpy(bytes + 3, "GET", 3);
	assert_int_equal(send(host, bytes, 6, 0), 6);
	turn(f);
	assert_int_equal(host_end_count, 3);
	client = accept(server, NULL, NULL);
	assert_int_equal(recv(client, bytes, sizeof(bytes), 0), 3);
	assert_int_equal(send(client, "page", 4, 0), 4);
	close(client);
	turn(f);
	assert_int_equal(recv(host, bytes, sizeof(bytes), MSG_DONTWAIT), 4);
	/* Nobody listens there: the stream ends, and another waits. */
	close(server);
	turn(f);
	host = host_ends[host_end_count - 1].fd;
	take_request("", 0);
	memcpy(bytes, (uint8_t[]){RELAY_CONNECTED, (uint8_t)port, (uint8_t)(port >> 8)}, 3);
	assert_int_equal(send(host, bytes, 3, 0), 3);
	turn(f);
	assert_int_equal(recv(host, bytes, sizeof(bytes), MSG_DONTWAIT), 0);
	assert_int_equal(f->bridge.offers, 2);
}

/* More names than there is room for: the last are not known. */
static void many_names(void **state)
{
	struct fixture *f = *state;
	struct in_addr address;
	unsigned int known = 0;
	char name[32];

	for (unsigned int i = 0; i < WAYS_NAMES + 20; i++) {
		snprintf(name, sizeof(name), "n%u.example", i);
		prepare_answer(f, 1, f->port);
		known += ways_find(&f->ways, name, &address);
		assert_asked(f, name);
	}
	assert_int_equal(known, WAYS_NAMES - 1); /* and the address */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_have_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_to_ask, setup, teardown),
		cmocka_unit_test_setup_teardown(bytes_both_ways, setup, teardown),
		cmocka_unit_test_setup_teardown(by_address, setup, teardown),
		cmocka_unit_test_setup_teardown(refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(back_pressure, setup, teardown),
		cmocka_unit_test_setup_teardown(published, setup, teardown),
		cmocka_unit_test_setup_teardown(many_names, setup, teardown),
	};

	signal(SIGPIPE, SIG_IGN); /* init has all signals blocked */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

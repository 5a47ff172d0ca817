/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's proxy for programs that insist on one. The host is here; what would be vsock is a
 * pair of sockets. */
#include "guest/connect_proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "guest/vsock.h"
#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"

/* In place of guest/vsock.c: the last connection's other end. */
static int host_end = -1;
static bool host_is_gone;

int vsock_connect_begin(unsigned int port)
{
	int pair[2];

	(void)port;
	if (host_is_gone)
		return -ECONNRESET;
	if (fd_create_socket_pair(SOCK_STREAM | SOCK_NONBLOCK, pair) < 0)
		abort();
	fd_close(&host_end);
	host_end = pair[1];
	return pair[0];
}

int vsock_connect_finish(int fd)
{
	(void)fd;
	return 0;
}

enum { TAG_BRIDGE, TAG_PROXY = BRIDGE_TAGS };

struct fixture {
	int epoll;
	int client;
	struct sockaddr_in address;
	struct bridge bridge;
	struct connect_proxy proxy;
};

static void turn(struct fixture *f)
{
	struct epoll_event events[64];
	int count = 1;

	for (int i = 0; i < 20 && count > 0; i++) {
		count = epoll_wait(f->epoll, events, ARRAY_SIZE(events), 5);
		for (int j = 0; j < count; j++) {
			const uint32_t tag = events[j].data.u32;

			if (tag >= TAG_PROXY)
				connect_proxy_handle(&f->proxy, tag - TAG_PROXY);
			else
				bridge_handle(&f->bridge, tag, events[j].events);
		}
		bridge_do_rest(&f->bridge);
	}
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	socklen_t length = sizeof(f->address);

	if (!f)
		return -1;
	host_is_gone = false;
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	f->address = (struct sockaddr_in){.sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	bridge_init(&f->bridge, f->epoll, TAG_BRIDGE);
	if (connect_proxy_open(&f->proxy, &f->bridge, &f->address, f->epoll, TAG_PROXY) < 0 ||
	    getsockname(f->proxy.listener, (struct sockaddr *)&f->address, &length) < 0)
		return -1;
	f->client = -1;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fd_close(&f->client);
	fd_close(&host_end);
	turn(f);
	for (unsigned int i = 0; i < CONNECT_PROXY_CLIENTS; i++)
		fd_close(&f->proxy.clients[i].fd);
	for (unsigned int i = 0; i < LIMIT_RELAY_CONNECTIONS; i++)
		assert_int_equal(f->bridge.connections[i].state, BRIDGE_FREE);
	fd_close(&f->proxy.listener);
	fd_close(&f->epoll);
	free(f);
	return 0;
}

static int connect_client(const struct fixture *f)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&f->address, sizeof(f->address)), 0);
	return fd;
}

static void say(struct fixture *f, const char *text)
{
	if (f->client < 0)
		f->client = connect_client(f);
	assert_int_equal(send(f->client, text, strlen(text), 0), strlen(text));
	turn(f);
}

static void expect_answer(const struct fixture *f, const char *begin, const char *end)
{
	char text[1024] = "";
	ssize_t count = recv(f->client, text, sizeof(text) - 1, MSG_DONTWAIT);

	assert_true(count > 0);
	assert_memory_equal(text, begin, strlen(begin));
	assert_true((size_t)count >= strlen(end));
	assert_string_equal(text + count - strlen(end), end);
}

static void expect_end(const struct fixture *f)
{
	char byte;

	assert_int_equal(recv(f->client, &byte, 1, MSG_DONTWAIT), 0);
}

/* What the host is asked for, and what follows. */
static void expect_request(const char *name, uint16_t port, const char *rest)
{
	struct relay_request request;
	uint8_t bytes[512];
	ssize_t count = recv(host_end, bytes, sizeof(bytes), MSG_DONTWAIT);
	int length;

	assert_true(count > 0);
	length = relay_decode_request(bytes, (size_t)count, &request);
	assert_true(length > 0);
	assert_string_equal(request.name, name);
	assert_int_equal(request.port, port);
	assert_int_equal(count - length, strlen(rest));
	assert_memory_equal(bytes + length, rest, strlen(rest));
}

static void answer(struct fixture *f, const char *bytes, size_t length)
{
	assert_int_equal(send(host_end, bytes, length, MSG_NOSIGNAL), length);
	turn(f);
}

static void test_connects(void **state)
{
	struct fixture *f = *state;

	say(f, "CONNECT api.exa");
	assert_int_equal(host_end, -1);
	say(f, "mple.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\nX: y\r\n\r\nhello");
	expect_request("api.example.com", 443, "hello");
	/* What the server says at once comes behind the answer. */
	answer(f, "\0greeting", 9);
	expect_answer(f, "HTTP/1.1 200 ", "\r\n\r\ngreeting");
	say(f, "more");
	{
		char bytes[8] = "";

		assert_int_equal(recv(host_end, bytes, sizeof(bytes), MSG_DONTWAIT), 4);
		assert_string_equal(bytes, "more");
	}
	shutdown(host_end, SHUT_WR);
	turn(f);
	expect_end(f);
}

static void test_denied(void **state)
{
	struct fixture *f = *state;

	say(f, "CONNECT evil.test:443 HTTP/1.1\r\n\r\n");
	expect_request("evil.test", 443, "");
	answer(f, (const char[]){RELAY_DENIED}, 1);
	expect_answer(f, "HTTP/1.1 403 ", "\r\n\r\nmvagent does not allow it\n");
	expect_end(f);
}

static void test_failed(void **state)
{
	struct fixture *f = *state;

	say(f, "CONNECT api.test:443 HTTP/1.1\r\n\r\n");
	answer(f, (const char[]){RELAY_FAILED}, 1);
	expect_answer(f, "HTTP/1.1 502 ", "\r\n\r\n");
	fd_close(&f->client);
	host_is_gone = true;
	say(f, "CONNECT api.test:443 HTTP/1.1\r\n\r\n");
	expect_answer(f, "HTTP/1.1 502 ", "\r\n\r\n");
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *status;
	} cases[] = {
		{"GET http://api.test/ HTTP/1.1\r\n\r\n", "HTTP/1.1 501 "},
		{"G", "HTTP/1.1 501 "},
		{"CONNECT api.test HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
	};
	struct fixture *f = *state;
	char *long_head = malloc(CONNECT_PROXY_HEAD_BYTES + 1);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		say(f, cases[i].text);
		expect_answer(f, cases[i].status, "needs none\n");
		expect_end(f);
		fd_close(&f->client);
	}
	assert_non_null(long_head);
	memset(long_head, 'x', CONNECT_PROXY_HEAD_BYTES);
	memcpy(long_head, "CONNECT ", 8);
	long_head[CONNECT_PROXY_HEAD_BYTES] = '\0';
	say(f, long_head);
	free(long_head);
	expect_answer(f, "HTTP/1.1 431 ", "needs none\n");
	assert_int_equal(host_end, -1);
}

/* Clients that connect and say nothing do not keep others away. */
static void test_idle_clients(void **state)
{
	struct fixture *f = *state;
	int idle[CONNECT_PROXY_CLIENTS + 5];

	for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
		idle[i] = connect_client(f);
		turn(f);
	}
	say(f, "CONNECT api.test:443 HTTP/1.1\r\n\r\n");
	expect_request("api.test", 443, "");
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
		fd_close(&idle[i]);
}

static int read_head(const char *text, struct connect_proxy_target *target)
{
	return connect_proxy_read(text, strlen(text), target);
}

static void test_heads(void **state)
{
	static const struct {
		const char *text, *name;
		uint16_t port;
	} good[] = {
		{"CONNECT a.test:1 HTTP/1.0\r\n\r\n", "a.test", 1},
		{"CONNECT 10.0.0.5:5432 HTTP/1.1\r\nA: b\r\n\r\n", "10.0.0.5", 5432},
		{"CONNECT [2001:db8::1]:65535 HTTP/1.1\r\n\r\n", "2001:db8::1", 65535},
	};
	static const char *const bad[] = {
		"CONNECT :443 HTTP/1.1\r\n\r\n",
		"CONNECT a: HTTP/1.1\r\n\r\n",
		"CONNECT a:0 HTTP/1.1\r\n\r\n",
		"CONNECT a:65536 HTTP/1.1\r\n\r\n",
		"CONNECT a:000443 HTTP/1.1\r\n\r\n",
		"CONNECT a:+443 HTTP/1.1\r\n\r\n",
		"CONNECT []:443 HTTP/1.1\r\n\r\n",
		"CONNECT [::1:443 HTTP/1.1\r\n\r\n",
		"CONNECT a:443\r\n\r\n",
		"CONNECT a:443 HTTP/2\r\n\r\n",
		"CONNECT a:443 HTTP/1.1 \r\n\r\n",
		"CONNECT a:443 XXXX/1.1\r\n\r\n",
		"CONNECT \r\n\r\n",
	};
	struct connect_proxy_target target;
	char text[RELAY_NAME_BYTES + 64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(read_head(good[i].text, &target), strlen(good[i].text));
		assert_string_equal(target.name, good[i].name);
		assert_int_equal(target.port, good[i].port);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (read_head(bad[i], &target) != -400)
			fail_msg("taken: %s", bad[i]);
	}
	for (unsigned int length = RELAY_NAME_BYTES; length <= RELAY_NAME_BYTES + 1; length++) {
		snprintf(text, sizeof(text), "CONNECT %0*d:443 HTTP/1.1\r\n\r\n", (int)length, 0);
		assert_int_equal(read_head(text, &target),
				 length > RELAY_NAME_BYTES ? -400 : (int)strlen(text));
	}
	assert_int_equal(read_head("CON", &target), 0);
	assert_int_equal(read_head("\r\n\r\n", &target), -501);
	assert_int_equal(connect_proxy_read("CONNECT a\0b:443 HTTP/1.1\r\n\r\n", 28, &target),
			 -400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connects, setup, teardown),
		cmocka_unit_test_setup_teardown(test_denied, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_clients, setup, teardown),
		cmocka_unit_test(test_heads),
	};

	return cmocka_run_group_tests_name("guest proxy", tests, NULL, NULL);
}

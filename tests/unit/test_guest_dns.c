/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's resolver: what it answers, and by real sockets. */
#include "guest/resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { A = 1, NS = 2, PTR = 12, AAAA = 28, SVCB = 64, HTTPS = 65, ANY = 255 };
enum { NOERROR, FORMERR, NXDOMAIN = 3, NOTIMP = 4 };

#define KNOWN_ADDRESS 0x7f4d0005U /* 127.77.0.5 */

static bool find(void *context, const char *name, struct in_addr *address)
{
	(void)context;
	address->s_addr = htonl(KNOWN_ADDRESS);
	return strcmp(name, "api.example.com") == 0;
}

static bool find_address(void *context, struct in_addr address, char name[DNS_NAME_BYTES])
{
	(void)context;
	strcpy(name, "api.example.com");
	return address.s_addr == htonl(KNOWN_ADDRESS);
}

static const struct dns_names names = {.find = find, .find_address = find_address};

/* A request: @name is text, whose dots part labels. Returns its length. */
static size_t ask(uint8_t request[512], const char *name, unsigned int type)
{
	static const uint8_t header[12] = {0xab, 0xcd, 1, 0, 0, 1};
	size_t length = sizeof(header);

	memcpy(request, header, sizeof(header));
	while (*name) {
		size_t label = strcspn(name, ".");

		request[length++] = (uint8_t)label;
		memcpy(request + length, name, label);
		length += label;
		name += label + (name[label] == '.');
	}
	request[length++] = 0;
	request[length++] = 0;
	request[length++] = (uint8_t)type;
	request[length++] = 0;
	request[length++] = 1;
	return length;
}

struct answer {
	unsigned int code, count;
	size_t length, question_end;
	uint8_t bytes[DNS_RESPONSE_BYTES];
};

static struct answer answer_to(const char *name, unsigned int type)
{
	struct answer answer = {0};
	uint8_t request[512];
	size_t length = ask(request, name, type);

	answer.length = dns_answer(&names, request, length, answer.bytes);
	assert_true(answer.length >= length);
	assert_memory_equal(answer.bytes, "\xab\xcd", 2);
	assert_int_equal(answer.bytes[2], 0x85);        /* response, authoritative, as desired */
	assert_int_equal(answer.bytes[3] & 0xf0, 0x80); /* recursion is available */
	assert_memory_equal(answer.bytes + 12, request + 12, length - 12);
	answer.code = answer.bytes[3] & 0xf;
	answer.count = answer.bytes[7];
	answer.question_end = length;
	return answer;
}

static void assert_answer(const char *name, unsigned int type, unsigned int code,
			  unsigned int count)
{
	struct answer answer = answer_to(name, type);

	assert_int_equal(answer.code, code);
	assert_int_equal(answer.count, count);
}

static void known_names(void **state)
{
	static const uint8_t record[] = {0xc0, 12, 0, A, 0, 1, 0, 0, 0, 60, 0, 4, 127, 77, 0, 5};
	struct answer answer = answer_to("API.Example.COM", A);

	(void)state;
	assert_int_equal(answer.code, NOERROR);
	assert_int_equal(answer.count, 1);
	assert_int_equal(answer.length, answer.question_end + sizeof(record));
	assert_memory_equal(answer.bytes + answer.question_end, record, sizeof(record));
	assert_answer("api.example.com", ANY, NOERROR, 1);
	/* There is such a name, but nothing of that kind: programs go on with the address. */
	assert_answer("api.example.com", AAAA, NOERROR, 0);
	assert_answer("api.example.com", HTTPS, NOERROR, 0);
	assert_answer("api.example.com", SVCB, NOERROR, 0);
	assert_answer("api.example.com", NS, NOERROR, 0);
}

static void unknown_names(void **state)
{
	(void)state;
	assert_answer("example.com", A, NXDOMAIN, 0);
	assert_answer("x.api.example.com", A, NXDOMAIN, 0);
	assert_answer("api.example.com.evil.org", HTTPS, NXDOMAIN, 0);
	assert_answer("", A, NXDOMAIN, 0);
	assert_answer("api.example.co m", A, NXDOMAIN, 0);
	assert_answer("api.example.c\xffm", A, NXDOMAIN, 0);
}

static void localhost(void **state)
{
	(void)state;
	assert_answer("localhost", A, NOERROR, 1);
	assert_answer("any.LOCALHOST", AAAA, NOERROR, 1);
	assert_answer("localhost", HTTPS, NOERROR, 0);
	assert_answer("notlocalhost", A, NXDOMAIN, 0);
}

static void addresses(void **state)
{
	struct answer answer = answer_to("5.0.77.127.in-addr.arpa", PTR);

	(void)state;
	assert_int_equal(answer.count, 1);
	assert_memory_equal(answer.bytes + answer.length - 17, "\3api\7example\3com", 17);
	assert_answer("1.0.0.127.in-addr.arpa", PTR, NOERROR, 1);
	assert_answer("6.0.77.127.in-addr.arpa", PTR, NXDOMAIN, 0);
	assert_answer("5.0.77.127.in-addr.arpa.org", PTR, NXDOMAIN, 0);
	assert_answer("300.0.77.127.in-addr.arpa", PTR, NXDOMAIN, 0);
}

static unsigned int code_of(const uint8_t *request, size_t length)
{
	uint8_t response[DNS_RESPONSE_BYTES];

	assert_true(dns_answer(&names, request, length, response) >= 12);
	return response[3] & 0xf;
}

static void what_is_no_question(void **state)
{
	uint8_t request[512], response[DNS_RESPONSE_BYTES];
	size_t length = ask(request, "api.example.com", A);

	(void)state;
	assert_int_equal(dns_answer(&names, request, 11, response), 0);
	for (size_t cut = 12; cut < length; cut++)
		assert_int_equal(code_of(request, cut), FORMERR);
	request[5] = 2; /* questions */
	assert_int_equal(code_of(request, length), FORMERR);
	request[5] = 1;
	request[12] = 0xc0; /* a pointer */
	assert_int_equal(code_of(request, length), FORMERR);
	request[12] = 3;
	request[2] = 0x28; /* an update */
	assert_int_equal(code_of(request, length), NOTIMP);
	request[2] = 0x81; /* a response */
	assert_int_equal(dns_answer(&names, request, length, response), 0);
	/* A dot within a label does not make it another name. */
	request[2] = 1;
	memcpy(request + 12,
	       "\x0b"
	       "api.example\3com",
	       16);
	memmove(request + 28, "\0\0\1\0\1", 5);
	assert_int_equal(code_of(request, 33), NXDOMAIN);
}

static void longest_name(void **state)
{
	char name[260] = "";
	uint8_t request[512];

	(void)state;
	for (int i = 0; i < 126; i++)
		strcat(name, "a.");
	strcat(name, "a"); /* 253 characters, 255 bytes on the wire */
	assert_int_equal(code_of(request, ask(request, name, A)), NXDOMAIN);
	strcat(name, "a");
	assert_int_equal(code_of(request, ask(request, name, A)), FORMERR);
}

struct fixture {
	struct resolver resolver;
	int epoll;
	in_port_t port;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct sockaddr_in address;
	socklen_t length = sizeof(address);

	assert_non_null(f);
	/* Any free port, the same for both. */
	for (in_port_t port = 20053; port < 21000; port++) {
		if (resolver_bind(&f->resolver, port) == 0)
			break;
		resolver_close(&f->resolver);
	}
	assert_int_equal(getsockname(f->resolver.tcp, (struct sockaddr *)&address, &length), 0);
	f->port = ntohs(address.sin_port);
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(resolver_open(&f->resolver, &names, f->epoll, 7), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	resolver_close(&f->resolver);
	close(f->epoll);
	free(f);
	return 0;
}

static void turn(struct fixture *f)
{
	struct epoll_event events[32];
	int count = epoll_wait(f->epoll, events, 32, 50);

	for (int i = 0; i < count; i++)
		resolver_handle(&f->resolver, events[i].data.u32 - 7);
}

static int connect_to(struct fixture *f, int type)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(f->port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void by_udp(void **state)
{
	struct fixture *f = *state;
	uint8_t request[512], response[1024];
	size_t length = ask(request, "api.example.com", A);
	int fd = connect_to(f, SOCK_DGRAM);

	assert_int_equal(send(fd, request, length, 0), length);
	turn(f);
	assert_int_equal(recv(fd, response, sizeof(response), MSG_DONTWAIT), length + 16);
	close(fd);
}

/* Two questions, byte by byte, on one connection. */
static void by_tcp(void **state)
{
	struct fixture *f = *state;
	uint8_t request[2 + 512], response[1024];
	size_t length = ask(request + 2, "api.example.com", A);
	int fd = connect_to(f, SOCK_STREAM);

	request[0] = 0;
	request[1] = (uint8_t)length;
	turn(f);
	for (int i = 0; i < 2; i++) {
		for (size_t at = 0; at < length + 2; at++) {
			assert_int_equal(send(fd, request + at, 1, 0), 1);
			turn(f);
		}
		assert_int_equal(recv(fd, response, sizeof(response), MSG_DONTWAIT),
				 2 + length + 16);
	}
	close(fd);
	turn(f);
}

/* Clients that connect and say nothing do not keep others from their answers. */
static void silent_clients(void **state)
{
	struct fixture *f = *state;
	int fds[3 * RESOLVER_CLIENTS];
	unsigned int open = 0;

	for (unsigned int i = 0; i < 3 * RESOLVER_CLIENTS; i++) {
		fds[i] = connect_to(f, SOCK_STREAM);
		turn(f);
	}
	by_tcp(state);
	by_udp(state);
	for (unsigned int i = 0; i < 3 * RESOLVER_CLIENTS; i++) {
		uint8_t byte;

		open += recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
		close(fds[i]);
	}
	assert_in_range(open, 1, RESOLVER_CLIENTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_names),
		cmocka_unit_test(unknown_names),
		cmocka_unit_test(localhost),
		cmocka_unit_test(addresses),
		cmocka_unit_test(what_is_no_question),
		cmocka_unit_test(longest_name),
		cmocka_unit_test_setup_teardown(by_udp, setup, teardown),
		cmocka_unit_test_setup_teardown(by_tcp, setup, teardown),
		cmocka_unit_test_setup_teardown(silent_clients, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

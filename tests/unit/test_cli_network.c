/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's part in what a guest reaches: answers about names, and what is told of denials.
 */
#include "vmm/cli/network_watch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "tests/unit/cli_capture.h"
#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/cli/run_network.h"
#include "vmm/wire/relay.h"

struct fixture {
	struct run_network network;
	struct network_report report;
	struct network_watch watch;
	int guest;
	int relay;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int names[2], events[2];

	if (fd_create_socket_pair(SOCK_STREAM, names) ||
	    fd_create_socket_pair(SOCK_SEQPACKET, events))
		return -1;
	assert_int_equal(run_network_apply(&f->network, NETWORK_ALLOW, "*.example.com"), 0);
	assert_int_equal(run_network_apply(&f->network, NETWORK_ALLOW, "10.0.0.5:5432"), 0);
	assert_int_equal(run_network_apply(&f->network, NETWORK_ALLOW, "[fd00::1]:80"), 0);
	assert_int_equal(run_network_apply(&f->network, NETWORK_DENY, "secret.example.com"), 0);
	assert_int_equal(run_network_apply(&f->network, NETWORK_PUBLISH, "8080:3000"), 0);
	f->watch = (struct network_watch){.settings = &f->network.settings,
					  .report = &f->report,
					  .names_fd = names[0],
					  .event_fd = events[0]};
	f->guest = names[1];
	f->relay = events[1];
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fd_close(&f->watch.names_fd);
	fd_close(&f->watch.event_fd);
	fd_close(&f->guest);
	fd_close(&f->relay);
	run_network_free(&f->network);
	free(f);
	return 0;
}

static void greeting(void **state)
{
	struct fixture *f = *state;
	struct names_greeting greeting;
	uint8_t bytes[NAMES_GREETING_BYTES];
	ssize_t length;

	network_watch_begin(&f->watch);
	length = recv(f->guest, bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_true(length > 0);
	assert_int_equal(names_decode_greeting(bytes, (size_t)length, &greeting), length);
	assert_true(greeting.offers > 0);
	assert_false(greeting.proxy);
	assert_int_equal(greeting.address_count, 2);
	assert_int_equal(greeting.addresses[0].version, 4);
	assert_int_equal(greeting.addresses[0].port, 5432);
	assert_int_equal(greeting.addresses[1].version, 6);
	assert_int_equal(greeting.addresses[1].port, 80);
	f->watch.proxy = true;
	network_watch_begin(&f->watch);
	length = recv(f->guest, bytes, sizeof(bytes), MSG_DONTWAIT);
	assert_int_equal(names_decode_greeting(bytes, (size_t)length, &greeting), length);
	assert_true(greeting.proxy);
}

static void ask(struct fixture *f, const char *name, size_t length)
{
	uint8_t bytes[256] = {(uint8_t)length};

	memcpy(bytes + 1, name, length);
	assert_int_equal(send(f->guest, bytes, length + 1, 0), length + 1);
}

static unsigned int answered_ports(struct fixture *f)
{
	struct names_answer answer;
	uint8_t bytes[NAMES_ANSWER_BYTES];
	ssize_t length = recv(f->guest, bytes, sizeof(bytes), MSG_DONTWAIT);

	assert_true(length > 0);
	assert_int_equal(names_decode_answer(bytes, (size_t)length, &answer), length);
	return answer.port_count;
}

static unsigned int ports_of(struct fixture *f, const char *name)
{
	ask(f, name, strlen(name));
	network_watch_read_names(&f->watch);
	return answered_ports(f);
}

static void answers(void **state)
{
	struct fixture *f = *state;
	struct capture capture;

	capture_begin(&capture);
	assert_int_equal(ports_of(f, "a.example.com"), 2);
	assert_int_equal(ports_of(f, "secret.example.com"), 0);
	assert_int_equal(ports_of(f, "evil.org"), 0);
	assert_int_equal(ports_of(f, "EVIL.org."), 0);
	assert_int_equal(ports_of(f, "what is this\x1b[0m"), 0);
	assert_int_equal(ports_of(f, ""), 0);
	ask(f, "evil.org\0.example.com", 21);
	network_watch_read_names(&f->watch);
	assert_int_equal(answered_ports(f), 0);
	capture_end(&capture);
	assert_non_null(strstr(capture.text,
			       "secret.example.com is denied by --deny secret.example.com\n"));
	assert_non_null(
		strstr(capture.text, "evil.org is not allowed; --allow evil.org would allow it\n"));
	assert_null(strchr(capture.text, '\x1b'));
	assert_int_equal(f->report.denied.count, 2); /* once each, and what is a name */
}

/* Byte by byte, and many at once: whatever comes in pieces has its answers in order. */
static void pieces(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[NAMES_ANSWER_BYTES * 200];
	static const uint8_t question[] = "\x0d"
					  "a.example.com";

	for (size_t i = 0; i < sizeof(question) - 1; i++) {
		assert_int_equal(recv(f->guest, bytes, sizeof(bytes), MSG_DONTWAIT), -1);
		assert_int_equal(send(f->guest, question + i, 1, 0), 1);
		network_watch_read_names(&f->watch);
	}
	assert_int_equal(answered_ports(f), 2);
	for (unsigned int i = 0; i < 100; i++)
		ask(f, "a.example.com", 13);
	for (unsigned int i = 0; i < 20; i++)
		network_watch_read_names(&f->watch);
	assert_int_equal(recv(f->guest, bytes, sizeof(bytes), MSG_DONTWAIT), 500);
}

/* A guest that asks for ever new names, and does not read, costs no more than a table. */
static void flood(void **state)
{
	struct fixture *f = *state;
	char name[32];

	f->watch.hold = true;
	for (unsigned int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%u.test", i);
		assert_int_equal(ports_of(f, name), 0);
	}
	assert_int_equal(f->report.denied.count, NETWORK_REPORT_SENTENCES);
	assert_int_equal(f->report.denied.untold, 1000 - NETWORK_REPORT_SENTENCES);
	for (unsigned int i = 0; i < 100000 && f->watch.names_fd >= 0; i++) {
		uint8_t bytes[] = "\1x\1x\1x\1x\1x\1x\1x\1x";

		if (send(f->guest, bytes, sizeof(bytes) - 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
		    errno == EPIPE)
			break;
		network_watch_read_names(&f->watch);
	}
	assert_int_equal(f->watch.names_fd, -1);
}

static void tell(struct fixture *f, enum relay_event_type type, uint16_t port, const char *text)
{
	struct relay_event event = {
		.type = type, .port = port, .sent = 5, .received = 7, .host = "api.\x1btest"};

	snprintf(event.text, sizeof(event.text), "%s", text);
	assert_int_equal(send(f->relay, &event, sizeof(event), 0), sizeof(event));
	network_watch_read_events(&f->watch);
}

static void events(void **state)
{
	struct fixture *f = *state;
	struct capture capture;

	f->watch.hold = true;
	capture_begin(&capture);
	tell(f, RELAY_EVENT_ENDED, 443, "");
	tell(f, RELAY_EVENT_ENDED, 443, "");
	tell(f, RELAY_EVENT_FAILED, 443, "nobody is \x1b there");
	tell(f, RELAY_EVENT_FAILED, 443, "nobody is \x1b there");
	tell(f, RELAY_EVENT_DENIED, 22, "no \x1b[2J way");
	capture_end(&capture);
	assert_string_equal(capture.text, ""); /* the terminal is the command's */
	assert_int_equal(f->report.way_count, 1);
	assert_string_equal(f->report.ways[0].host, "api.?test");
	assert_int_equal(f->report.ways[0].connections, 2);
	assert_int_equal(f->report.ways[0].failures, 2);
	assert_int_equal(f->report.ways[0].sent, 20);
	capture_begin(&capture);
	network_watch_end(&f->watch);
	capture_end(&capture);
	assert_non_null(strstr(capture.text, "no ?[2J way\n"));
	assert_non_null(strstr(capture.text, "nobody is ? there\n"));
	/* What is not one of its packets ends it. */
	assert_int_equal(send(f->relay, "x", 1, 0), 1);
	network_watch_read_events(&f->watch);
	assert_int_equal(f->watch.event_fd, -1);
}

/* A host that is allowed and cannot be reached: once for each reason, also when a program does not
 * stop trying, and for so many hosts. */
static void failures(void **state)
{
	struct fixture *f = *state;
	struct capture capture;

	capture_begin(&capture);
	for (unsigned int i = 0; i < 100; i++)
		tell(f, RELAY_EVENT_FAILED, 443, "refused");
	capture_end(&capture);
	capture_expect_sentence(&capture, "refused");
	assert_int_equal(f->report.failed.count, 1);
	assert_int_equal(f->report.ways[0].failures, 100);
	capture_begin(&capture);
	for (uint16_t i = 0; i < 99; i++)
		tell(f, RELAY_EVENT_FAILED, i, "refused");
	capture_end(&capture);
	assert_int_equal(f->report.failed.count, NETWORK_REPORT_SENTENCES);
	capture_begin(&capture);
	network_watch_end(&f->watch);
	capture_end(&capture);
	capture_expect_sentence(&capture, "36 more connections to hosts that are allowed failed");
	assert_int_equal(f->report.denied.count, 0);
}

/* What the run may move is used up: it is said once, and when the terminal is the user's. */
static void bytes_used_up(void **state)
{
	struct fixture *f = *state;
	struct capture capture;

	f->watch.hold = true;
	capture_begin(&capture);
	tell(f, RELAY_EVENT_SPENT, 0, "the 5 bytes are \x1b used up");
	capture_end(&capture);
	assert_string_equal(capture.text, "");
	capture_begin(&capture);
	network_watch_end(&f->watch);
	network_watch_end(&f->watch);
	capture_end(&capture);
	capture_expect_sentence(&capture, "the 5 bytes are ? used up");
	assert_int_equal(f->report.denied.count, 0);
	assert_string_equal(f->report.spent, "the 5 bytes are ? used up");
}

/* --allow-bytes SIZE, and what mvagent-relay is told of it. */
static void byte_limits(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {{"1", 1},
		    {"1000", 1000},
		    {"5B", 5},
		    {"2K", 2048},
		    {"3m", 3 << 20},
		    {"20G", UINT64_C(20) << 30},
		    {"18446744073709551615", UINT64_MAX}};
	static const char *const bad[] = {"",
					  "0",
					  "0K",
					  "-1",
					  "x",
					  "1T",
					  "1.5M",
					  "18446744073709551616",
					  "18014398509481984K"};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct capture capture;
		int error;

		capture_begin(&capture);
		error = run_network_apply(&f->network, NETWORK_ALLOW_BYTES, bad[i]);
		capture_end(&capture);
		assert_int_equal(error, -EINVAL);
		capture_expect_sentence(&capture, "give a number of bytes above 0");
	}
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct relay_settings *told = calloc(1, sizeof(*told));
		int fd;

		assert_int_equal(run_network_apply(&f->network, NETWORK_ALLOW_BYTES, good[i].text),
				 0);
		assert_int_equal(f->network.settings.byte_limit, good[i].bytes);
		fd = relay_settings_write(&f->network.settings);
		assert_true(fd >= 0);
		assert_int_equal(relay_settings_read(told, fd), 0);
		assert_int_equal(told->byte_limit, good[i].bytes);
		relay_settings_free(told);
		free(told);
		fd_close(&fd);
	}
}

static void options(void **state)
{
	static const char *const published[] = {"80",         "80:",     ":80:90",
						"x:80:90",    "0:80",    "80:70000",
						"1.2.3.4:80", "a:b:c:d", "::1:80:90:x"};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		if (run_network_apply(&f->network, NETWORK_PUBLISH, published[i]) == 0)
			fail_msg("--publish %s was taken", published[i]);
	}
	assert_int_equal(run_network_apply(&f->network, NETWORK_PUBLISH, "0.0.0.0:81:3001"), 0);
	assert_int_equal(run_network_apply(&f->network, NETWORK_PUBLISH, "[::1]:82:3002"), 0);
	assert_int_equal(f->network.settings.published[2].port, 82);
	assert_int_equal(run_network_apply(&f->network, NETWORK_RESOLVER, "9.9.9.9:53"), 0);
	assert_int_equal(run_network_apply(&f->network, NETWORK_RESOLVER, "[2620:fe::fe]:53"), 0);
	assert_int_equal(run_network_apply(&f->network, NETWORK_RESOLVER, "2620:fe::fe"), 0);
	assert_int_not_equal(run_network_apply(&f->network, NETWORK_RESOLVER, "dns.example"), 0);
	assert_int_not_equal(run_network_apply(&f->network, NETWORK_RESOLVER, "1.1.1.1:x"), 0);
	assert_int_not_equal(run_network_apply(&f->network, NETWORK_ALLOW_FILE, "/nowhere"), 0);
	assert_int_not_equal(run_network_apply(&f->network, NETWORK_ALLOW, "a\tb"), 0);
	assert_int_not_equal(run_network_apply(&f->network, NETWORK_ALLOW_FROM, "yarn"), 0);
	assert_int_not_equal(run_network_apply(&f->network, NETWORK_ALLOW_PRESET, "../x"), 0);
	assert_true(run_network_needs_relay(&f->network));
	assert_false(run_network_needs_relay(&(struct run_network){0}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(greeting, setup, teardown),
		cmocka_unit_test_setup_teardown(answers, setup, teardown),
		cmocka_unit_test_setup_teardown(pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(flood, setup, teardown),
		cmocka_unit_test_setup_teardown(events, setup, teardown),
		cmocka_unit_test_setup_teardown(failures, setup, teardown),
		cmocka_unit_test_setup_teardown(bytes_used_up, setup, teardown),
		cmocka_unit_test_setup_teardown(byte_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(options, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

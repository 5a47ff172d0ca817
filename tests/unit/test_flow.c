/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from one socket to another, as many as are allowed. */
#include "vmm/base/flow.h"

#include <errno.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/base/fd.h"

struct fixture {
	int writer, source; /* a pair */
	int sink, reader;   /* another */
};

static int setup(void **state)
{
	static struct fixture f;
	int pair[2];

	if (fd_create_socket_pair(SOCK_STREAM, pair))
		return -1;
	f.writer = pair[0];
	f.source = pair[1];
	if (fd_create_socket_pair(SOCK_STREAM, pair))
		return -1;
	f.sink = pair[0];
	f.reader = pair[1];
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fd_close(&f->writer);
	fd_close(&f->source);
	fd_close(&f->sink);
	fd_close(&f->reader);
	return 0;
}

static void say(const struct fixture *f, const char *text)
{
	assert_int_equal(send(f->writer, text, strlen(text), 0), strlen(text));
}

static void expect_got(const struct fixture *f, const char *text)
{
	char bytes[64] = "";
	ssize_t count = recv(f->reader, bytes, sizeof(bytes) - 1, MSG_DONTWAIT);

	assert_int_equal(count, *text ? (ssize_t)strlen(text) : -1);
	assert_string_equal(bytes, text);
}

static void test_passes_on(void **state)
{
	const struct fixture *f = *state;
	struct flow flow = {0};

	say(f, "hello");
	assert_int_equal(flow_move(&flow, f->source, f->sink), FLOW_WAITS);
	expect_got(f, "hello");
	shutdown(f->writer, SHUT_WR);
	assert_int_equal(flow_move(&flow, f->source, f->sink), FLOW_DONE);
	assert_int_equal(flow.bytes, 5);
}

/* What is allowed passes, and what is more does not. */
static void test_allowance(void **state)
{
	const struct fixture *f = *state;
	uint64_t allowance = 7;
	struct flow flow = {.allowance = &allowance}, other = {.allowance = &allowance};

	say(f, "four");
	assert_int_equal(flow_move(&flow, f->source, f->sink), FLOW_WAITS);
	assert_int_equal(allowance, 3);
	expect_got(f, "four");
	/* Another that takes of the same. */
	say(f, "12");
	assert_int_equal(flow_move(&other, f->source, f->sink), FLOW_WAITS);
	expect_got(f, "12");
	say(f, "xy");
	assert_int_equal(flow_move(&flow, f->source, f->sink), FLOW_SPENT);
	expect_got(f, "x");
	assert_int_equal(allowance, 0);
	assert_int_equal(flow_move(&flow, f->source, f->sink), FLOW_SPENT);
	expect_got(f, "");
	assert_int_equal(flow.bytes + other.bytes, 7);
}

/* Nothing and an end are no bytes. */
static void test_allowance_that_suffices(void **state)
{
	const struct fixture *f = *state;
	uint64_t allowance = 4;
	struct flow flow = {.allowance = &allowance};

	say(f, "four");
	assert_int_equal(flow_move(&flow, f->source, f->sink), FLOW_WAITS);
	assert_int_equal(flow_move(&flow, f->source, f->sink), FLOW_WAITS);
	expect_got(f, "four");
	shutdown(f->writer, SHUT_WR);
	assert_int_equal(flow_move(&flow, f->source, f->sink), FLOW_DONE);
}

/* From here on, in this process, each send fails so. */
static void fail_sends(uint16_t error)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	if (!filter || seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), SCMP_SYS(sendto), 0) ||
	    seccomp_load(filter))
		_exit(99);
	seccomp_release(filter);
}

/* No room of the host's is no full sink: there would be no event to wait for. */
static void test_send_that_fails(void **state)
{
	const struct fixture *f = *state;
	struct flow flow = {0};
	pid_t child;
	int status;

	say(f, "lost");
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		fail_sends(ENOBUFS);
		_exit((int)flow_move(&flow, f->source, f->sink));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), FLOW_BROKEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_passes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(test_allowance, setup, teardown),
		cmocka_unit_test_setup_teardown(test_allowance_that_suffices, setup, teardown),
		cmocka_unit_test_setup_teardown(test_send_that_fails, setup, teardown),
	};

	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}

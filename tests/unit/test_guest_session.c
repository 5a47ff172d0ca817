/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions with three streams: streams, statuses, signals, and the end of all processes. */
#include "tests/unit/guest_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>

static struct guest_run run;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void test_exit_statuses(void **state)
{
	char script[32];

	(void)state;
	for (int status = 0; status < 256; status++) {
		snprintf(script, sizeof(script), "exit %d", status);
		assert_int_equal(guest_run_script(&run, script), status);
	}
}

static int ends_process(int signal)
{
	switch (signal) {
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
	case SIGCONT:
	case SIGCHLD:
	case SIGURG:
	case SIGWINCH:
		return 0;
	default:
		return 1;
	}
}

static void test_signals(void **state)
{
	(void)state;
	for (int signal = 1; signal <= SIGRTMAX; signal++) {
		int status;

		if (!ends_process(signal))
			continue;
		guest_begin_script(&run, "exec sleep 1000");
		guest_expect(&run, SESSION_STARTED);
		guest_send(&run, SESSION_SIGNAL, (uint32_t)signal);
		status = guest_finish(&run);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signal);
	}
}

/* The whole group gets it; numbers that are no signals, and messages out of place, do nothing. */
static void test_signal_reaches_group(void **state)
{
	int status;

	(void)state;
	guest_begin_script(&run, "trap 'echo outer' TERM; echo ready;"
				 "sh -c 'trap \"echo inner; exit\" TERM; echo ready;"
				 " while :; do sleep 0.01; done'; exit 7");
	guest_expect(&run, SESSION_STARTED);
	guest_read(&run, 1, "ready\nready\n");
	guest_send(&run, SESSION_SIGNAL, 0);
	guest_send(&run, SESSION_SIGNAL, 65);
	guest_send(&run, SESSION_SIGNAL, UINT32_MAX);
	guest_send(&run, SESSION_WINDOW, 24U << 16 | 80);
	guest_send(&run, SESSION_EXITED, 0);
	guest_send(&run, SESSION_SIGNAL, SIGTERM);
	assert_string_equal(guest_collect(&run, 1), "inner\nouter\n");
	status = guest_finish(&run);
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void test_streams_are_separate(void **state)
{
	(void)state;
	guest_begin_script(&run, "cat; echo output; echo errors >&2");
	guest_expect(&run, SESSION_STARTED);
	guest_write(&run, "input\0\xff\n", 8);
	guest_end_input(&run);
	guest_collect(&run, 1);
	assert_memory_equal(run.output, "input\0\xff\noutput\n", 16);
	assert_string_equal(guest_collect(&run, 2), "errors\n");
	assert_int_equal(guest_finish(&run), 0);
}

/* Input that is still open does not keep the session. */
static void test_open_input(void **state)
{
	double start = now();

	(void)state;
	guest_begin_script(&run, "exit 3");
	guest_expect(&run, SESSION_STARTED);
	assert_int_equal(WEXITSTATUS(guest_finish(&run)), 3);
	assert_true(now() - start < 10);
}

/* An output that the command closes ends at once. */
static void test_closed_output(void **state)
{
	(void)state;
	guest_begin_script(&run, "exec >&-; read line; exit 4");
	guest_expect(&run, SESSION_STARTED);
	assert_string_equal(guest_collect(&run, 1), "");
	guest_write(&run, "go\n", 3);
	assert_int_equal(WEXITSTATUS(guest_finish(&run)), 4);
}

static void test_reader_leaves_writer(void **state)
{
	int status;

	(void)state;
	guest_begin_script(&run, "exec yes");
	guest_expect(&run, SESSION_STARTED);
	fd_close(&run.streams[1]);
	status = guest_finish(&run);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGPIPE);
}

/* A reader that leaves while nothing is written is noticed too: the first write fails. */
static void test_reader_leaves_idle_writer(void **state)
{
	(void)state;
	guest_begin_script(&run, "trap '' PIPE; read line; echo out || exit 5");
	guest_expect(&run, SESSION_STARTED);
	fd_close(&run.streams[1]);
	usleep(200000);
	guest_write(&run, "go\n", 3);
	assert_int_equal(WEXITSTATUS(guest_finish(&run)), 5);
}

/* A host that only says that it will not write to the command's output still reads it. */
static void test_half_closed_output(void **state)
{
	(void)state;
	guest_begin_script(&run, "read line; echo out");
	guest_expect(&run, SESSION_STARTED);
	assert_int_equal(shutdown(run.streams[1], SHUT_WR), 0);
	usleep(100000);
	guest_write(&run, "go\n", 3);
	assert_string_equal(guest_collect(&run, 1), "out\n");
	assert_int_equal(guest_finish(&run), 0);
}

static void test_command_closes_input(void **state)
{
	static const char bytes[65536];
	ssize_t count;

	(void)state;
	guest_begin_script(&run, "exec <&-; exec sleep 1000");
	guest_expect(&run, SESSION_STARTED);
	do {
		count = send(run.streams[0], bytes, sizeof(bytes), MSG_NOSIGNAL);
	} while (count > 0);
	assert_true(errno == EPIPE || errno == ECONNRESET);
	guest_send(&run, SESSION_KILL, 0);
	assert_int_equal(WTERMSIG(guest_finish(&run)), SIGKILL);
}

/* Byte @offset of a stream that has no short period. */
static uint8_t pattern(size_t offset)
{
	return (uint8_t)(offset ^ offset >> 8 ^ offset >> 16 ^ offset / 251);
}

static size_t send_pattern(size_t sent, size_t total)
{
	uint8_t bytes[32768];
	size_t length = total - sent < sizeof(bytes) ? total - sent : sizeof(bytes);
	ssize_t count;

	for (size_t index = 0; index < length; index++)
		bytes[index] = pattern(sent + index);
	count = send(run.streams[0], bytes, length, MSG_DONTWAIT);
	assert_true(count >= 0 || errno == EAGAIN);
	return count > 0 ? (size_t)count : 0;
}

static size_t receive_pattern(size_t received)
{
	uint8_t bytes[32768];
	ssize_t count = recv(run.streams[1], bytes, sizeof(bytes), MSG_DONTWAIT);

	assert_true(count > 0);
	for (ssize_t index = 0; index < count; index++) {
		if (bytes[index] != pattern(received + (size_t)index))
			fail_msg("wrong byte at %zu", received + (size_t)index);
	}
	return (size_t)count;
}

static void test_hundred_megabytes(void **state)
{
	const size_t total = 100U << 20;
	size_t sent = 0, received = 0;

	(void)state;
	guest_begin_script(&run, "exec cat");
	guest_expect(&run, SESSION_STARTED);
	while (received < total) {
		struct pollfd polled[] = {
			{.fd = sent < total ? run.streams[0] : -1, .events = POLLOUT},
			{.fd = run.streams[1], .events = POLLIN},
		};

		assert_true(poll(polled, 2, PATIENCE_SECONDS * 1000) > 0);
		if (polled[0].revents) {
			sent += send_pattern(sent, total);
			if (sent == total)
				guest_end_input(&run);
		}
		if (polled[1].revents)
			received += receive_pattern(received);
	}
	assert_string_equal(guest_collect(&run, 1), "");
	assert_int_equal(guest_finish(&run), 0);
}

/* A host that does not read stops the command, and gets all of the output when it reads later. */
static void test_slow_reader(void **state)
{
	struct pollfd polled;
	size_t total = 0;
	ssize_t count;

	(void)state;
	guest_begin_script(&run, "head -c 3000000 /dev/zero; echo written >&2");
	guest_expect(&run, SESSION_STARTED);
	polled = (struct pollfd){.fd = run.streams[2], .events = POLLIN};
	assert_int_equal(poll(&polled, 1, 500), 0);
	while ((count = read(run.streams[1], run.output, sizeof(run.output))) > 0)
		total += (size_t)count;
	assert_int_equal(count, 0);
	assert_int_equal(total, 3000000);
	assert_string_equal(guest_collect(&run, 2), "written\n");
	assert_int_equal(guest_finish(&run), 0);
}

/* What a command that has ended left in its pipe comes before EXITED. */
static void test_output_before_exited(void **state)
{
	struct pollfd polled;
	size_t total = 0;
	ssize_t count;

	(void)state;
	guest_begin_script(&run, "head -c 300000 /dev/zero");
	guest_expect(&run, SESSION_STARTED);
	polled = (struct pollfd){.fd = run.control, .events = POLLIN};
	assert_int_equal(poll(&polled, 1, 500), 0);
	while ((count = read(run.streams[1], run.output, sizeof(run.output))) > 0)
		total += (size_t)count;
	assert_int_equal(total, 300000);
	assert_int_equal(guest_finish(&run), 0);
}

/* A command that floods its output does not keep signals from it. */
static void test_signal_during_flood(void **state)
{
	int flags = 0;
	ssize_t count;

	(void)state;
	guest_begin_script(&run, "exec yes");
	guest_expect(&run, SESSION_STARTED);
	for (size_t total = 0; (count = read(run.streams[1], run.output, sizeof(run.output))) > 0;
	     total += (size_t)count) {
		if (total > 10000000 && !flags++)
			guest_send(&run, SESSION_SIGNAL, SIGTERM);
	}
	assert_int_equal(WTERMSIG(guest_finish(&run)), SIGTERM);
}

/* Processes that the command leaves behind, in other sessions and deaf to signals, end with it. */
static void test_background_processes_end(void **state)
{
	double start = now();

	(void)state;
	assert_int_equal(guest_run_script(&run, "for i in 1 2 3; do"
						" (trap '' HUP TERM INT; setsid sh -c 'sleep 1000'"
						" & ) & done; sleep 0.2; echo done; exit 6"),
			 6);
	assert_string_equal(run.output, "done\n");
	assert_true(now() - start < 10);
}

static void test_orphans_are_reaped(void **state)
{
	(void)state;
	assert_int_equal(guest_run_script(&run, "i=0; while [ $i -lt 300 ]; do (true &);"
						" i=$((i + 1)); done; sleep 0.3;"
						" grep -l '^State:.Z' /proc/[0-9]*/status"),
			 1);
	assert_string_equal(run.output, "");
}

static void test_kill(void **state)
{
	(void)state;
	guest_begin_script(&run, "trap '' TERM HUP INT; (sleep 1000 &); echo ready;"
				 "while :; do sleep 1000; done");
	guest_expect(&run, SESSION_STARTED);
	guest_read(&run, 1, "ready\n");
	guest_send(&run, SESSION_KILL, 0);
	assert_int_equal(WTERMSIG(guest_finish(&run)), SIGKILL);
}

static void test_kill_stopped(void **state)
{
	(void)state;
	guest_begin_script(&run, "echo ready; kill -STOP $$");
	guest_expect(&run, SESSION_STARTED);
	guest_read(&run, 1, "ready\n");
	guest_send(&run, SESSION_KILL, 0);
	assert_int_equal(WTERMSIG(guest_finish(&run)), SIGKILL);
}

/* Root in the guest kills all that it can: init goes on. */
static void test_command_kills_all(void **state)
{
	int status;

	(void)state;
	guest_begin_script(&run, "kill -9 1; kill -STOP 1; kill -TERM 1; kill -34 1;"
				 "(sleep 1000 &); kill -9 -1; exit 9");
	guest_expect(&run, SESSION_STARTED);
	status = guest_finish(&run);
	assert_int_equal(WEXITSTATUS(status), 9);
}

static void test_host_leaves(void **state)
{
	(void)state;
	guest_begin_script(&run, "exec sleep 1000");
	guest_expect(&run, SESSION_STARTED);
	guest_leave(&run, GUEST_LOST_HOST);
}

static void test_host_sends_rubbish(void **state)
{
	(void)state;
	guest_begin_script(&run, "exec sleep 1000");
	guest_expect(&run, SESSION_STARTED);
	assert_int_equal(fd_write_full(run.control, "\7\0\0\0\5\0\0\0\0\0\0\0\0", 13), 0);
	assert_int_equal(guest_collect(&run, 1)[0], 0);
	guest_leave(&run, GUEST_LOST_HOST);
}

static void test_message_in_pieces(void **state)
{
	const uint8_t bytes[] = {SESSION_SIGNAL, 0, 0, 0, 4, 0, 0, 0, SIGUSR1, 0, 0, 0};

	(void)state;
	guest_begin_script(&run, "exec sleep 1000");
	guest_expect(&run, SESSION_STARTED);
	for (size_t index = 0; index < sizeof(bytes); index++) {
		assert_int_equal(fd_write_full(run.control, &bytes[index], 1), 0);
		usleep(2000);
	}
	assert_int_equal(WTERMSIG(guest_finish(&run)), SIGUSR1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_statuses),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_signal_reaches_group),
		cmocka_unit_test(test_streams_are_separate),
		cmocka_unit_test(test_open_input),
		cmocka_unit_test(test_closed_output),
		cmocka_unit_test(test_reader_leaves_writer),
		cmocka_unit_test(test_reader_leaves_idle_writer),
		cmocka_unit_test(test_half_closed_output),
		cmocka_unit_test(test_command_closes_input),
		cmocka_unit_test(test_hundred_megabytes),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_output_before_exited),
		cmocka_unit_test(test_signal_during_flood),
		cmocka_unit_test(test_background_processes_end),
		cmocka_unit_test(test_orphans_are_reaped),
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_kill_stopped),
		cmocka_unit_test(test_command_kills_all),
		cmocka_unit_test(test_host_leaves),
		cmocka_unit_test(test_host_sends_rubbish),
		cmocka_unit_test(test_message_in_pieces),
	};

	if (!guest_runs_here())
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

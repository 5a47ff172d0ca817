/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a session of the guest's init for tests, without a machine: its code is process 1 of a new
 * PID namespace, and the test is the host at the other end of socket pairs. Needs root.
 */
#ifndef TESTS_GUEST_RUN_H
#define TESTS_GUEST_RUN_H

#include <errno.h>
#include <linux/close_range.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "guest/session.h"
#include "vmm/base/fd.h"
#include "vmm/wire/session.h"

/* Far above what any step takes: a test fails by it rather than hang. */
#define PATIENCE_SECONDS 60

/* The exit statuses of process 1. */
enum { GUEST_TOLD, GUEST_LOST_HOST, GUEST_BROKEN };

/* The host's ends; -1 once closed. */
struct guest_run {
	pid_t init;
	int control;
	int streams[3];
	int output_length;
	char output[65536]; /* terminated; what guest_collect read */
};

static const char *const guest_variables[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};

/* A session that runs @script in a shell. @arguments has room for four. */
static inline struct session_start guest_start(const char *script, const char **arguments)
{
	arguments[0] = "sh";
	arguments[1] = "-c";
	arguments[2] = script;
	arguments[3] = NULL;
	return (struct session_start){
		.user = "root",
		.home = "/root",
		.host_name = "guest",
		.directory = "/",
		.argument_count = 3,
		.arguments = arguments,
		.variable_count = 2,
		.variables = guest_variables,
	};
}

static inline int guest_main(int control, int streams[3], const struct session_start *start)
{
	const struct rlimit no_core = {0, RLIM_INFINITY};
	const struct shares shares = {0};
	struct failure failure = {0};
	sigset_t all;
	int error;

	/* A test that fails leaves nothing behind. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &no_core);
	if (getpid() != 1 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("proc", "/proc", "proc", 0, NULL) < 0)
		return GUEST_BROKEN;
	/* What the test has inherited, init has not. */
	if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return GUEST_BROKEN;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	error = session_run(control, streams, start, &shares, &failure);
	if (error && failure.stage)
		error = message_send_failure(control, &failure);
	return error ? GUEST_LOST_HOST : GUEST_TOLD;
}

/* The kernel starts process 1 with every signal at its default. Whoever runs this test may ignore
 * some, signals 32 and 33 included, which the C library keeps to itself: hence the plain system
 * call. */
static inline void guest_reset_signals(void)
{
	const uint64_t default_action[4] = {
		0}; /* struct kernel_sigaction: SIG_DFL, no flags, no mask */

	for (int number = 1; number <= 64; number++)
		syscall(SYS_rt_sigaction, number, default_action, NULL, sizeof(uint64_t));
}

static inline pid_t guest_fork(void)
{
	return (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);
}

/* Whether this machine lets the tests run; says why when not. */
static inline int guest_runs_here(void)
{
	pid_t child = guest_fork();
	int status = 1;

	if (child == 0)
		_exit(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		      mount("proc", "/proc", "proc", 0, NULL) < 0);
	if (child > 0)
		waitpid(child, &status, 0);
	if (status)
		printf("skip sessions: no PID namespace with its own /proc may be made here "
		       "(run as root)\n");
	return !status;
}

static inline void guest_set_patience(int socket)
{
	const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};

	assert_int_equal(setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
			 0);
	assert_int_equal(setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)),
			 0);
}

/* Starts a session; the caller waits for its STARTED or FAILED. */
static inline void guest_begin(struct guest_run *run, const struct session_start *start)
{
	int ends[4][2];
	int streams[3];

	fflush(NULL);
	for (int index = 0; index < 4; index++)
		assert_int_equal(fd_create_socket_pair(SOCK_STREAM, ends[index]), 0);
	run->init = guest_fork();
	assert_true(run->init >= 0);
	if (run->init == 0) {
		guest_reset_signals();
		for (int index = 0; index < 4; index++) {
			fd_close(&ends[index][0]);
			if (index < 3)
				streams[index] = ends[index][1];
		}
		_exit(guest_main(ends[3][1], streams, start));
	}
	for (int index = 0; index < 4; index++) {
		fd_close(&ends[index][1]);
		guest_set_patience(ends[index][0]);
		if (index < 3)
			run->streams[index] = ends[index][0];
	}
	run->control = ends[3][0];
}

static inline void guest_begin_script(struct guest_run *run, const char *script)
{
	const char *arguments[4];
	struct session_start start = guest_start(script, arguments);

	guest_begin(run, &start);
}

/* Waits for a message of @type; returns its value if it has one. */
static inline uint32_t guest_expect(struct guest_run *run, enum session_type type)
{
	struct session_message message;
	uint32_t value = 0;

	assert_int_equal(session_receive(run->control, &message), 1);
	if (message.type == SESSION_FAILED)
		print_error("FAILED: %.*s\n", (int)message.length - 12, message.payload + 12);
	assert_int_equal(message.type, type);
	if (message.length)
		assert_int_equal(session_decode_value(message.payload, message.length, &value), 0);
	free(message.payload);
	return value;
}

static inline void guest_send(struct guest_run *run, enum session_type type, uint32_t value)
{
	if (type == SESSION_KILL)
		assert_int_equal(message_send_empty(run->control, type), 0);
	else
		assert_int_equal(message_send_value(run->control, type, value), 0);
}

static inline void guest_write(struct guest_run *run, const void *bytes, size_t length)
{
	assert_int_equal(fd_write_full(run->streams[0], bytes, length), 0);
}

static inline void guest_end_input(struct guest_run *run)
{
	assert_int_equal(shutdown(run->streams[0], SHUT_WR), 0);
}

/* Reads stream 1 or 2 to its end, or until it ends in @until (NULL: to its end), into
 * run->output. */
static inline const char *guest_read(struct guest_run *run, int stream, const char *until)
{
	size_t length = 0;

	for (;;) {
		ssize_t count = read(run->streams[stream], run->output + length,
				     sizeof(run->output) - 1 - length);

		assert_true(count >= 0);
		length += (size_t)count;
		assert_true(length < sizeof(run->output) - 1);
		run->output[length] = 0;
		if (until && length >= strlen(until) &&
		    !strcmp(run->output + length - strlen(until), until))
			break;
		if (until)
			assert_true(count > 0);
		if (!count)
			break;
	}
	return run->output;
}

static inline const char *guest_collect(struct guest_run *run, int stream)
{
	return guest_read(run, stream, NULL);
}

/* Leaves, and checks how process 1 ended. */
static inline void guest_leave(struct guest_run *run, int expected)
{
	int status;

	fd_close(&run->control);
	for (int index = 0; index < 3; index++)
		fd_close(&run->streams[index]);
	assert_int_equal(waitpid(run->init, &status, 0), run->init);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), expected);
}

/* Waits for the end. Returns the command's wait status. */
static inline int guest_finish(struct guest_run *run)
{
	int status = (int)guest_expect(run, SESSION_EXITED);

	guest_leave(run, GUEST_TOLD);
	return status;
}

/* Runs @script to its end; its output is in run->output. Returns its exit status. */
static inline int guest_run_script(struct guest_run *run, const char *script)
{
	int status;

	guest_begin_script(run, script);
	guest_expect(run, SESSION_STARTED);
	guest_end_input(run);
	guest_collect(run, 1);
	status = guest_finish(run);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Runs a session that cannot start, and checks why. */
static inline void guest_assert_failure(const struct session_start *start, enum session_stage stage,
					int error)
{
	char text[SESSION_FAILURE_TEXT_BYTES + 1];
	struct session_failure failure;
	struct session_message message;
	struct guest_run run;

	guest_begin(&run, start);
	assert_int_equal(session_receive(run.control, &message), 1);
	assert_int_equal(message.type, SESSION_FAILED);
	assert_int_equal(session_decode_failure(message.payload, message.length, &failure, text),
			 0);
	free(message.payload);
	assert_int_equal(failure.stage, stage);
	assert_int_equal(failure.error, error);
	assert_true(text[0] != 0);
	guest_leave(&run, GUEST_TOLD);
}

#endif

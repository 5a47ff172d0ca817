/* SPDX-License-Identifier: Apache-2.0 */
/* A guest that lies to the supervisor, or never lets it rest: the time limit and the user's signals
 * hold all the same. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/cli/supervisor_events.h"

struct fixture {
	struct supervisor *supervisor;
	struct report report;
	struct run_options options;
	int guest;   /* the other end of the control connection */
	int machine; /* and of the monitor's */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int control[2], monitor[2];

	f->supervisor = calloc(1, sizeof(*f->supervisor));
	if (fd_create_socket_pair(SOCK_STREAM, control) ||
	    fd_create_socket_pair(SOCK_SEQPACKET, monitor))
		return -1;
	f->options.timeout_seconds = 1000;
	f->supervisor->options = &f->options;
	f->supervisor->report = &f->report;
	f->supervisor->monitor_fd = monitor[0];
	f->supervisor->network = (struct network_watch){
		.report = &f->report.network, .names_fd = -1, .event_fd = -1};
	for (unsigned int i = 0; i < LIMIT_SHARES; i++)
		f->supervisor->report_fds[i] = -1;
	f->supervisor->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	control_init(&f->supervisor->control, control[0]);
	f->guest = control[1];
	f->machine = monitor[1];
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	control_destroy(&f->supervisor->control);
	fd_close(&f->supervisor->control.fd);
	fd_close(&f->supervisor->monitor_fd);
	fd_close(&f->supervisor->timer_fd);
	fd_close(&f->guest);
	fd_close(&f->machine);
	free(f->supervisor);
	free(f);
	return 0;
}

static void say_started(int fd)
{
	uint8_t *bytes;
	size_t length;

	assert_int_equal(session_encode_empty(SESSION_STARTED, &bytes, &length), 0);
	assert_int_equal(send(fd, bytes, length, 0), (ssize_t)length);
	free(bytes);
}

static unsigned long seconds_left(const struct fixture *f)
{
	struct itimerspec timer;

	assert_int_equal(timerfd_gettime(f->supervisor->timer_fd, &timer), 0);
	assert_int_equal(timer.it_interval.tv_nsec, PATIENCE_SLICE_MS * CLOCK_NS_PER_MS);
	return f->supervisor->limit.left_ns / (1000UL * CLOCK_NS_PER_MS);
}

static void time_limit_begins_once(void **state)
{
	struct fixture *f = *state;

	say_started(f->guest);
	supervisor_serve_control(f->supervisor);
	assert_true(seconds_left(f) >= 999);
	supervisor_set_timer(f->supervisor, 100);
	say_started(f->guest);
	supervisor_serve_control(f->supervisor);
	assert_true(seconds_left(f) <= 100);
}

/* Before START was sent, nothing can have started: the boot's deadline stays. */
static void nothing_starts_before_start(void **state)
{
	struct fixture *f = *state;
	uint8_t *bytes;
	size_t length;

	assert_int_equal(session_encode_empty(SESSION_KILL, &bytes, &length), 0);
	f->supervisor->start_message = bytes;
	f->options.timeout_seconds = 0; /* none: the timer would be switched off */
	supervisor_set_timer(f->supervisor, 100);
	say_started(f->guest);
	supervisor_serve_control(f->supervisor);
	assert_int_equal(f->report.moments[MOMENT_STARTED], 0);
	assert_true(seconds_left(f) >= 99);
	f->supervisor->start_message = NULL;
	free(bytes);
}

/* More messages than one turn takes in: the rest waits until others had theirs. */
static void a_flood_is_taken_in_turns(void **state)
{
	struct fixture *f = *state;
	const struct session_header ignored[2000] = {[0 ... 1999] = {.type = SESSION_WINDOW}};
	int turns = 0;

	assert_int_equal(send(f->guest, ignored, sizeof(ignored), 0), (ssize_t)sizeof(ignored));
	say_started(f->guest);
	do {
		supervisor_serve_control(f->supervisor);
		turns++;
	} while (!f->report.moments[MOMENT_STARTED] && turns < 10);
	assert_int_equal(turns, 2);
	assert_int_equal(f->report.outcome.kind, OUTCOME_NONE);
}

/* A machine that has much to say before it can end: all of it is taken in while it is waited for.
 */
static void last_word_is_heard(void **state)
{
	struct fixture *f = *state;
	struct process *process = &f->supervisor->processes[0];
	uint64_t begin = clock_monotonic_ns();

	*process = PROCESS_NONE;
	process->name = "machine";
	process->pid = fork();
	if (process->pid == 0) {
		struct monitor_packet packet = {.type = MONITOR_CONSOLE, .text_length = 1};

		alarm(20);
		for (int i = 0; i < 3000; i++)
			send(f->machine, &packet, sizeof(packet), 0);
		packet = (struct monitor_packet){.type = MONITOR_ENDED,
						 .reason = MONITOR_REASON_STOPPED};
		send(f->machine, &packet, sizeof(packet), 0);
		_exit(0);
	}
	fd_close(&f->machine);
	process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	assert_true(process->pidfd >= 0);
	f->supervisor->process_count = 1;
	fd_close(&f->supervisor->timer_fd);
	outcome_give(&f->report.outcome, OUTCOME_INTERRUPTED, SIGINT, "interrupted");
	supervisor_run(f->supervisor);
	assert_true(clock_monotonic_ns() - begin < 4000000000U);
	assert_true(f->report.machine_ended);
	assert_int_equal(f->report.machine_reason, MONITOR_REASON_STOPPED);
	for (unsigned int i = 0; i < STREAM_COUNT; i++)
		fd_close(&f->supervisor->stream_done_fds[i]);
	fd_close(&f->supervisor->signal_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(time_limit_begins_once, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_starts_before_start, setup, teardown),
		cmocka_unit_test_setup_teardown(a_flood_is_taken_in_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(last_word_is_heard, setup, teardown),
	};

	return cmocka_run_group_tests_name("supervisor", tests, NULL, NULL);
}

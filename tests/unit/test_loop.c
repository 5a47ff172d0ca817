/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the event loop: every test runs on both back ends, with real descriptors. */
#include "vmm/loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/loop_probe.h"

static void watch_reports_every_signal_of_an_undrained_eventfd(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	struct probe probe = {0};
	int fd = fd_create_event();

	assert_int_equal(loop_watch(loop, &probe.operation, fd, POLLIN, probe_callback), 0);
	for (int i = 1; i <= 20000; i++) {
		fd_signal_event(fd);
		assert_int_equal(loop_run_once(loop, 2000), 1);
		assert_int_equal(probe.calls, i);
		assert_int_equal(probe.result, POLLIN);
	}
	assert_false(loop_operation_idle(&probe.operation));
	assert_int_equal(loop_run_once(loop, 0), 0);
	assert_int_equal(fd_drain_event(fd), 20000);
	loop_cancel(loop, &probe.operation);
	run_until(loop, &probe, 20001);
	assert_int_equal(probe.result, -ECANCELED);
	assert_true(loop_operation_idle(&probe.operation));
	fd_signal_event(fd);
	assert_int_equal(loop_run_once(loop, 0), 0);
	fd_close(&fd);
	loop_destroy(loop);
}

static void signals_before_the_watch_and_in_a_burst_are_seen(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	struct probe probe = {0};
	int fd = fd_create_event();

	fd_signal_event(fd);
	assert_int_equal(loop_watch(loop, &probe.operation, fd, POLLIN, probe_callback), 0);
	assert_int_equal(probe.calls, 0);
	run_until(loop, &probe, 1);
	for (int i = 0; i < 5000; i++)
		fd_signal_event(fd);
	assert_true(loop_run_once(loop, 2000) > 0);
	assert_true(probe.calls >= 2);
	while (loop_run_once(loop, 0) > 0)
		;
	fd_signal_event(fd);
	probe.calls = 0;
	run_until(loop, &probe, 1);
	loop_destroy(loop);
	fd_close(&fd);
}

/* Signals from another process while this one sleeps: the last one must not be missed. */
static void no_wake_up_is_lost_between_processes(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	struct probe probe = {0};
	int to_child = fd_create_event();
	int to_parent = fd_create_event();
	pid_t child;
	int status;

	assert_int_equal(loop_watch(loop, &probe.operation, to_parent, POLLIN, probe_callback), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (int i = 0; i < 2000; i++) {
			struct pollfd wait = {.fd = to_child, .events = POLLIN};

			fd_signal_event(to_parent);
			if (poll(&wait, 1, 5000) != 1)
				_exit(1);
			fd_drain_event(to_child);
		}
		_exit(0);
	}
	for (int i = 1; i <= 2000; i++) {
		run_until(loop, &probe, i);
		loop_signal(loop, to_child);
		loop_flush_signals(loop);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	loop_destroy(loop);
	fd_close(&to_child);
	fd_close(&to_parent);
}

static void watch_of_a_socket_is_edge_triggered(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	struct probe probe = {0};
	char buffer[8];
	int pair[2];

	assert_int_equal(fd_create_socket_pair(SOCK_STREAM | SOCK_NONBLOCK, pair), 0);
	assert_int_equal(
		loop_watch(loop, &probe.operation, pair[0], POLLIN | POLLOUT, probe_callback), 0);
	run_until(loop, &probe, 1);
	assert_int_equal(probe.result, POLLOUT);
	assert_int_equal(loop_run_once(loop, 20), 0);
	assert_int_equal(write(pair[1], "abc", 3), 3);
	run_until(loop, &probe, 2);
	assert_true(probe.result & POLLIN);
	/* Not read, nothing new: nothing is said. */
	assert_int_equal(loop_run_once(loop, 20), 0);
	assert_int_equal(write(pair[1], "def", 3), 3);
	run_until(loop, &probe, 3);
	assert_int_equal(read(pair[0], buffer, sizeof(buffer)), 6);
	fd_close(&pair[1]);
	while (!(probe.result & POLLHUP))
		assert_true(loop_run_once(loop, 2000) > 0);
	/* A hang-up stays, but does not keep the loop busy. */
	while (loop_run_once(loop, 0) > 0)
		assert_true(probe.calls < 10);
	loop_cancel(loop, &probe.operation);
	probe.calls = 0;
	run_until(loop, &probe, 1);
	assert_int_equal(probe.result, -ECANCELED);
	fd_close(&pair[0]);
	loop_destroy(loop);
}

static void reads_of_files(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	char first[4] = "....", second[8] = "........";
	struct iovec vector[] = {{first, 4}, {second, 8}};
	struct probe probe = {0};
	int fd = make_file("0123456789", 10);

	assert_int_equal(loop_read(loop, &probe.operation, fd, vector, 2, 0, probe_callback), 0);
	assert_int_equal(probe.calls, 0); /* never from inside the call */
	assert_false(loop_operation_idle(&probe.operation));
	run_until(loop, &probe, 1);
	assert_int_equal(probe.result, 10);
	assert_memory_equal(first, "0123", 4);
	assert_memory_equal(second, "456789..", 8);
	assert_true(loop_operation_idle(&probe.operation));

	assert_int_equal(loop_read(loop, &probe.operation, fd, vector, 2, 7, probe_callback), 0);
	run_until(loop, &probe, 2);
	assert_int_equal(probe.result, 3); /* short at the end */
	assert_memory_equal(first, "789", 3);
	assert_int_equal(loop_read(loop, &probe.operation, fd, vector, 2, 10, probe_callback), 0);
	run_until(loop, &probe, 3);
	assert_int_equal(probe.result, 0);
	fd_close(&fd);
	assert_int_equal(loop_read(loop, &probe.operation, 1000000, vector, 2, 0, probe_callback),
			 0);
	run_until(loop, &probe, 4);
	assert_int_equal(probe.result, -EBADF);
	loop_destroy(loop);
}

static void stream_reads_wait(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	char buffer[16] = {0};
	struct iovec vector = {buffer, sizeof(buffer)};
	struct probe probe = {0};
	int pipe_fds[2];

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	for (int i = 1; i <= 4; i++) {
		assert_int_equal(fd_set_nonblocking(pipe_fds[0], i > 2), 0);
		assert_int_equal(loop_read(loop, &probe.operation, pipe_fds[0], &vector, 1, -1,
					   probe_callback),
				 0);
		assert_int_equal(loop_run_once(loop, 10), 0);
		assert_int_equal(write(pipe_fds[1], "hello", 5), 5);
		run_until(loop, &probe, i);
		assert_int_equal(probe.result, 5);
		assert_string_equal(buffer, "hello");
	}
	fd_close(&pipe_fds[1]);
	assert_int_equal(
		loop_read(loop, &probe.operation, pipe_fds[0], &vector, 1, -1, probe_callback), 0);
	run_until(loop, &probe, 5);
	assert_int_equal(probe.result, 0);
	fd_close(&pipe_fds[0]);
	loop_destroy(loop);
}

static void a_cancelled_read_leaves_its_buffer_alone(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	char buffer[16] = "untouched";
	char other[16] = {0};
	struct iovec vector = {buffer, sizeof(buffer)};
	struct probe probe = {0};
	int pipe_fds[2];

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(
		loop_read(loop, &probe.operation, pipe_fds[0], &vector, 1, -1, probe_callback), 0);
	assert_int_equal(loop_run_once(loop, 10), 0);
	loop_cancel(loop, &probe.operation);
	loop_cancel(loop, &probe.operation);
	assert_int_equal(probe.calls, 0);
	assert_false(loop_operation_idle(&probe.operation));
	run_until(loop, &probe, 1);
	assert_int_equal(probe.result, -ECANCELED);
	assert_true(loop_operation_idle(&probe.operation));
	loop_cancel(loop, &probe.operation); /* at rest: nothing happens */
	assert_int_equal(write(pipe_fds[1], "later", 5), 5);
	assert_int_equal(loop_run_once(loop, 10), 0);
	assert_string_equal(buffer, "untouched");
	assert_int_equal(read(pipe_fds[0], other, sizeof(other)), 5);
	assert_int_equal(probe.calls, 1);
	fd_close(&pipe_fds[0]);
	fd_close(&pipe_fds[1]);
	loop_destroy(loop);
}

static void destroy_ends_what_is_in_flight(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	char buffer[16] = "untouched";
	struct iovec vector = {buffer, sizeof(buffer)};
	struct probe reader = {0}, watcher = {0}, timer = {0};
	int pipe_fds[2];
	int event = fd_create_event();

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(
		loop_read(loop, &reader.operation, pipe_fds[0], &vector, 1, -1, probe_callback), 0);
	assert_int_equal(loop_watch(loop, &watcher.operation, event, POLLIN, probe_callback), 0);
	assert_int_equal(loop_timer(loop, &timer.operation, 3600000, probe_callback), 0);
	assert_int_equal(loop_run_once(loop, 10), 0);
	loop_destroy(loop);
	assert_true(loop_operation_idle(&reader.operation));
	assert_true(loop_operation_idle(&watcher.operation));
	assert_true(loop_operation_idle(&timer.operation));
	assert_int_equal(write(pipe_fds[1], "later", 5), 5);
	assert_string_equal(buffer, "untouched");
	assert_int_equal(reader.calls + watcher.calls + timer.calls, 0);
	fd_close(&pipe_fds[0]);
	fd_close(&pipe_fds[1]);
	fd_close(&event);
}

static void a_full_loop_says_so_and_recovers(void **state)
{
	struct loop *loop = make_loop(state, CAPACITY);
	struct probe probes[CAPACITY] = {0}, extra = {0};
	int fds[CAPACITY];
	char byte;
	struct iovec vector = {&byte, 1};
	int file = make_file("x", 1);

	for (int i = 0; i < CAPACITY; i++) {
		fds[i] = fd_create_event();
		assert_int_equal(
			loop_watch(loop, &probes[i].operation, fds[i], POLLIN, probe_callback), 0);
	}
	assert_int_equal(loop_timer(loop, &extra.operation, 0, probe_callback), -ENOSPC);
	assert_int_equal(loop_read(loop, &extra.operation, file, &vector, 1, 0, probe_callback),
			 -ENOSPC);
	assert_true(loop_operation_idle(&extra.operation));
	for (int i = 0; i < CAPACITY; i++)
		fd_signal_event(fds[i]);
	for (int i = 0; i < CAPACITY; i++)
		run_until(loop, &probes[i], 1);
	loop_cancel(loop, &probes[3].operation);
	run_until(loop, &probes[3], 2);
	assert_int_equal(loop_read(loop, &extra.operation, file, &vector, 1, 0, probe_callback), 0);
	assert_int_equal(loop_watch(loop, &probes[3].operation, fds[3], POLLIN, probe_callback),
			 -ENOSPC);
	run_until(loop, &extra, 1);
	assert_int_equal(extra.result, 1);
	assert_int_equal(extra.calls, 1);
	loop_destroy(loop);
	for (int i = 0; i < CAPACITY; i++)
		fd_close(&fds[i]);
	fd_close(&file);
}

static void operations_may_be_asked_for_before_enable(void **state)
{
	struct probe probe = {0}, never = {0};
	struct loop *loop = NULL;
	int event = fd_create_event();

	fd_signal_event(event);
	loop = create_loop(CAPACITY, *(enum loop_backend *)*state);
	assert_int_equal(loop_watch(loop, &probe.operation, event, POLLIN, probe_callback), 0);
	assert_int_equal(loop_enable(loop), 0);
	run_until(loop, &probe, 1);
	loop_destroy(loop);
	loop = create_loop(CAPACITY, *(enum loop_backend *)*state);
	assert_int_equal(loop_watch(loop, &never.operation, event, POLLIN, probe_callback), 0);
	loop_destroy(loop);
	assert_int_equal(never.calls, 0);
	fd_close(&event);
}

static void capacity_is_bounded(void **state)
{
	enum loop_backend backend = *(enum loop_backend *)*state;
	struct loop *loop = NULL;

	assert_int_equal(loop_create(&loop, 0, backend), -EINVAL);
	assert_int_equal(loop_create(&loop, LOOP_CAPACITY_MAX + 1, backend), -EINVAL);
	loop = create_loop(LOOP_CAPACITY_MAX, backend);
	loop_destroy(loop);
}

/* More multishot completions in one turn than the completion queue has entries. */
static void a_flood_of_watches_loses_nothing(void **state)
{
	enum { WATCHES = 200 };
	struct loop *loop = make_loop(state, WATCHES);
	static struct probe probes[WATCHES];
	int fds[WATCHES];

	memset(probes, 0, sizeof(probes));
	for (int i = 0; i < WATCHES; i++) {
		fds[i] = fd_create_event();
		assert_int_equal(
			loop_watch(loop, &probes[i].operation, fds[i], POLLIN, probe_callback), 0);
	}
	assert_int_equal(loop_run_once(loop, 0), 0);
	for (int round = 1; round <= 10; round++) {
		for (int i = 0; i < WATCHES; i++)
			fd_signal_event(fds[i]);
		for (int i = 0; i < WATCHES; i++) {
			while (probes[i].calls < round)
				assert_true(loop_run_once(loop, 2000) > 0);
		}
		while (loop_run_once(loop, 0) > 0)
			;
	}
	loop_destroy(loop);
	for (int i = 0; i < WATCHES; i++)
		fd_close(&fds[i]);
}

static int open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void create_and_destroy_leave_no_descriptor(void **state)
{
	enum loop_backend backend = *(enum loop_backend *)*state;
	struct loop *loop = NULL;
	int before = open_descriptors();

	for (int i = 0; i < 50; i++) {
		loop = create_loop(CAPACITY, backend);
		loop_destroy(loop);
	}
	assert_int_equal(open_descriptors(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(watch_reports_every_signal_of_an_undrained_eventfd),
		ON_BOTH(signals_before_the_watch_and_in_a_burst_are_seen),
		ON_BOTH(no_wake_up_is_lost_between_processes),
		ON_BOTH(watch_of_a_socket_is_edge_triggered),
		ON_BOTH(reads_of_files),
		ON_BOTH(stream_reads_wait),
		ON_BOTH(a_cancelled_read_leaves_its_buffer_alone),
		ON_BOTH(destroy_ends_what_is_in_flight),
		ON_BOTH(a_full_loop_says_so_and_recovers),
		ON_BOTH(operations_may_be_asked_for_before_enable),
		ON_BOTH(capacity_is_bounded),
		ON_BOTH(a_flood_of_watches_loses_nothing),
		ON_BOTH(create_and_destroy_leave_no_descriptor),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}

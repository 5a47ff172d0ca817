/* SPDX-License-Identifier: Apache-2.0 */
/* What only the io_uring back end has: its restrictions, and what the kernel does to it. */
#include "vmm/loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/loop_probe.h"
#include "vmm/loop/loop_uring.h"

/* Submits the one entry that was prepared. */
static void expect_refused(struct io_uring *ring)
{
	struct io_uring_cqe *completion;

	assert_int_equal(io_uring_submit_and_wait(ring, 1), 1);
	assert_int_equal(io_uring_peek_cqe(ring, &completion), 0);
	assert_int_equal(completion->res, -EACCES);
	io_uring_cqe_seen(ring, completion);
}

static void the_ring_does_only_what_the_loop_does(void **state)
{
	struct loop *loop = NULL;
	struct io_uring *ring;
	struct io_uring_sqe *entry;
	uint64_t one = 1;
	struct iovec vector = {&one, sizeof(one)};
	int fd = fd_create_event();

	(void)state;
	loop = create_loop(CAPACITY, LOOP_BACKEND_IO_URING);
	assert_int_equal(loop_enable(loop), 0);
	ring = &((struct loop_uring *)loop)->ring;

	entry = io_uring_get_sqe(ring);
	io_uring_prep_openat(entry, AT_FDCWD, "/etc/passwd", O_RDONLY, 0);
	expect_refused(ring);

	entry = io_uring_get_sqe(ring);
	io_uring_prep_socket(entry, AF_INET, SOCK_STREAM, 0, 0);
	expect_refused(ring);

	entry = io_uring_get_sqe(ring);
	io_uring_prep_writev(entry, fd, &vector, 1, 0);
	expect_refused(ring);
	assert_int_equal(fd_drain_event(fd), 0);

	entry = io_uring_get_sqe(ring);
	io_uring_prep_fsync(entry, fd, 0);
	expect_refused(ring);

	/* An allowed operation with a flag that is not. */
	entry = io_uring_get_sqe(ring);
	io_uring_prep_poll_add(entry, fd, POLLIN);
	io_uring_sqe_set_flags(entry, IOSQE_ASYNC);
	expect_refused(ring);

	assert_int_equal(io_uring_register_files(ring, &fd, 1), -EACCES);
	assert_int_equal(io_uring_register_eventfd(ring, fd), -EACCES);
	loop_destroy(loop);
	fd_close(&fd);
}

/* A multishot poll whose completion finds no room is ended by the kernel. */
static void a_watch_that_the_kernel_ends_is_started_again(void **state)
{
	struct loop *loop = NULL;
	struct probe probe = {0};
	struct io_uring *ring;
	int fd = fd_create_event();
	uint64_t name;

	(void)state;
	loop = create_loop(1, LOOP_BACKEND_IO_URING);
	assert_int_equal(loop_enable(loop), 0);
	ring = &((struct loop_uring *)loop)->ring;
	assert_int_equal(loop_watch(loop, &probe.operation, fd, POLLIN, probe_callback), 0);
	assert_int_equal(loop_run_once(loop, 0), 0);
	/* Completions of nobody: what is not allowed fails at once. */
	while (io_uring_cq_ready(ring) < ring->cq.ring_entries) {
		struct io_uring_sqe *entry = io_uring_get_sqe(ring);

		io_uring_prep_nop(entry);
		io_uring_sqe_set_data64(entry, LOOP_NAME_NONE);
		assert_int_equal(io_uring_submit(ring), 1);
	}
	fd_signal_event(fd);
	assert_int_equal(io_uring_get_events(ring), 0);
	assert_true(io_uring_cq_has_overflow(ring));
	name = loop_name(loop, &probe.operation);
	run_until(loop, &probe, 1);
	assert_int_equal(probe.result, POLLIN);
	while (loop_run_once(loop, 0) > 0)
		;
	for (int i = 1; i <= 10; i++) {
		probe.calls = 0;
		fd_signal_event(fd);
		run_until(loop, &probe, 1);
	}
	assert_int_equal(loop_name(loop, &probe.operation), name);
	loop_destroy(loop);
	fd_close(&fd);
}

/* Two completions of one watch before its callback runs: it is told of the events of both. */
static void events_of_one_turn_are_joined(void **state)
{
	struct loop *loop = NULL;
	struct probe probe = {0};
	struct io_uring *ring;
	int fd = fd_create_event();

	(void)state;
	loop = create_loop(CAPACITY, LOOP_BACKEND_IO_URING);
	assert_int_equal(loop_enable(loop), 0);
	ring = &((struct loop_uring *)loop)->ring;
	assert_int_equal(loop_watch(loop, &probe.operation, fd, POLLIN | POLLOUT, probe_callback),
			 0);
	run_until(loop, &probe, 1);
	assert_int_equal(probe.result, POLLOUT);
	fd_signal_event(fd);
	assert_int_equal(io_uring_get_events(ring), 0);
	assert_int_equal(fd_drain_event(fd), 1); /* room again: an event as well */
	assert_int_equal(io_uring_get_events(ring), 0);
	assert_int_equal(io_uring_cq_ready(ring), 2);
	assert_int_equal(loop_run_once(loop, 0), 1);
	assert_int_equal(probe.result, POLLIN | POLLOUT);
	loop_destroy(loop);
	fd_close(&fd);
}

/* In a child: forbids io_uring_setup with @error and says which back end is chosen. */
static int backend_when_setup_fails(int error, enum loop_backend wanted)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
		struct loop *loop = NULL;

		if (seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint16_t)error),
				     SCMP_SYS(io_uring_setup), 0) < 0 ||
		    seccomp_load(filter) < 0)
			_exit(99);
		seccomp_release(filter);
		if (loop_create(&loop, CAPACITY, wanted) < 0)
			_exit(50);
		status = (int)loop_backend_in_use(loop);
		if (loop_enable(loop) < 0 || loop_run_once(loop, 0) != 0)
			_exit(98);
		loop_destroy(loop);
		_exit(status);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void epoll_is_chosen_where_io_uring_is_forbidden(void **state)
{
	struct loop *loop = NULL;

	(void)state;
	loop = create_loop(CAPACITY, LOOP_BACKEND_IO_URING);
	loop_destroy(loop);
	assert_int_equal(loop_create(&loop, CAPACITY, LOOP_BACKEND_ANY), 0);
	assert_int_equal(loop_backend_in_use(loop), LOOP_BACKEND_IO_URING);
	loop_destroy(loop);
	assert_int_equal(backend_when_setup_fails(EPERM, LOOP_BACKEND_ANY), LOOP_BACKEND_EPOLL);
	assert_int_equal(backend_when_setup_fails(ENOSYS, LOOP_BACKEND_ANY), LOOP_BACKEND_EPOLL);
	assert_int_equal(backend_when_setup_fails(EACCES, LOOP_BACKEND_ANY), LOOP_BACKEND_EPOLL);
	/* As an old kernel answers to every set of flags. */
	assert_int_equal(backend_when_setup_fails(EINVAL, LOOP_BACKEND_ANY), LOOP_BACKEND_EPOLL);
	/* Not refused, but failing: that is told. */
	assert_int_equal(backend_when_setup_fails(EMFILE, LOOP_BACKEND_ANY), 50);
	assert_int_equal(backend_when_setup_fails(EPERM, LOOP_BACKEND_IO_URING), 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_ring_does_only_what_the_loop_does),
		cmocka_unit_test(a_watch_that_the_kernel_ends_is_started_again),
		cmocka_unit_test(events_of_one_turn_are_joined),
		cmocka_unit_test(epoll_is_chosen_where_io_uring_is_forbidden),
	};

	return cmocka_run_group_tests_name("loop io_uring", tests, NULL, NULL);
}

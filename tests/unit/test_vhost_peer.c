/* SPDX-License-Identifier: Apache-2.0 */
/* The vhost-user front end against other processes: our back end, alive and dying, and the
 * virtiofsd that QEMU brings along. */
#include "vmm/virtio/vhost_frontend.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/vhost_machine.h"
#include "vmm/virtio/vhost_message.h"

/* A back end in a process of its own. */
static pid_t fork_toy(struct machine *machine)
{
	int pair[2];
	pid_t child;

	assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pair), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct toy toy = {.socket_fd = pair[1]};

		fd_close(&pair[0]);
		toy_serve(&toy);
		_exit(toy.result ? 1 : 0);
	}
	fd_close(&pair[1]);
	assert_int_equal(connect_frontend(machine, pair[0], 0), 0);
	return child;
}

static void end_child(pid_t child, int signal_number)
{
	int status;

	if (signal_number)
		assert_int_equal(kill(child, signal_number), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (signal_number)
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == signal_number);
	else
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_back_end_in_another_process(void **state)
{
	struct machine machine;
	pid_t child;

	(void)state;
	machine_create(&machine, EFD_NONBLOCK);
	child = fork_toy(&machine);
	assert_int_equal(activate(&machine, true), 0);
	exchange(&machine, 5000);
	/* it ends by itself when the front end does, also with its queues started */
	vhost_frontend_destroy(machine.frontend);
	machine.frontend = NULL;
	end_child(child, 0);
	machine_destroy(&machine);
}

/* SIGPIPE has its default action here: it would end this test. */
static void a_back_end_that_dies_is_an_error(void **state)
{
	struct machine machine;
	struct pollfd ready;
	pid_t child;

	(void)state;
	for (unsigned int variant = 0; variant < 2; variant++) {
		machine_create(&machine, EFD_NONBLOCK);
		child = fork_toy(&machine);
		if (variant)
			assert_int_equal(activate(&machine, true), 0);
		ready = (struct pollfd){.fd = vhost_frontend_socket(machine.frontend)};
		assert_int_equal(poll(&ready, 1, 0), 0);
		end_child(child, SIGKILL);
		assert_int_equal(poll(&ready, 1, 1000), 1);
		assert_true(ready.revents & POLLHUP);
		reset(&machine);
		assert_int_equal(activate(&machine, true), -EPIPE);
		reset(&machine);
		machine_destroy(&machine);
	}
}

static void on_lost(struct loop_operation *operation, int result)
{
	(void)operation;
	assert_true(result == -ECANCELED || (result & POLLHUP));
}

/* Also for the watcher of its socket; and it is waited for once, not again for each queue. */
static void a_back_end_that_hangs_is_lost(void **state)
{
	struct loop_operation watch = {0};
	struct loop *loop;
	struct machine machine;
	pid_t child;

	(void)state;
	machine_create(&machine, EFD_NONBLOCK);
	machine.patience_ms = 300; /* instead of ten seconds */
	child = fork_toy(&machine);
	assert_int_equal(loop_create(&loop, 1, LOOP_BACKEND_ANY), 0);
	assert_int_equal(loop_enable(loop), 0);
	assert_int_equal(
		loop_watch(loop, &watch, vhost_frontend_socket(machine.frontend), 0, on_lost), 0);
	assert_int_equal(loop_run_once(loop, 0), 0);
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(activate(&machine, true), -ETIMEDOUT);
	assert_int_equal(loop_run_once(loop, 1000), 1);
	assert_int_equal(activate(&machine, true), -EPIPE);
	end_child(child, SIGKILL);
	loop_end(loop, &watch);
	loop_destroy(loop);
	machine_destroy(&machine);
}

/* Answers the front end's first question byte by byte, and so never is silent for long. */
static void *answer_slowly(void *argument)
{
	const int fd = *(const int *)argument;
	const uint32_t words[] = {VHOST_GET_FEATURES, 1 | 4 /* version, reply */, 8, 0, 0};
	char request[64];

	assert_true(recv(fd, request, sizeof(request), 0) > 0);
	for (unsigned int i = 0; i < sizeof(words); i++) {
		usleep(100000);
		if (send(fd, (const char *)words + i, 1, MSG_NOSIGNAL) < 0)
			break;
	}
	return NULL;
}

/* A processor of the guest waits meanwhile: the time is for all of it, not for each byte. */
static void a_back_end_that_is_slow_is_lost(void **state)
{
	struct machine machine;
	struct timespec begin, end;
	pthread_t thread;
	int pair[2];

	(void)state;
	machine_create(&machine, EFD_NONBLOCK);
	machine.patience_ms = 500;
	assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pair), 0);
	assert_int_equal(pthread_create(&thread, NULL, answer_slowly, &pair[1]), 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	assert_int_equal(connect_frontend(&machine, pair[0], 0), -ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_in_range((end.tv_sec - begin.tv_sec) * 1000 +
				(end.tv_nsec - begin.tv_nsec) / 1000000,
			400, 1500);
	pthread_join(thread, NULL);
	fd_close(&pair[1]);
	machine_destroy(&machine);
}

/* Sends one FUSE_INIT to the daemon that Debian's QEMU brings along, which shares no line with us.
 */
static void fuse_init(struct machine *machine)
{
	const struct {
		uint32_t length, opcode;
		uint64_t unique, nodeid;
		uint32_t uid, gid, pid, padding;
		uint32_t major, minor, max_readahead, flags;
	} request = {.length = 56, .opcode = 26, .unique = 77, .major = 7, .minor = 31};
	const struct ring_buffer buffers[] = {{0x20000, 40, false},
					      {HIGH_GPA, 16, false},
					      {0x21000, 16, true},
					      {0x22000, 64, true}};
	uint64_t unique;
	uint32_t words[3], written;
	uint16_t head;

	memcpy(machine->host + 0x20000, &request, 40);
	memcpy(host_at(machine, HIGH_GPA), (const char *)&request + 40, 16);
	assert_true(ring_add(&machine->drivers[1], buffers, 4, 0) >= 0);
	ring_show(&machine->drivers[1]);
	kick(machine, 1);
	while (!ring_take_used(&machine->drivers[1], &head, &written))
		wait_for_interrupt(machine);
	memcpy(words, machine->host + 0x21000, 8); /* length, error */
	memcpy(&unique, machine->host + 0x21008, sizeof(unique));
	assert_int_equal(words[0], written);
	assert_int_equal(words[1], 0);
	assert_int_equal(unique, 77);
	memcpy(words, machine->host + 0x22000, 8); /* major, minor */
	assert_int_equal(words[0], 7);
	assert_true(words[1] >= 31);
}

static void the_stock_virtiofsd_is_driven(void **state)
{
	static const char program[] = "/usr/lib/qemu/virtiofsd";
	char directory[] = "/tmp/mvagent-vhost-XXXXXX";
	struct machine machine;
	/* bound to nothing: the kernel finds a name in the abstract namespace */
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t length = sizeof(address);
	int listener, socket_fd;
	pid_t child;

	(void)state;
	if (access(program, X_OK) < 0 || geteuid() != 0) {
		print_message("skipped: needs %s and root\n", program);
		skip();
	}
	machine_create(&machine, EFD_NONBLOCK);
	assert_non_null(mkdtemp(directory));
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(listener, 1), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		char option[32], source[64];

		/* this one accepts on the descriptor that it is given */
		snprintf(option, sizeof(option), "--fd=%d", listener);
		snprintf(source, sizeof(source), "source=%s", directory);
		fcntl(listener, F_SETFD, 0);
		execl(program, program, option, "-o", source, "-o", "sandbox=chroot", "-o",
		      "log_level=err", (char *)NULL);
		_exit(127);
	}
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(socket_fd, (struct sockaddr *)&address, length), 0);
	fd_close(&listener);
	assert_int_equal(connect_frontend(&machine, socket_fd, 0), 0);
	for (unsigned int life = 0; life < 3; life++) {
		assert_int_equal(activate(&machine, life % 2), 0);
		fuse_init(&machine);
		reset(&machine);
	}
	vhost_frontend_destroy(machine.frontend);
	machine.frontend = NULL;
	end_child(child, 0);
	assert_int_equal(rmdir(directory), 0);
	machine_destroy(&machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_back_end_in_another_process),
		cmocka_unit_test(a_back_end_that_dies_is_an_error),
		cmocka_unit_test(a_back_end_that_hangs_is_lost),
		cmocka_unit_test(a_back_end_that_is_slow_is_lost),
		cmocka_unit_test(the_stock_virtiofsd_is_driven),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

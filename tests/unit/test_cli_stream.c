/* SPDX-License-Identifier: Apache-2.0 */
/* The command's standard streams on the host's side: every byte, end of file in both directions, a
 * reader that leaves, and descriptors that others have made non-blocking. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/base/fd.h"
#include "vmm/cli/stream.h"

#define PATIENCE_MS 20000

/* A stream between a pipe, which is the user's, and a socket, which is the guest's. */
struct carriage {
	struct stream *stream;
	int user;     /* the test's end of the pipe */
	int user_far; /* the stream's */
	int guest;    /* the test's end of the socket */
	int guest_far;
};

static void carriage_open(struct carriage *carriage, bool to_guest)
{
	int pipes[2], sockets[2];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(fd_create_socket_pair(SOCK_STREAM, sockets), 0);
	carriage->user = pipes[to_guest ? 1 : 0];
	carriage->user_far = pipes[to_guest ? 0 : 1];
	carriage->guest = sockets[0];
	carriage->guest_far = sockets[1];
	carriage->stream = calloc(1, sizeof(*carriage->stream));
	assert_non_null(carriage->stream);
	carriage->stream->to_guest = to_guest;
	carriage->stream->from = to_guest ? carriage->user_far : carriage->guest_far;
	carriage->stream->to = to_guest ? carriage->guest_far : carriage->user_far;
	carriage->stream->done_fd = fd_create_event();
	assert_true(carriage->stream->done_fd >= 0);
}

static void carriage_start(struct carriage *carriage)
{
	assert_int_equal(stream_start(carriage->stream), 0);
}

static bool carriage_is_done(const struct carriage *carriage, int milliseconds)
{
	struct pollfd pollfd = {.fd = carriage->stream->done_fd, .events = POLLIN};

	return poll(&pollfd, 1, milliseconds) == 1;
}

static void carriage_finish(struct carriage *carriage)
{
	assert_true(carriage_is_done(carriage, PATIENCE_MS));
	stream_join(carriage->stream);
	stream_join(carriage->stream); /* once is enough */
	fd_close(&carriage->stream->done_fd);
	free(carriage->stream);
	fd_close(&carriage->user);
	fd_close(&carriage->user_far);
	fd_close(&carriage->guest);
	fd_close(&carriage->guest_far);
}

/* Byte @index of the test's data: no short period, all values. */
static uint8_t data_at(uint64_t index)
{
	return (uint8_t)((index * 2654435761U) >> 13);
}

struct writer {
	int fd;
	uint64_t length;
	int error;
	pthread_t thread;
};

static void *writer_thread(void *argument)
{
	struct writer *writer = argument;
	uint8_t block[70001];

	for (uint64_t done = 0; done < writer->length && !writer->error;) {
		uint64_t count = writer->length - done;

		if (count > sizeof(block))
			count = sizeof(block);
		for (uint64_t i = 0; i < count; i++)
			block[i] = data_at(done + i);
		writer->error = fd_write_full(writer->fd, block, count);
		done += count;
	}
	fd_close(&writer->fd);
	return NULL;
}

static void writer_start(struct writer *writer, int *fd, uint64_t length)
{
	*writer = (struct writer){.fd = fd_take(fd), .length = length};
	assert_int_equal(pthread_create(&writer->thread, NULL, writer_thread, writer), 0);
}

/* Reads @length bytes, all of which must be right. */
static void read_data(int fd, uint64_t length)
{
	static uint8_t block[65537];

	for (uint64_t total = 0; total < length;) {
		uint64_t wanted = length - total < sizeof(block) ? length - total : sizeof(block);
		ssize_t count = read(fd, block, wanted);

		assert_true(count > 0);
		for (ssize_t i = 0; i < count; i++) {
			if (block[i] != data_at(total + (uint64_t)i))
				fail_msg("byte %llu is wrong", (unsigned long long)total);
		}
		total += (uint64_t)count;
	}
}

static void expect_end_of_file(int fd)
{
	char byte;

	assert_int_equal(read(fd, &byte, 1), 0);
}

#define FIFTY_MEGABYTES (50U << 20)

static void carry_to_guest(bool nonblocking)
{
	struct carriage carriage;
	struct writer writer;

	carriage_open(&carriage, true);
	if (nonblocking)
		assert_int_equal(fd_set_nonblocking(carriage.user_far, 1), 0);
	carriage_start(&carriage);
	writer_start(&writer, &carriage.user, FIFTY_MEGABYTES);
	read_data(carriage.guest, FIFTY_MEGABYTES);
	expect_end_of_file(carriage.guest);
	pthread_join(writer.thread, NULL);
	assert_int_equal(writer.error, 0);
	assert_true(carriage_is_done(&carriage, PATIENCE_MS));
	carriage_finish(&carriage);
}

static void carry_to_user(bool nonblocking)
{
	struct carriage carriage;
	struct writer writer;

	carriage_open(&carriage, false);
	if (nonblocking)
		assert_int_equal(fd_set_nonblocking(carriage.user_far, 1), 0);
	carriage_start(&carriage);
	writer_start(&writer, &carriage.guest, FIFTY_MEGABYTES);
	read_data(carriage.user, FIFTY_MEGABYTES);
	pthread_join(writer.thread, NULL);
	assert_int_equal(writer.error, 0);
	assert_true(carriage_is_done(&carriage, PATIENCE_MS));
	assert_int_equal(carriage.stream->write_error, 0);
	carriage_finish(&carriage);
}

static void test_fifty_megabytes(void **state)
{
	(void)state;
	carry_to_guest(false);
	carry_to_user(false);
}

/* The user's descriptor is shared with a program that wants it non-blocking. */
static void test_nonblocking_user(void **state)
{
	(void)state;
	carry_to_guest(true);
	carry_to_user(true);
}

/* Such a descriptor stays as it was. */
static void test_flags_stay(void **state)
{
	struct carriage carriage;
	int flags;

	(void)state;
	carriage_open(&carriage, false);
	flags = fcntl(carriage.user_far, F_GETFL);
	carriage_start(&carriage);
	assert_int_equal(fd_write_full(carriage.guest, "x", 1), 0);
	fd_close(&carriage.guest);
	assert_true(carriage_is_done(&carriage, PATIENCE_MS));
	assert_int_equal(fcntl(carriage.user_far, F_GETFL), flags);
	carriage_finish(&carriage);
}

/* Both directions: an end before the first byte. */
static void test_empty(void **state)
{
	struct carriage carriage;

	(void)state;
	carriage_open(&carriage, true);
	fd_close(&carriage.user);
	carriage_start(&carriage);
	expect_end_of_file(carriage.guest);
	carriage_finish(&carriage);

	carriage_open(&carriage, false);
	shutdown(carriage.guest, SHUT_WR);
	carriage_start(&carriage);
	assert_true(carriage_is_done(&carriage, PATIENCE_MS));
	assert_int_equal(poll(&(struct pollfd){.fd = carriage.user, .events = POLLIN}, 1, 0), 0);
	carriage_finish(&carriage);
}

/* A half-close: after the user's end of file the guest can still be written from elsewhere. */
static void test_half_close(void **state)
{
	struct carriage carriage;
	char byte = 0;

	(void)state;
	carriage_open(&carriage, true);
	carriage_start(&carriage);
	assert_int_equal(fd_write_full(carriage.user, "q", 1), 0);
	fd_close(&carriage.user);
	assert_int_equal(fd_read_full(carriage.guest, &byte, 1), 0);
	assert_int_equal(byte, 'q');
	expect_end_of_file(carriage.guest);
	assert_int_equal(fd_write_full(carriage.guest, "r", 1), 0);
	carriage_finish(&carriage);
}

/* The user's reader left: the guest's writer gets EPIPE instead of waiting for ever, also when the
 * socket was full. */
static void test_reader_left(void **state)
{
	struct carriage carriage;
	struct writer writer;

	(void)state;
	carriage_open(&carriage, false);
	carriage_start(&carriage);
	writer_start(&writer, &carriage.guest, FIFTY_MEGABYTES);
	read_data(carriage.user, 1000);
	fd_close(&carriage.user);
	pthread_join(writer.thread, NULL);
	assert_int_equal(writer.error, -EPIPE);
	assert_true(carriage_is_done(&carriage, PATIENCE_MS));
	/* The user's own choice is no error. */
	assert_int_equal(carriage.stream->write_error, 0);
	carriage_finish(&carriage);
}

/* A full disk is one, and the writer is told as well. */
static void test_full_disk(void **state)
{
	struct carriage carriage;
	struct writer writer;

	(void)state;
	carriage_open(&carriage, false);
	fd_close(&carriage.user_far);
	carriage.user_far = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_true(carriage.user_far >= 0);
	carriage.stream->to = carriage.user_far;
	carriage_start(&carriage);
	writer_start(&writer, &carriage.guest, FIFTY_MEGABYTES);
	pthread_join(writer.thread, NULL);
	assert_int_equal(writer.error, -EPIPE);
	assert_true(carriage_is_done(&carriage, PATIENCE_MS));
	assert_int_equal(carriage.stream->write_error, ENOSPC);
	carriage_finish(&carriage);
}

/* The command closed its standard input, or never read it: the stream ends as soon as there is
 * something to carry. */
static void test_guest_stops_reading(void **state)
{
	struct carriage carriage;

	(void)state;
	carriage_open(&carriage, true);
	carriage_start(&carriage);
	fd_close(&carriage.guest);
	assert_false(carriage_is_done(&carriage, 50));
	assert_int_equal(fd_write_full(carriage.user, "x", 1), 0);
	carriage_finish(&carriage);
}

/* A reader that is slow holds up its writer, and loses nothing. */
static void test_back_pressure(void **state)
{
	struct carriage carriage;
	struct writer writer;

	(void)state;
	carriage_open(&carriage, false);
	carriage_start(&carriage);
	writer_start(&writer, &carriage.guest, 4 << 20);
	usleep(50000);
	/* The pipe, the buffer and the socket are far smaller than what is to be written. */
	assert_int_equal(pthread_tryjoin_np(writer.thread, NULL), EBUSY);
	assert_false(carriage_is_done(&carriage, 0));
	read_data(carriage.user, 4 << 20);
	pthread_join(writer.thread, NULL);
	assert_int_equal(writer.error, 0);
	carriage_finish(&carriage);
}

/* On a terminal, what acts on the user's machine is taken out, also when it comes in pieces. */
static void test_filtered(void **state)
{
	static const char *const pieces[] = {"a\x1b]5", "2;c;aGk",
					     ("=\x07"
					      "b\x1b["),
					     "1mc\x1b"};
	static const char wanted[] = "ab\x1b[1mc";
	struct carriage carriage;
	char seen[sizeof(wanted)] = "";

	(void)state;
	carriage_open(&carriage, false);
	carriage.stream->filtered = true;
	carriage_start(&carriage);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		assert_int_equal(fd_write_full(carriage.guest, pieces[i], strlen(pieces[i])), 0);
		usleep(2000);
	}
	fd_close(&carriage.guest);
	assert_int_equal(fd_read_full(carriage.user, seen, sizeof(wanted) - 1), 0);
	assert_string_equal(seen, wanted);
	carriage_finish(&carriage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fifty_megabytes), cmocka_unit_test(test_nonblocking_user),
		cmocka_unit_test(test_flags_stay),      cmocka_unit_test(test_empty),
		cmocka_unit_test(test_half_close),      cmocka_unit_test(test_reader_left),
		cmocka_unit_test(test_full_disk),       cmocka_unit_test(test_guest_stops_reading),
		cmocka_unit_test(test_back_pressure),   cmocka_unit_test(test_filtered),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the vsock device share: a guest with four ports, and the host's ends of these.
 */
#ifndef MVAGENT_TESTS_VSOCK_FIXTURE_H
#define MVAGENT_TESTS_VSOCK_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "tests/unit/vsock_guest.h"
#include "vmm/base/bytes.h"

#define PORT       1024U /* of stream 0; the others follow */
#define GUEST_PORT 5000U
#define WINDOW     LIMIT_VSOCK_BUFFER_BYTES

struct fixture {
	struct vsock_guest guest;
	int peers[GUEST_STREAMS]; /* the host's ends */
	uint64_t peer_sent[GUEST_STREAMS];
	uint64_t peer_received[GUEST_STREAMS];
};

static inline int setup(void **state, enum loop_backend backend, bool event_idx)
{
	static struct fixture fixture;
	struct fixture *f = &fixture;
	const int small = 8192;
	int pair[2];

	memset(f, 0, sizeof(*f));
	guest_create(&f->guest, backend, event_idx);
	for (unsigned int i = 0; i < GUEST_STREAMS; i++) {
		assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pair), 0);
		f->peers[i] = pair[0];
		if (i % 2 == 0) /* so that most of what the guest sends waits in the device */
			setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
		assert_int_equal(fd_set_nonblocking(pair[0], 1), 0);
		assert_int_equal(vsock_device_add_port(f->guest.device, PORT + i, pair[1]), 0);
		f->guest.streams[i] = (struct guest_stream){
			.host_port = PORT + i, .guest_port = GUEST_PORT + i, .window = 65536};
	}
	guest_start(&f->guest);
	*state = f;
	return 0;
}

static inline int setup_uring(void **state)
{
	return setup(state, LOOP_BACKEND_IO_URING, true);
}

static inline int setup_epoll(void **state)
{
	return setup(state, LOOP_BACKEND_EPOLL, true);
}

static inline int setup_uring_flags(void **state)
{
	return setup(state, LOOP_BACKEND_IO_URING, false);
}

static inline int setup_epoll_flags(void **state)
{
	return setup(state, LOOP_BACKEND_EPOLL, false);
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < GUEST_STREAMS; i++)
		fd_close(&f->peers[i]);
	guest_destroy(&f->guest);
	return 0;
}

static inline void connect_stream(struct fixture *f, unsigned int index)
{
	struct guest_stream *stream = &f->guest.streams[index];

	assert_true(guest_send(&f->guest, stream, VSOCK_OPERATION_REQUEST, 0));
	guest_settle(&f->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESPONSE], 1);
	assert_int_equal(stream->device_window, WINDOW);
}

/* The peer writes @length bytes of the pattern, as far as the socket takes them. */
static inline size_t peer_write(struct fixture *f, unsigned int index, size_t length)
{
	static uint8_t bytes[65536];
	ssize_t written;

	length = bytes_minimum(length, sizeof(bytes));
	pattern_fill(bytes, length, PORT + index, f->peer_sent[index]);
	written = send(f->peers[index], bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (written < 0)
		return 0;
	f->peer_sent[index] += (uint64_t)written;
	return (size_t)written;
}

/* The peer reads up to @length bytes and compares them. Returns as read(2) does, -errno. */
static inline ssize_t peer_read(struct fixture *f, unsigned int index, size_t length)
{
	static uint8_t bytes[65536];
	ssize_t result;

	result = recv(f->peers[index], bytes, bytes_minimum(length, sizeof(bytes)), MSG_DONTWAIT);
	if (result < 0)
		return -errno;
	assert_true(pattern_matches(bytes, (size_t)result, PORT + index, f->peer_received[index]));
	f->peer_received[index] += (uint64_t)result;
	return result;
}

/* Reads until there is nothing more; returns the last result: 0 (end of file) or -errno. */
static inline ssize_t peer_drain(struct fixture *f, unsigned int index)
{
	ssize_t result;

	do {
		guest_settle(&f->guest);
		result = peer_read(f, index, SIZE_MAX);
	} while (result > 0);
	return result;
}

/* Sends the whole window to a peer that does not read: most of it ends up in the backlog. */
static inline void fill_window(struct fixture *f, unsigned int index)
{
	struct guest_stream *stream = &f->guest.streams[index];
	uint32_t length;

	while ((length = guest_credit(stream)) > 0) {
		assert_true(
			guest_send_data(&f->guest, stream, (uint32_t)bytes_minimum(length, 65536)));
		guest_settle(&f->guest);
	}
	assert_true(stream->sent >= WINDOW);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 0);
}

#define ON_BOTH_BACK_ENDS(test)                                       \
	cmocka_unit_test_setup_teardown(test, setup_uring, teardown), \
		cmocka_unit_test_setup_teardown(test, setup_epoll, teardown)

#endif

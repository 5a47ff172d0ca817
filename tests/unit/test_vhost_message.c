/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vhost_message.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/descriptors.h"
#include "vmm/base/fd.h"

static int pair[2];

static int open_pair(void **state)
{
	(void)state;
	return fd_create_socket_pair(SOCK_STREAM, pair);
}

static int close_pair(void **state)
{
	(void)state;
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	return 0;
}

static bool same_file(int a, int b)
{
	struct stat status_a, status_b;

	assert_int_equal(fstat(a, &status_a), 0);
	assert_int_equal(fstat(b, &status_b), 0);
	return status_a.st_dev == status_b.st_dev && status_a.st_ino == status_b.st_ino;
}

static void a_message_arrives_with_its_descriptors(void **state)
{
	struct vhost_message sent = {
		.request = VHOST_SET_MEM_TABLE,
		.flags = VHOST_FLAG_VERSION | VHOST_FLAG_NEED_REPLY,
		.size = 8 + 8 * 32,
		.payload.memory.count = 8,
		.fd_count = 8,
	};
	struct vhost_message received;
	unsigned int before;

	(void)state;
	memset(sent.payload.memory.regions, 0x5a, sizeof(sent.payload.memory.regions));
	for (unsigned int i = 0; i < 8; i++) {
		sent.fds[i] = open(i % 2 ? "/dev/null" : "/dev/zero", O_RDONLY | O_CLOEXEC);
		assert_true(sent.fds[i] >= 0);
	}
	before = open_descriptors();
	for (unsigned int round = 0; round < 3; round++) {
		assert_int_equal(vhost_message_send(pair[0], &sent), 0);
		assert_int_equal(vhost_message_receive(pair[1], &received), 1);
		assert_int_equal(received.request, VHOST_SET_MEM_TABLE);
		assert_int_equal(received.flags, VHOST_FLAG_VERSION | VHOST_FLAG_NEED_REPLY);
		assert_int_equal(received.size, sent.size);
		assert_memory_equal(&received.payload, &sent.payload, sent.size);
		assert_int_equal(received.fd_count, 8);
		for (unsigned int i = 0; i < 8; i++) {
			assert_true(same_file(received.fds[i], sent.fds[i]));
			assert_int_equal(fcntl(received.fds[i], F_GETFD), FD_CLOEXEC);
		}
		assert_true(vhost_message_valid(&received));
		vhost_message_close_fds(&received);
		assert_int_equal(received.fd_count, 0);
	}
	assert_int_equal(open_descriptors(), before);
	vhost_message_close_fds(&sent);
}

/* Writes a message in single bytes, so that every read of it is short. */
static void *dribble(void *argument)
{
	const char *bytes = argument;

	for (unsigned int i = 0; i < VHOST_HEADER_BYTES + 8; i++) {
		if (write(pair[0], bytes + i, 1) != 1)
			return argument;
		usleep(500);
	}
	return NULL;
}

static void a_message_in_pieces_is_whole(void **state)
{
	struct vhost_message received, sent = {
					       .request = VHOST_SET_FEATURES,
					       .flags = VHOST_FLAG_VERSION,
					       .size = 8,
					       .payload.value = 0x123456789abcdef0,
				       };

	(void)state;
	for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
		pthread_t thread;
		void *failed;

		assert_int_equal(fd_set_nonblocking(pair[1], nonblocking), 0);
		assert_int_equal(pthread_create(&thread, NULL, dribble, &sent), 0);
		while (vhost_message_receive(pair[1], &received) == -EAGAIN)
			assert_true(nonblocking);
		pthread_join(thread, &failed);
		assert_null(failed);
		assert_int_equal(received.request, VHOST_SET_FEATURES);
		assert_true(received.payload.value == 0x123456789abcdef0);
	}
	assert_int_equal(vhost_message_receive(pair[1], &received), -EAGAIN);
}

static void the_end_of_the_connection_is_told(void **state)
{
	const uint32_t header[3] = {VHOST_SET_FEATURES, VHOST_FLAG_VERSION, 8};
	struct vhost_message message = {.request = VHOST_SET_OWNER, .flags = VHOST_FLAG_VERSION};
	const size_t lengths[] = {0, 1, 11, 12};

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(write(pair[0], header, lengths[i]), lengths[i]);
		fd_close(&pair[0]);
		assert_int_equal(vhost_message_receive(pair[1], &message), i ? -EPROTO : 0);
		message.size = 0;
		assert_int_equal(vhost_message_send(pair[1], &message), -EPIPE); /* and no signal */
		close_pair(state);
		assert_int_equal(open_pair(state), 0);
	}
}

static void messages_that_cannot_be_are_refused(void **state)
{
	const uint32_t headers[][3] = {
		{VHOST_SET_FEATURES, 0, 8},
		{VHOST_SET_FEATURES, 2, 8},
		{VHOST_SET_FEATURES, 3, 8},
		{VHOST_SET_FEATURES, VHOST_FLAG_VERSION, 1000},
		{VHOST_SET_FEATURES, VHOST_FLAG_VERSION, UINT32_MAX},
	};
	struct vhost_message message;

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		assert_int_equal(write(pair[0], headers[i], 12), 12);
		assert_int_equal(vhost_message_receive(pair[1], &message), -EPROTO);
	}
}

/* Sends @count copies of a descriptor with a header that is fine (or not). */
static void send_descriptors(unsigned int count, const uint32_t *header)
{
	int descriptors[FD_SEND_MAX];

	for (unsigned int i = 0; i < count; i++)
		descriptors[i] = pair[0];
	assert_int_equal(fd_send(pair[0], header, 12, descriptors, count), 0);
}

static void descriptors_do_not_leak(void **state)
{
	const uint32_t fine[3] = {VHOST_SET_OWNER, VHOST_FLAG_VERSION, 0};
	const uint32_t wrong[3] = {VHOST_SET_OWNER, 0, 0};
	unsigned int before = open_descriptors();
	struct vhost_message message;

	(void)state;
	for (unsigned int count = 1; count <= 16; count++) {
		send_descriptors(count, fine);
		assert_int_equal(vhost_message_receive(pair[1], &message), count > 8 ? -EPROTO : 1);
		assert_int_equal(message.fd_count, count > 8 ? 0 : count);
		assert_false(vhost_message_valid(&message) && message.fd_count);
		vhost_message_close_fds(&message);
		assert_int_equal(open_descriptors(), before);
		send_descriptors(count, wrong);
		assert_int_equal(vhost_message_receive(pair[1], &message), -EPROTO);
		assert_int_equal(open_descriptors(), before);
	}
}

struct form {
	uint32_t request, size;
	unsigned int fd_count;
	uint64_t first; /* the first 8 bytes of payload */
};

static bool valid(const struct form *form)
{
	struct vhost_message message = {
		.request = form->request,
		.flags = VHOST_FLAG_VERSION,
		.size = form->size,
		.payload.value = form->first,
		.fd_count = form->fd_count,
	};

	if (form->request == VHOST_GET_CONFIG || form->request == VHOST_SET_CONFIG)
		message.payload.config.size = (uint32_t)(form->first >> 32);
	return vhost_message_valid(&message);
}

static void each_request_has_its_form(void **state)
{
	const struct form good[] = {
		{VHOST_GET_FEATURES, 0, 0, 0},
		{VHOST_SET_FEATURES, 8, 0, 0},
		{VHOST_SET_OWNER, 0, 0, 0},
		{VHOST_SET_MEM_TABLE, 8, 0, 0},
		{VHOST_SET_MEM_TABLE, 40, 1, 1},
		{VHOST_SET_MEM_TABLE, 264, 8, 8},
		{VHOST_SET_MEM_TABLE, 264, 2, 2}, /* the whole array, two used */
		{VHOST_SET_VRING_NUM, 8, 0, 0},
		{VHOST_SET_VRING_ADDR, 40, 0, 0},
		{VHOST_SET_VRING_KICK, 8, 1, 0},
		{VHOST_SET_VRING_CALL, 8, 0, VHOST_VRING_NO_FD},
		{VHOST_GET_CONFIG, 12, 0, 60ULL << 32},
		{VHOST_GET_CONFIG, 72, 0, 60ULL << 32},
		{VHOST_SET_CONFIG, 13, 0, 1ULL << 32},
		{VHOST_ADD_MEM_REG, 40, 1, 0},
		{VHOST_REM_MEM_REG, 40, 0, 0},
		{VHOST_REM_MEM_REG, 40, 1, 0},
		{99, 17, 3, 0}, /* not known here: for others to judge */
	};
	const struct form bad[] = {
		{VHOST_GET_FEATURES, 8, 0, 0},
		{VHOST_GET_FEATURES, 0, 1, 0},
		{VHOST_SET_FEATURES, 4, 0, 0},
		{VHOST_SET_FEATURES, 8, 1, 0},
		{VHOST_SET_MEM_TABLE, 4, 0, 0},
		{VHOST_SET_MEM_TABLE, 39, 1, 1},
		{VHOST_SET_MEM_TABLE, 40, 0, 1},
		{VHOST_SET_MEM_TABLE, 40, 2, 1},
		{VHOST_SET_MEM_TABLE, 264, 8, 9},
		{VHOST_SET_MEM_TABLE, 264, 0, UINT32_MAX},
		{VHOST_SET_VRING_NUM, 4, 0, 0},
		{VHOST_SET_VRING_ADDR, 32, 0, 0},
		{VHOST_SET_VRING_KICK, 8, 0, 0},
		{VHOST_SET_VRING_KICK, 8, 2, 0},
		{VHOST_SET_VRING_KICK, 4, 1, 0},
		{VHOST_SET_VRING_CALL, 8, 1, VHOST_VRING_NO_FD},
		{VHOST_SET_VRING_ENABLE, 8, 1, 0},
		{VHOST_GET_CONFIG, 8, 0, 0},
		{VHOST_GET_CONFIG, 71, 0, 60ULL << 32},
		{VHOST_GET_CONFIG, 12, 0, 257ULL << 32},
		{VHOST_GET_CONFIG, 12, 1, 0},
		{VHOST_SET_CONFIG, 12, 0, 1ULL << 32},
		{VHOST_SET_CONFIG, 268, 0, UINT64_MAX},
		{VHOST_ADD_MEM_REG, 40, 0, 0},
		{VHOST_ADD_MEM_REG, 40, 2, 0},
		{VHOST_ADD_MEM_REG, 32, 1, 0},
		{VHOST_REM_MEM_REG, 40, 2, 0},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(valid(&good[i]));
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(valid(&bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_message_arrives_with_its_descriptors, open_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(a_message_in_pieces_is_whole, open_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(the_end_of_the_connection_is_told, open_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(messages_that_cannot_be_are_refused, open_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(descriptors_do_not_leak, open_pair, close_pair),
		cmocka_unit_test(each_request_has_its_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

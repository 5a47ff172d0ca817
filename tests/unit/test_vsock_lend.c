/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of the guest for which the device asks for descriptors. */
#include "vmm/virtio/vsock.h"

#include <dirent.h>
#include <unistd.h>

#include "tests/unit/vsock_fixture.h"
#include "vmm/wire/lend.h"

#define LENT_PORT 1030U

struct lending {
	struct vsock_guest guest;
	int channel;
	uint32_t next_guest_port;
};

static int lend_setup(void **state, enum loop_backend backend)
{
	static struct lending lending;
	struct lending *l = &lending;
	int pair[2];

	memset(l, 0, sizeof(*l));
	guest_create(&l->guest, backend, true);
	assert_int_equal(fd_create_socket_pair(SOCK_SEQPACKET, pair), 0);
	l->channel = pair[0];
	l->next_guest_port = GUEST_PORT;
	assert_int_equal(vsock_device_set_lender(l->guest.device, LENT_PORT, pair[1]), 0);
	assert_int_equal(vsock_device_set_lender(l->guest.device, LENT_PORT, pair[1]), -EEXIST);
	guest_start(&l->guest);
	*state = l;
	return 0;
}

static int lend_setup_uring(void **state)
{
	return lend_setup(state, LOOP_BACKEND_ANY);
}

static int lend_setup_epoll(void **state)
{
	return lend_setup(state, LOOP_BACKEND_EPOLL);
}

static int lend_teardown(void **state)
{
	struct lending *l = *state;

	fd_close(&l->channel);
	guest_destroy(&l->guest);
	return 0;
}

/* The guest asks for a connection from a port of its own that is not in use. */
static struct guest_stream *request(struct lending *l, unsigned int index)
{
	struct guest_stream *stream = &l->guest.streams[index];

	*stream = (struct guest_stream){
		.host_port = LENT_PORT, .guest_port = l->next_guest_port++, .window = 65536};
	assert_true(guest_send(&l->guest, stream, VSOCK_OPERATION_REQUEST, 0));
	guest_settle(&l->guest);
	return stream;
}

static bool take_question(struct lending *l, struct lend_message *question)
{
	return recv(l->channel, question, sizeof(*question), MSG_DONTWAIT) == sizeof(*question);
}

/* Answers with @fd, which stays ours, or refuses (-1). */
static void answer(struct lending *l, const struct lend_message *question, int fd)
{
	assert_int_equal(fd_send(l->channel, question, sizeof(*question), &fd, fd >= 0 ? 1 : 0), 0);
	guest_settle(&l->guest);
}

/* Answers with one end of a pair and returns the other. */
static int lend(struct lending *l, const struct lend_message *question)
{
	int pair[2];

	assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pair), 0);
	answer(l, question, pair[1]);
	close(pair[1]);
	return pair[0];
}

static int connect_lent(struct lending *l, unsigned int index)
{
	struct guest_stream *stream = request(l, index);
	struct lend_message question;
	int peer;

	assert_int_equal(stream->packets[VSOCK_OPERATION_RESPONSE], 0);
	assert_true(take_question(l, &question));
	peer = lend(l, &question);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESPONSE], 1);
	assert_int_equal(stream->device_window, LIMIT_RELAY_BUFFER_BYTES);
	return peer;
}

/* Both directions, each with an end of its own. */
static void connections_side_by_side(void **state)
{
	struct lending *l = *state;
	uint8_t bytes[4096], seen[4096];
	int peers[2];

	for (unsigned int i = 0; i < 2; i++)
		peers[i] = connect_lent(l, i);
	for (unsigned int i = 0; i < 2; i++) {
		struct guest_stream *stream = &l->guest.streams[i];

		assert_true(guest_send_data(&l->guest, stream, 1000 + i));
		pattern_fill(bytes, sizeof(bytes), LENT_PORT, 0);
		assert_int_equal(send(peers[i], bytes, 2000 + i, 0), 2000 + i);
		guest_settle(&l->guest);
		assert_int_equal(stream->received, 2000 + i);
		assert_false(stream->corrupt);
		assert_int_equal(recv(peers[i], seen, sizeof(seen), MSG_DONTWAIT), 1000 + i);
		assert_true(pattern_matches(seen, 1000 + i, LENT_PORT, 0));
		guest_send(&l->guest, stream, VSOCK_OPERATION_SHUTDOWN, VSOCK_SHUTDOWN_SEND);
		guest_settle(&l->guest);
		assert_int_equal(recv(peers[i], seen, sizeof(seen), MSG_DONTWAIT), 0);
		assert_int_equal(send(peers[i], bytes, 1, 0), 1);
		close(peers[i]);
		guest_settle(&l->guest);
		assert_int_equal(stream->received, 2001 + i);
		assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	}
}

static void refused(void **state)
{
	struct lending *l = *state;
	struct guest_stream *stream = request(l, 0);
	struct lend_message question;

	assert_true(take_question(l, &question));
	answer(l, &question, -1);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESPONSE], 0);
	close(connect_lent(l, 1));
}

/* A guest that no longer wants it, and an answer for what is no longer there. */
static void too_late(void **state)
{
	struct lending *l = *state;
	struct guest_stream *stream = request(l, 0);
	struct lend_message first, second;
	uint8_t byte;
	int peer;

	assert_true(take_question(l, &first));
	guest_send(&l->guest, stream, VSOCK_OPERATION_RESET, 0);
	guest_settle(&l->guest);
	stream = request(l, 1);
	assert_true(take_question(l, &second));
	assert_int_equal(first.slot, second.slot);
	assert_int_not_equal(first.serial, second.serial);
	peer = lend(l, &first);
	assert_int_equal(recv(peer, &byte, 1, MSG_DONTWAIT), 0); /* it was closed */
	close(peer);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESPONSE], 0);
	close(lend(l, &second));
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESPONSE], 1);
	/* And slots that there never were. */
	for (unsigned int slot = 0; slot < 5000; slot += 7) {
		first.slot = slot;
		close(lend(l, &first));
	}
}

static void packets_before_the_answer(void **state)
{
	struct lending *l = *state;
	struct guest_stream *stream = request(l, 0);
	struct lend_message question;

	assert_true(guest_send_data(&l->guest, stream, 100));
	guest_settle(&l->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	assert_true(take_question(l, &question));
	close(lend(l, &question));
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESPONSE], 0);
	stream = request(l, 1);
	assert_true(guest_send(&l->guest, stream, VSOCK_OPERATION_REQUEST, 0));
	guest_settle(&l->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	assert_true(guest_send_data(&l->guest, stream, 10)); /* of none */
	guest_settle(&l->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 2);
}

static unsigned int open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned int count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* Places and descriptors come back, whoever ends it. */
static void again_and_again(void **state)
{
	struct lending *l = *state;
	unsigned int before = open_descriptors();

	for (unsigned int i = 0; i < 4 * LIMIT_RELAY_CONNECTIONS; i++) {
		struct guest_stream *stream = &l->guest.streams[0];
		int peer = connect_lent(l, 0);

		if (i % 3 == 0)
			guest_send(&l->guest, stream, VSOCK_OPERATION_RESET, 0);
		if (i % 3 == 1)
			guest_send(&l->guest, stream, VSOCK_OPERATION_SHUTDOWN,
				   VSOCK_SHUTDOWN_BOTH);
		guest_settle(&l->guest);
		close(peer);
		guest_settle(&l->guest);
	}
	assert_int_equal(open_descriptors(), before);
}

/* More than there is room for, and more than the socket for the questions holds. */
static void as_many_as_there_may_be(void **state)
{
	struct lending *l = *state;
	unsigned int asked = 0, responses, refusals = 0;
	struct lend_message question;

	for (unsigned int i = 0; i < LIMIT_RELAY_CONNECTIONS + 10; i++) {
		l->guest.stray_resets = 0;
		request(l, 0);
		refusals += l->guest.streams[0].packets[VSOCK_OPERATION_RESET];
	}
	assert_int_equal(refusals, 10);
	l->guest.strays = l->guest.stray_resets = 0;
	while (take_question(l, &question)) {
		asked++;
		answer(l, &question, -1);
	}
	assert_int_equal(asked, LIMIT_RELAY_CONNECTIONS);
	/* All of these guest ports have had their answer; the streams were reused. */
	responses = l->guest.strays;
	assert_int_equal(responses, 0);
	assert_true(l->guest.stray_resets >= LIMIT_RELAY_CONNECTIONS - 1);
	close(connect_lent(l, 1));
}

static void the_relay_ends(void **state)
{
	struct lending *l = *state;
	struct guest_stream *stream = request(l, 0);

	fd_close(&l->channel);
	guest_settle(&l->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	stream = request(l, 1);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
}

/* A device that is reset while connections are asked for and open. */
static void device_reset(void **state)
{
	struct lending *l = *state;
	struct lend_message question;
	uint8_t byte;
	int peer = connect_lent(l, 0);

	request(l, 1);
	guest_start(&l->guest);
	guest_settle(&l->guest);
	assert_int_equal(recv(peer, &byte, 1, MSG_DONTWAIT), 0);
	close(peer);
	assert_true(take_question(l, &question));
	close(lend(l, &question));
	close(connect_lent(l, 2));
}

#define ON_BOTH(test)                                                           \
	cmocka_unit_test_setup_teardown(test, lend_setup_uring, lend_teardown), \
		cmocka_unit_test_setup_teardown(test, lend_setup_epoll, lend_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(connections_side_by_side),
		ON_BOTH(refused),
		ON_BOTH(too_late),
		ON_BOTH(packets_before_the_answer),
		ON_BOTH(again_and_again),
		ON_BOTH(as_many_as_there_may_be),
		ON_BOTH(the_relay_ends),
		ON_BOTH(device_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

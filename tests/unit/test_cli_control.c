/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's end of the control connection: bytes that come in any pieces, and messages that
 * must wait for room. */
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/cli/control.h"

/* The supervisor's end, and the guest's. */
struct connection {
	struct control control;
	int guest;
	int host;
};

static void connection_open(struct connection *connection)
{
	int pair[2];

	assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pair), 0);
	connection->host = pair[0];
	connection->guest = pair[1];
	control_init(&connection->control, pair[0]);
}

static void connection_close(struct connection *connection)
{
	control_destroy(&connection->control);
	fd_close(&connection->host);
	fd_close(&connection->guest);
}

static void guest_write(struct connection *connection, const void *bytes, size_t length)
{
	assert_int_equal(fd_write_full(connection->guest, bytes, length), 0);
}

/* HELLO, STARTED (no payload) and FAILED (a long one), as init would send them. */
static size_t encode_dialogue(uint8_t *bytes)
{
	static char text[401];
	struct session_failure failure = {SESSION_STAGE_EXEC, ENOENT, text};
	uint8_t *parts[3];
	size_t lengths[3], total = 0;

	memset(text, 't', sizeof(text) - 1);
	assert_int_equal(session_encode_value(SESSION_HELLO, 7, &parts[0], &lengths[0]), 0);
	assert_int_equal(session_encode_empty(SESSION_STARTED, &parts[1], &lengths[1]), 0);
	assert_int_equal(session_encode_failure(&failure, &parts[2], &lengths[2]), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++) {
		memcpy(bytes + total, parts[i], lengths[i]);
		total += lengths[i];
		free(parts[i]);
	}
	return total;
}

static void expect_message(unsigned int index, const struct session_message *message)
{
	char text[SESSION_FAILURE_TEXT_BYTES + 1];
	struct session_failure failure;
	uint32_t value;

	if (index == 0) {
		assert_int_equal(message->type, SESSION_HELLO);
		assert_int_equal(session_decode_value(message->payload, message->length, &value),
				 0);
		assert_int_equal(value, 7);
	} else if (index == 1) {
		assert_int_equal(message->type, SESSION_STARTED);
		assert_int_equal(message->length, 0);
	} else {
		assert_int_equal(index, 2);
		assert_int_equal(message->type, SESSION_FAILED);
		assert_int_equal(
			session_decode_failure(message->payload, message->length, &failure, text),
			0);
		assert_int_equal(failure.error, ENOENT);
		assert_int_equal(strlen(text), 400);
	}
}

/* Takes the messages that are complete; returns how many there are now. */
static unsigned int take_messages(struct connection *connection, unsigned int count)
{
	struct session_message message;
	int result;

	while ((result = control_receive(&connection->control, &message)) > 0)
		expect_message(count++, &message);
	assert_int_equal(result, 0);
	return count;
}

/* Two pieces, cut at every byte. */
static void test_every_split(void **state)
{
	uint8_t bytes[1024];
	size_t length = encode_dialogue(bytes);

	(void)state;
	for (size_t cut = 0; cut <= length; cut++) {
		struct connection connection;
		unsigned int count;

		connection_open(&connection);
		guest_write(&connection, bytes, cut);
		count = take_messages(&connection, 0);
		assert_true(cut == length || count < 3);
		guest_write(&connection, bytes + cut, length - cut);
		assert_int_equal(take_messages(&connection, count), 3);
		connection_close(&connection);
	}
}

static void test_byte_by_byte(void **state)
{
	struct connection connection;
	uint8_t bytes[1024];
	size_t length = encode_dialogue(bytes);
	unsigned int count = 0;

	(void)state;
	connection_open(&connection);
	for (size_t i = 0; i < length; i++) {
		guest_write(&connection, bytes + i, 1);
		count = take_messages(&connection, count);
	}
	assert_int_equal(count, 3);
	connection_close(&connection);
}

/* The longest that fits is taken; one byte more is refused before any of it is read. */
static void test_oversize(void **state)
{
	const uint32_t fits = CONTROL_RECEIVE_BYTES - sizeof(struct session_header);
	const uint32_t lengths[] = {fits, fits + 1, LIMIT_SESSION_MESSAGE_BYTES, UINT32_MAX};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct session_header header = {htole32(SESSION_EXITED), htole32(lengths[i])};
		static const uint8_t payload[CONTROL_RECEIVE_BYTES];
		struct session_message message;
		struct connection connection;

		connection_open(&connection);
		guest_write(&connection, &header, sizeof(header));
		guest_write(&connection, payload, fits);
		if (i == 0) {
			assert_int_equal(control_receive(&connection.control, &message), 1);
			assert_int_equal(message.length, fits);
		} else {
			assert_int_equal(control_receive(&connection.control, &message), -EPROTO);
			/* It stays refused. */
			assert_int_equal(control_receive(&connection.control, &message), -EPROTO);
		}
		connection_close(&connection);
	}
}

/* End of file is told apart from "not yet", in and between messages. */
static void test_end_of_file(void **state)
{
	const size_t cuts[] = {0, 4, 8, 10};
	uint8_t bytes[1024];

	(void)state;
	encode_dialogue(bytes);
	for (unsigned int i = 0; i < ARRAY_SIZE(cuts); i++) {
		struct session_message message;
		struct connection connection;

		connection_open(&connection);
		guest_write(&connection, bytes, cuts[i]);
		assert_int_equal(control_receive(&connection.control, &message), 0);
		fd_close(&connection.guest);
		assert_int_equal(control_receive(&connection.control, &message), -ENODATA);
		connection_close(&connection);
	}
}

static uint8_t *make_bytes(size_t length, uint8_t value)
{
	uint8_t *bytes = malloc(length);

	assert_non_null(bytes);
	memset(bytes, value, length);
	return bytes;
}

/* Reads @length bytes as the guest, flushing whenever there is none; all must be @value. */
static void expect_bytes(struct connection *connection, size_t length, uint8_t value)
{
	uint8_t buffer[4096];

	while (length) {
		size_t wanted = length < sizeof(buffer) ? length : sizeof(buffer);
		ssize_t count = recv(connection->guest, buffer, wanted, MSG_DONTWAIT);

		if (count < 0) {
			assert_int_equal(errno, EAGAIN);
			assert_int_equal(control_flush(&connection->control), 0);
			continue;
		}
		assert_true(count > 0);
		for (ssize_t i = 0; i < count; i++)
			assert_int_equal(buffer[i], value);
		length -= (size_t)count;
	}
}

/* More than the socket takes: the rest waits, later messages come after it, in order and whole. */
static void test_full_socket(void **state)
{
	const size_t large = 3 << 20;
	struct connection connection;
	const struct control *control = &connection.control;

	(void)state;
	connection_open(&connection);
	assert_int_equal(control_send(&connection.control, make_bytes(large, 1), large), 0);
	assert_int_equal(control_flush(&connection.control), 0);
	assert_true(control->outgoing_offset > 0 && control->outgoing_offset < large);
	/* Nobody reads: nothing more goes, and that is no error. */
	assert_int_equal(control_flush(&connection.control), 0);
	assert_int_equal(control_send(&connection.control, make_bytes(12, 2), 12), 0);
	assert_int_equal(control_send(&connection.control, make_bytes(1, 3), 1), 0);
	expect_bytes(&connection, large, 1);
	assert_int_equal(control_flush(&connection.control), 0);
	expect_bytes(&connection, 12, 2);
	expect_bytes(&connection, 1, 3);
	assert_int_equal(control->outgoing_offset, control->outgoing_length);
	/* The queue is empty again and takes the next. */
	assert_int_equal(control_send(&connection.control, make_bytes(5, 4), 5), 0);
	expect_bytes(&connection, 5, 4);
	connection_close(&connection);
}

/* A guest that is gone is an error, not a SIGPIPE. */
static void test_send_to_nobody(void **state)
{
	struct connection connection;

	(void)state;
	connection_open(&connection);
	fd_close(&connection.guest);
	assert_int_equal(control_send(&connection.control, make_bytes(5, 4), 5), 0);
	assert_int_equal(control_flush(&connection.control), -EPIPE);
	connection_close(&connection);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_split), cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_oversize),    cmocka_unit_test(test_end_of_file),
		cmocka_unit_test(test_full_socket), cmocka_unit_test(test_send_to_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

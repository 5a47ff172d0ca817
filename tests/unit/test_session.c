/* SPDX-License-Identifier: Apache-2.0 */
/* The session messages: what is encoded comes back, and what is not a message is refused. */
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
#include "vmm/wire/session.h"

#define HEADER sizeof(struct session_header)

static const char *const arguments[] = {"sh", "-c", "echo \"$1\"", "", "x\ny", NULL};
static const char *const variables[] = {"PATH=/bin", "EMPTY=", "EQUALS=a=b", NULL};
static const struct session_share shares[] = {
	{"share0", "/home/ada/repo", 0},
	{"share1", "/mnt/with space", 1},
};

static struct session_start example(void)
{
	return (struct session_start){
		.flags = SESSION_FLAG_TERMINAL,
		.uid = 1000,
		.gid = 100,
		.rows = 24,
		.columns = 65535,
		.user = "ada",
		.home = "/home/ada",
		.host_name = "engine",
		.directory = "/home/ada/repo",
		.authority = "-----BEGIN CERTIFICATE-----\n",
		.known_hosts = "git.test ssh-ed25519 AAAA\n",
		.git_config = "[user]\n\tname = \"Ada\"\n",
		.share_count = ARRAY_SIZE(shares),
		.shares = shares,
		.argument_count = ARRAY_SIZE(arguments) - 1,
		.arguments = arguments,
		.variable_count = ARRAY_SIZE(variables) - 1,
		.variables = variables,
	};
}

static void assert_same_strings(const char *const *a, const char *const *b, uint32_t count)
{
	for (uint32_t index = 0; index < count; index++)
		assert_string_equal(a[index], b[index]);
	assert_null(a[count]);
}

static void assert_same_start(const struct session_start *a, const struct session_start *b)
{
	assert_string_equal(a->authority, b->authority);
	assert_string_equal(a->git_config, b->git_config);
	assert_string_equal(a->known_hosts, b->known_hosts);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->uid, b->uid);
	assert_int_equal(a->gid, b->gid);
	assert_int_equal(a->rows, b->rows);
	assert_int_equal(a->columns, b->columns);
	assert_string_equal(a->user, b->user);
	assert_string_equal(a->home, b->home);
	assert_string_equal(a->host_name, b->host_name);
	assert_string_equal(a->directory, b->directory);
	assert_int_equal(a->share_count, b->share_count);
	for (uint32_t index = 0; index < a->share_count; index++) {
		assert_string_equal(a->shares[index].tag, b->shares[index].tag);
		assert_string_equal(a->shares[index].path, b->shares[index].path);
		assert_int_equal(a->shares[index].read_only, b->shares[index].read_only);
	}
	assert_int_equal(a->argument_count, b->argument_count);
	assert_same_strings(a->arguments, b->arguments, a->argument_count);
	assert_int_equal(a->variable_count, b->variable_count);
	assert_same_strings(a->variables, b->variables, a->variable_count);
}

/* Encodes, decodes from a copy of exactly the payload's size, and compares. */
static void assert_round_trip(const struct session_start *start)
{
	struct session_start *decoded;
	uint8_t *bytes, *payload;
	size_t length;

	assert_int_equal(session_encode_start(start, &bytes, &length), 0);
	payload = malloc(length - HEADER);
	assert_non_null(payload);
	memcpy(payload, bytes + HEADER, length - HEADER);
	free(bytes);
	assert_int_equal(session_decode_start(payload, length - HEADER, &decoded), 0);
	free(payload);
	assert_same_start(decoded, start);
	session_start_free(decoded);
}

static void test_start_round_trip(void **state)
{
	struct session_start start = example();

	(void)state;
	assert_round_trip(&start);
	start.flags = start.rows = start.columns = 0;
	start.share_count = start.variable_count = 0;
	start.argument_count = 1;
	start.arguments = (const char *const[]){"", NULL};
	start.variables = (const char *const[]){NULL};
	assert_round_trip(&start);
}

static void test_start_thousand_variables(void **state)
{
	static char storage[1000][32];
	static const char *list[1001];
	struct session_start start = example();

	(void)state;
	for (size_t index = 0; index < ARRAY_SIZE(storage); index++) {
		snprintf(storage[index], sizeof(storage[index]), "VARIABLE_%zu=%zu", index, index);
		list[index] = storage[index];
	}
	start.variable_count = ARRAY_SIZE(storage);
	start.variables = list;
	assert_round_trip(&start);
}

/* 16 arguments of MAX_ARG_STRLEN: the kernel's limit of 2 MiB. */
static void test_start_longest_arguments(void **state)
{
	const size_t size = 131072;
	const char *list[17] = {NULL};
	struct session_start start = example();
	char *argument = malloc(size);

	(void)state;
	assert_non_null(argument);
	memset(argument, 'a', size - 1);
	argument[size - 1] = 0;
	for (size_t index = 0; index < 16; index++)
		list[index] = argument;
	start.argument_count = 16;
	start.arguments = list;
	assert_round_trip(&start);
	free(argument);
}

/* Past each bound the sender is told, rather than the receiver. */
static void test_start_too_big(void **state)
{
	static const char *many[LIMIT_SESSION_STRINGS + 1];
	static const struct session_share nine[LIMIT_SHARES + 1];
	static char host_name[LIMIT_HOST_NAME_BYTES + 2];
	struct session_start start = example();
	char *huge = malloc(LIMIT_SESSION_MESSAGE_BYTES + 1U);
	uint8_t *bytes;
	size_t length;

	(void)state;
	assert_non_null(huge);
	memset(huge, 'h', LIMIT_SESSION_MESSAGE_BYTES);
	huge[LIMIT_SESSION_MESSAGE_BYTES] = 0;
	start.directory = huge;
	assert_int_equal(session_encode_start(&start, &bytes, &length), -E2BIG);
	huge[LIMIT_SESSION_MESSAGE_BYTES - 20] = 0;
	assert_int_equal(session_encode_start(&start, &bytes, &length), -E2BIG);
	free(huge);
	start = example();
	for (size_t index = 0; index < LIMIT_SESSION_STRINGS; index++)
		many[index] = "x";
	start.arguments = many;
	start.argument_count = LIMIT_SESSION_STRINGS;
	assert_int_equal(session_encode_start(&start, &bytes, &length), -E2BIG);
	start = example();
	start.shares = nine;
	start.share_count = ARRAY_SIZE(nine);
	assert_int_equal(session_encode_start(&start, &bytes, &length), -E2BIG);
	start = example();
	memset(host_name, 'n', sizeof(host_name) - 1);
	start.host_name = host_name;
	assert_int_equal(session_encode_start(&start, &bytes, &length), -E2BIG);
	host_name[LIMIT_HOST_NAME_BYTES] = 0;
	assert_round_trip(&start);
}

static void test_start_truncated_everywhere(void **state)
{
	struct session_start start = example();
	struct session_start *decoded;
	uint8_t *bytes;
	size_t length;

	(void)state;
	assert_int_equal(session_encode_start(&start, &bytes, &length), 0);
	for (size_t part = 0; part < length - HEADER; part++) {
		/* Of exactly this size, for the sanitizer to see a read behind it. */
		uint8_t *payload = malloc(part ? part : 1);

		assert_non_null(payload);
		memcpy(payload, bytes + HEADER, part);
		assert_int_equal(session_decode_start(payload, part, &decoded), -EPROTO);
		free(payload);
	}
	bytes = realloc(bytes, length + 1);
	assert_non_null(bytes);
	bytes[length] = 0;
	assert_int_equal(session_decode_start(bytes + HEADER, length - HEADER + 1, &decoded),
			 -EPROTO);
	free(bytes);
}

/* Decodes what @start encodes to, with the bytes of @from replaced by those of @to. */
static int decode_changed(const struct session_start *start, const char *from, const char *to)
{
	struct session_start *decoded = NULL;
	size_t length, size = strlen(from);
	uint8_t *bytes, *place;
	int result;

	assert_int_equal(session_encode_start(start, &bytes, &length), 0);
	place = memmem(bytes + HEADER, length - HEADER, from, size);
	assert_non_null(place);
	memcpy(place, to, size);
	result = session_decode_start(bytes + HEADER, length - HEADER, &decoded);
	session_start_free(decoded);
	free(bytes);
	return result;
}

static void test_start_bad_strings(void **state)
{
	struct session_start start = example();

	(void)state;
	assert_int_equal(decode_changed(&start, "engine", "motor."), 0);
	assert_int_equal(decode_changed(&start, "engine", "engi\0e"), -EPROTO);
	assert_int_equal(decode_changed(&start, "/home/ada/repo", "home/ada/repo/"), -EPROTO);
	assert_int_equal(decode_changed(&start, "/mnt/with space", "mnt/with space/"), -EPROTO);
	assert_int_equal(decode_changed(&start, "PATH=/bin", "=ATH=/bin"), -EPROTO);
	assert_int_equal(decode_changed(&start, "PATH=/bin", "PATH:/bin"), -EPROTO);
	start.user = "";
	assert_int_equal(decode_changed(&start, "engine", "engine"), -EPROTO);
	start = example();
	start.host_name = "";
	assert_int_equal(decode_changed(&start, "ada", "ada"), -EPROTO);
}

/* Decodes with the number at @index of the payload replaced. */
static int decode_with_number(unsigned int index, uint32_t value)
{
	struct session_start start = example();
	struct session_start *decoded = NULL;
	uint8_t *bytes;
	size_t length;
	int result;

	assert_int_equal(session_encode_start(&start, &bytes, &length), 0);
	memcpy(bytes + HEADER + 4 * index, &value, sizeof(value));
	result = session_decode_start(bytes + HEADER, length - HEADER, &decoded);
	session_start_free(decoded);
	free(bytes);
	return result;
}

static void test_start_bad_numbers(void **state)
{
	enum { FLAGS, UID, GID, ROWS, COLUMNS, SHARES, ARGUMENTS, VARIABLES };

	(void)state;
	assert_int_equal(decode_with_number(UID, 0), 0);
	assert_int_equal(decode_with_number(FLAGS, 8), -EPROTO);
	assert_int_equal(decode_with_number(UID, UINT32_MAX), -EPROTO);
	assert_int_equal(decode_with_number(GID, UINT32_MAX), -EPROTO);
	assert_int_equal(decode_with_number(ROWS, 0), -EPROTO);
	assert_int_equal(decode_with_number(ROWS, 65536), -EPROTO);
	assert_int_equal(decode_with_number(COLUMNS, 0), -EPROTO);
	assert_int_equal(decode_with_number(COLUMNS, 65536), -EPROTO);
	assert_int_equal(decode_with_number(SHARES, 1), -EPROTO);
	assert_int_equal(decode_with_number(SHARES, LIMIT_SHARES + 1), -EPROTO);
	assert_int_equal(decode_with_number(SHARES, UINT32_MAX), -EPROTO);
	assert_int_equal(decode_with_number(ARGUMENTS, 0), -EPROTO);
	assert_int_equal(decode_with_number(ARGUMENTS, 6), -EPROTO);
	assert_int_equal(decode_with_number(ARGUMENTS, LIMIT_SESSION_STRINGS), -EPROTO);
	assert_int_equal(decode_with_number(ARGUMENTS, UINT32_MAX), -EPROTO);
	assert_int_equal(decode_with_number(VARIABLES, 2), -EPROTO);
	assert_int_equal(decode_with_number(VARIABLES, UINT32_MAX - 4), -EPROTO);
}

static void test_failure(void **state)
{
	char text[SESSION_FAILURE_TEXT_BYTES + 1];
	char longer[SESSION_FAILURE_TEXT_BYTES + 100];
	struct session_failure failure = {SESSION_STAGE_EXEC, ENOENT, "executing no-such"};
	struct session_failure decoded;
	uint8_t *bytes;
	size_t length;

	(void)state;
	assert_int_equal(session_encode_failure(&failure, &bytes, &length), 0);
	assert_int_equal(session_decode_failure(bytes + HEADER, length - HEADER, &decoded, text),
			 0);
	assert_int_equal(decoded.stage, SESSION_STAGE_EXEC);
	assert_int_equal(decoded.error, ENOENT);
	assert_string_equal(decoded.text, "executing no-such");
	assert_string_equal(text, "executing no-such");
	for (size_t part = 0; part < length - HEADER; part++)
		assert_int_equal(session_decode_failure(bytes + HEADER, part, &decoded, text),
				 -EPROTO);
	bytes[HEADER] = SESSION_STAGE_EXEC + 1;
	assert_int_equal(session_decode_failure(bytes + HEADER, length - HEADER, &decoded, text),
			 -EPROTO);
	free(bytes);
	memset(longer, 'l', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	failure.text = longer;
	assert_int_equal(session_encode_failure(&failure, &bytes, &length), 0);
	assert_int_equal(session_decode_failure(bytes + HEADER, length - HEADER, &decoded, text),
			 0);
	assert_int_equal(strlen(text), SESSION_FAILURE_TEXT_BYTES);
	free(bytes);
}

/* A text longer than its bound would not fit the receiver's buffer. */
static void test_failure_text_too_long(void **state)
{
	static uint8_t payload[12 + SESSION_FAILURE_TEXT_BYTES + 1];
	const uint32_t numbers[] = {SESSION_STAGE_ROOT, EIO, SESSION_FAILURE_TEXT_BYTES + 1};
	char text[SESSION_FAILURE_TEXT_BYTES + 1];
	struct session_failure decoded;

	(void)state;
	memset(payload, 't', sizeof(payload));
	memcpy(payload, numbers, sizeof(numbers));
	assert_int_equal(session_decode_failure(payload, sizeof(payload), &decoded, text), -EPROTO);
}

static void test_value(void **state)
{
	uint8_t *bytes;
	size_t length;
	uint32_t value;

	(void)state;
	assert_int_equal(session_encode_value(SESSION_WINDOW, 0x12345678, &bytes, &length), 0);
	assert_int_equal(length, HEADER + 4);
	/* Little endian on every machine. */
	assert_memory_equal(bytes, "\6\0\0\0\4\0\0\0\x78\x56\x34\x12", 12);
	assert_int_equal(session_decode_value(bytes + HEADER, 4, &value), 0);
	assert_int_equal(value, 0x12345678);
	assert_int_equal(session_decode_value(bytes + HEADER, 3, &value), -EPROTO);
	assert_int_equal(session_decode_value(bytes, 5, &value), -EPROTO);
	free(bytes);
}

/* What session_receive makes of @length bytes followed by the end of the stream. */
static int receive_bytes(const void *bytes, size_t length, struct session_message *message)
{
	int pair[2], result;

	assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pair), 0);
	assert_int_equal(fd_write_full(pair[0], bytes, length), 0);
	fd_close(&pair[0]);
	result = session_receive(pair[1], message);
	fd_close(&pair[1]);
	return result;
}

static void test_receive(void **state)
{
	struct session_message message;
	uint8_t *bytes;
	size_t length;

	(void)state;
	assert_int_equal(session_encode_value(SESSION_EXITED, 256, &bytes, &length), 0);
	assert_int_equal(receive_bytes(bytes, length, &message), 1);
	assert_int_equal(message.type, SESSION_EXITED);
	assert_int_equal(message.length, 4);
	assert_memory_equal(message.payload, "\0\1\0\0", 4);
	free(message.payload);
	assert_int_equal(receive_bytes(bytes, 0, &message), 0);
	for (size_t part = 1; part < length; part++)
		assert_int_equal(receive_bytes(bytes, part, &message), -EPROTO);
	free(bytes);
	assert_int_equal(session_encode_empty(SESSION_KILL, &bytes, &length), 0);
	assert_int_equal(receive_bytes(bytes, length, &message), 1);
	assert_int_equal(message.type, SESSION_KILL);
	assert_int_equal(message.length, 0);
	free(bytes);
	assert_int_equal(receive_bytes("\0\0\0\0\0\0\0\0", 8, &message), -EPROTO);
	assert_int_equal(receive_bytes("\12\0\0\0\0\0\0\0", 8, &message), -EPROTO);
	assert_int_equal(receive_bytes("\2\0\0\0\1\0\100\0", 8, &message), -EPROTO);
	assert_int_equal(receive_bytes("\2\0\0\0\377\377\377\377", 8, &message), -EPROTO);
	assert_int_equal(session_receive(-1, &message), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start_round_trip),
		cmocka_unit_test(test_start_thousand_variables),
		cmocka_unit_test(test_start_longest_arguments),
		cmocka_unit_test(test_start_too_big),
		cmocka_unit_test(test_start_truncated_everywhere),
		cmocka_unit_test(test_start_bad_strings),
		cmocka_unit_test(test_start_bad_numbers),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_failure_text_too_long),
		cmocka_unit_test(test_value),
		cmocka_unit_test(test_receive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

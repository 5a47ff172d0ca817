/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/wire/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"

/* A buffer of known size being filled; the sizes were added up before. */
struct writer {
	uint8_t *next;
};

static void put_uint32(struct writer *writer, uint32_t value)
{
	for (unsigned int byte = 0; byte < sizeof(value); byte++)
		*writer->next++ = (uint8_t)(value >> (8 * byte));
}

/* A string on the wire: its length, then its bytes without a terminator. */
static void put_string(struct writer *writer, const char *string, size_t length)
{
	put_uint32(writer, (uint32_t)length);
	memcpy(writer->next, string, length);
	writer->next += length;
}

/* Starts a message with @length bytes of payload. */
static int begin_message(struct writer *writer, enum session_type type, size_t length,
			 uint8_t **bytes, size_t *total)
{
	*total = sizeof(struct session_header) + length;
	*bytes = malloc(*total);
	if (!*bytes)
		return -ENOMEM;
	writer->next = *bytes;
	put_uint32(writer, type);
	put_uint32(writer, (uint32_t)length);
	return 0;
}

/* Adds a string's size on the wire to *@length, which stays within the bound of a message. */
static int add_string(size_t *length, const char *string)
{
	size_t size = strlen(string);

	if (size > LIMIT_SESSION_MESSAGE_BYTES ||
	    *length + sizeof(uint32_t) + size > LIMIT_SESSION_MESSAGE_BYTES)
		return -E2BIG;
	*length += sizeof(uint32_t) + size;
	return 0;
}

static int add_strings(size_t *length, const char *const *strings, uint32_t count)
{
	int error = 0;

	for (uint32_t index = 0; !error && index < count; index++)
		error = add_string(length, strings[index]);
	return error;
}

/* In the order of the wire. */
static void list_names(const struct session_start *start, const char *names[SESSION_START_NAMES])
{
	const char *const all[SESSION_START_NAMES] = {
		start->user,
		start->home,
		start->host_name,
		start->directory,
		start->authority ? start->authority : "",
		start->git_config ? start->git_config : "",
		start->known_hosts ? start->known_hosts : "",
	};

	memcpy(names, all, sizeof(all));
}

/* The size of the payload of START, or an error when a bound would be broken. */
static int measure_start(const struct session_start *start, size_t *length)
{
	const char *names[SESSION_START_NAMES];
	uint64_t strings = ARRAY_SIZE(names) + 2ULL * start->share_count + start->argument_count +
			   start->variable_count;
	int error;

	if (start->share_count > LIMIT_SHARES || strings > LIMIT_SESSION_STRINGS ||
	    strlen(start->host_name) > LIMIT_HOST_NAME_BYTES)
		return -E2BIG;
	list_names(start, names);
	*length = SESSION_START_NUMBERS * sizeof(uint32_t);
	error = add_strings(length, names, ARRAY_SIZE(names));
	for (uint32_t index = 0; !error && index < start->share_count; index++) {
		error = add_string(length, start->shares[index].tag);
		if (!error)
			error = add_string(length, start->shares[index].path);
		*length += sizeof(uint32_t);
	}
	if (!error)
		error = add_strings(length, start->arguments, start->argument_count);
	if (!error)
		error = add_strings(length, start->variables, start->variable_count);
	return !error && *length > LIMIT_SESSION_MESSAGE_BYTES ? -E2BIG : error;
}

static void put_strings(struct writer *writer, const char *const *strings, uint32_t count)
{
	for (uint32_t index = 0; index < count; index++)
		put_string(writer, strings[index], strlen(strings[index]));
}

int session_encode_start(const struct session_start *start, uint8_t **bytes, size_t *length)
{
	const char *names[SESSION_START_NAMES];
	struct writer writer;
	size_t payload;
	int error;

	error = measure_start(start, &payload);
	if (!error)
		error = begin_message(&writer, SESSION_START, payload, bytes, length);
	if (error)
		return error;
	put_uint32(&writer, start->flags);
	put_uint32(&writer, start->uid);
	put_uint32(&writer, start->gid);
	put_uint32(&writer, start->rows);
	put_uint32(&writer, start->columns);
	put_uint32(&writer, start->share_count);
	put_uint32(&writer, start->argument_count);
	put_uint32(&writer, start->variable_count);
	list_names(start, names);
	put_strings(&writer, names, ARRAY_SIZE(names));
	for (uint32_t index = 0; index < start->share_count; index++) {
		const struct session_share *share = &start->shares[index];

		put_string(&writer, share->tag, strlen(share->tag));
		put_string(&writer, share->path, strlen(share->path));
		put_uint32(&writer, share->read_only);
	}
	put_strings(&writer, start->arguments, start->argument_count);
	put_strings(&writer, start->variables, start->variable_count);
	return 0;
}

void session_resize_start(uint8_t *bytes, uint32_t rows, uint32_t columns)
{
	/* The fourth and the fifth of the numbers. */
	struct writer writer = {bytes + sizeof(struct session_header) + 3 * sizeof(uint32_t)};

	put_uint32(&writer, rows);
	put_uint32(&writer, columns);
}

int session_encode_failure(const struct session_failure *failure, uint8_t **bytes, size_t *length)
{
	size_t text = strnlen(failure->text, SESSION_FAILURE_TEXT_BYTES);
	struct writer writer;
	int error =
		begin_message(&writer, SESSION_FAILED, 3 * sizeof(uint32_t) + text, bytes, length);

	if (error)
		return error;
	put_uint32(&writer, failure->stage);
	put_uint32(&writer, failure->error);
	put_string(&writer, failure->text, text);
	return 0;
}

int session_encode_value(enum session_type type, uint32_t value, uint8_t **bytes, size_t *length)
{
	struct writer writer;
	int error = begin_message(&writer, type, sizeof(value), bytes, length);

	if (!error)
		put_uint32(&writer, value);
	return error;
}

int session_encode_empty(enum session_type type, uint8_t **bytes, size_t *length)
{
	struct writer writer;

	return begin_message(&writer, type, 0, bytes, length);
}

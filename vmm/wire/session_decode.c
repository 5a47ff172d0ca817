/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/wire/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"

/* sizeof(tag) in struct virtio_fs_config: virtio 1.2, 5.11.4. */
#define SHARE_TAG_BYTES 36

/* Linux returns errnos from 1 to MAX_ERRNO (include/linux/err.h). */
#define ERRNO_LIMIT 4095

/* What is left of a payload, and where terminated copies of its strings go. */
struct reader {
	const uint8_t *next;
	size_t left;
	char *strings;
};

static int take_uint32(struct reader *reader, uint32_t *value)
{
	if (reader->left < sizeof(*value))
		return -EPROTO;
	*value = 0;
	for (unsigned int byte = 0; byte < sizeof(*value); byte++)
		*value |= (uint32_t)reader->next[byte] << (8 * byte);
	reader->next += sizeof(*value);
	reader->left -= sizeof(*value);
	return 0;
}

/* The copy takes one byte more than the string, and the string's length took four in the payload:
 * room for the payload's length is room for all copies. */
static int take_string(struct reader *reader, const char **string)
{
	uint32_t length;

	if (take_uint32(reader, &length) || length > reader->left ||
	    memchr(reader->next, 0, length))
		return -EPROTO;
	memcpy(reader->strings, reader->next, length);
	reader->strings[length] = 0;
	*string = reader->strings;
	reader->strings += length + 1;
	reader->next += length;
	reader->left -= length;
	return 0;
}

static int take_path(struct reader *reader, const char **path)
{
	return take_string(reader, path) || (*path)[0] != '/' ? -EPROTO : 0;
}

/* A list that ends in NULL; the storage was zeroed. */
static int take_strings(struct reader *reader, const char **strings, uint32_t count)
{
	for (uint32_t index = 0; index < count; index++) {
		if (take_string(reader, &strings[index]))
			return -EPROTO;
	}
	return 0;
}

static int take_numbers(struct reader *reader, struct session_start *start)
{
	uint32_t *const numbers[SESSION_START_NUMBERS] = {
		&start->flags,
		&start->uid,
		&start->gid,
		&start->rows,
		&start->columns,
		&start->share_count,
		&start->argument_count,
		&start->variable_count,
	};
	uint64_t strings;

	for (unsigned int index = 0; index < SESSION_START_NUMBERS; index++) {
		if (take_uint32(reader, numbers[index]))
			return -EPROTO;
	}
	if (start->flags & ~(SESSION_FLAG_TERMINAL | SESSION_FLAG_PROBE | SESSION_FLAG_MEMORY) ||
	    start->uid == UINT32_MAX || start->gid == UINT32_MAX)
		return -EPROTO;
	if (start->flags & SESSION_FLAG_TERMINAL &&
	    (!start->rows || !start->columns || start->rows > UINT16_MAX ||
	     start->columns > UINT16_MAX))
		return -EPROTO;
	strings = SESSION_START_NAMES + 2ULL * start->share_count + start->argument_count +
		  start->variable_count;
	if (start->share_count > LIMIT_SHARES || !start->argument_count ||
	    strings > LIMIT_SESSION_STRINGS)
		return -EPROTO;
	return 0;
}

static int take_names(struct reader *reader, struct session_start *start)
{
	if (take_string(reader, &start->user) || take_path(reader, &start->home) ||
	    take_string(reader, &start->host_name) || take_path(reader, &start->directory) ||
	    take_string(reader, &start->authority) || take_string(reader, &start->git_config) ||
	    take_string(reader, &start->known_hosts))
		return -EPROTO;
	if (!start->user[0] || !start->host_name[0] ||
	    strlen(start->host_name) > LIMIT_HOST_NAME_BYTES)
		return -EPROTO;
	return 0;
}

static int take_shares(struct reader *reader, struct session_share *shares, uint32_t count)
{
	for (uint32_t index = 0; index < count; index++) {
		struct session_share *share = &shares[index];

		if (take_string(reader, &share->tag) || take_path(reader, &share->path) ||
		    take_uint32(reader, &share->read_only))
			return -EPROTO;
		if (!share->tag[0] || strlen(share->tag) > SHARE_TAG_BYTES || share->read_only > 1)
			return -EPROTO;
	}
	return 0;
}

static int take_variables(struct reader *reader, const char **variables, uint32_t count)
{
	if (take_strings(reader, variables, count))
		return -EPROTO;
	for (uint32_t index = 0; index < count; index++) {
		if (variables[index][0] == '=' || !strchr(variables[index], '='))
			return -EPROTO;
	}
	return 0;
}

/* Lays out the one allocation: the structure, shares, two lists of pointers, strings. */
int session_decode_start(const uint8_t *payload, size_t length, struct session_start **start)
{
	struct reader reader = {.next = payload, .left = length};
	struct session_start numbers = {0};
	struct session_start *result;
	struct session_share *shares;
	const char **arguments, **variables;

	if (length > LIMIT_SESSION_MESSAGE_BYTES || take_numbers(&reader, &numbers))
		return -EPROTO;
	/* No pointer is allotted to a string that cannot be there. */
	if (((size_t)numbers.argument_count + numbers.variable_count) * sizeof(uint32_t) >
	    reader.left)
		return -EPROTO;
	result = calloc(1, sizeof(*result) + numbers.share_count * sizeof(*shares) +
				   (numbers.argument_count + 1U) * sizeof(*arguments) +
				   (numbers.variable_count + 1U) * sizeof(*variables) + length);
	if (!result)
		return -ENOMEM;
	*result = numbers;
	shares = (struct session_share *)(result + 1);
	arguments = (const char **)(shares + numbers.share_count);
	variables = arguments + numbers.argument_count + 1;
	reader.strings = (char *)(variables + numbers.variable_count + 1);
	if (take_names(&reader, result) || take_shares(&reader, shares, result->share_count) ||
	    take_strings(&reader, arguments, result->argument_count) ||
	    take_variables(&reader, variables, result->variable_count) || reader.left) {
		free(result);
		return -EPROTO;
	}
	result->shares = shares;
	result->arguments = arguments;
	result->variables = variables;
	*start = result;
	return 0;
}

void session_start_free(struct session_start *start)
{
	free(start);
}

int session_decode_failure(const uint8_t *payload, size_t length, struct session_failure *failure,
			   char text[SESSION_FAILURE_TEXT_BYTES + 1])
{
	struct reader reader = {.next = payload, .left = length, .strings = text};

	if (length > 3 * sizeof(uint32_t) + SESSION_FAILURE_TEXT_BYTES ||
	    take_uint32(&reader, &failure->stage) || take_uint32(&reader, &failure->error) ||
	    take_string(&reader, &failure->text) || reader.left)
		return -EPROTO;
	if (failure->stage < SESSION_STAGE_ROOT || failure->stage > SESSION_STAGE_EXEC ||
	    failure->error > ERRNO_LIMIT)
		return -EPROTO;
	return 0;
}

int session_decode_value(const uint8_t *payload, size_t length, uint32_t *value)
{
	struct reader reader = {.next = payload, .left = length};

	return take_uint32(&reader, value) || reader.left ? -EPROTO : 0;
}

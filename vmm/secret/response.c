/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/response.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/span.h"

#define CHUNK_DIGITS_MAX  15
#define LENGTH_DIGITS_MAX 18

static int refuse(struct response_stream *response, const char *reason)
{
	response->reason = reason;
	return -1;
}

static int end_tokens(struct response_stream *response)
{
	if (!response->tokens || token_scan_end(response->tokens) == 0)
		return 0;
	return refuse(response, response->tokens->reason);
}

static int read_length(struct response_stream *response, struct span value)
{
	uint64_t number = 0;

	for (size_t i = 0; i < value.length; i++) {
		if (value.at[i] < '0' || value.at[i] > '9' || value.length > LENGTH_DIGITS_MAX)
			return refuse(response, "has a Content-Length that is no number");
		number = 10 * number + (uint64_t)(value.at[i] - '0');
	}
	if (!value.length)
		return refuse(response, "has a Content-Length that is no number");
	if (response->has_length && response->left != number)
		return refuse(response, "has more than one Content-Length");
	response->has_length = true;
	response->left = number;
	return 0;
}

/* The last coding must be the one that says where the body ends, and only that. */
static int read_codings(struct response_stream *response, struct span list)
{
	while (list.length) {
		const char *comma = memchr(list.at, ',', list.length);
		const size_t length = comma ? (size_t)(comma - list.at) : list.length;
		const struct span coding = span_trim((struct span){list.at, length});

		if (coding.length && response->chunked)
			return refuse(response, "has a Transfer-Encoding after chunked");
		response->chunked |= span_is(coding, "chunked");
		list.at += length + (comma != NULL);
		list.length -= length + (comma != NULL);
	}
	return 0;
}

static int end_field(struct response_stream *response)
{
	const struct span line = {response->line, response->line_length};
	char *colon = memchr(line.at, ':', line.length);
	struct span name, value;

	if (strchr(" \t", line.at[0]))
		return response->framing ? refuse(response, "has a length over two lines") : 0;
	response->framing = false;
	if (!colon)
		return 0;
	name = span_trim((struct span){line.at, (size_t)(colon - line.at)});
	value = span_trim((struct span){colon + 1, line.length - (size_t)(colon - line.at) - 1});
	if (response->tokens && span_is(name, "Content-Encoding") && !span_is(value, "identity"))
		return refuse(response, "is packed, and there may be a token in it");
	response->framing = span_is(name, "Content-Length") || span_is(name, "Transfer-Encoding");
	if (!response->framing)
		return 0;
	if (response->line_is_cut)
		return refuse(response, "has a length in a line that is too long");
	return span_is(name, "Content-Length") ? read_length(response, value)
					       : read_codings(response, value);
}

/* "HTTP/1.1 200 OK" */
static int end_status(struct response_stream *response)
{
	const char *line = response->line;

	if (response->line_length < 12 || memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ' ||
	    (response->line_length > 12 && line[12] != ' '))
		return refuse(response, "is none of HTTP/1.1");
	response->status = 0;
	for (int i = 9; i < 12; i++) {
		if (line[i] < '0' || line[i] > '9')
			return refuse(response, "has a status that is no number");
		response->status = 10 * response->status + line[i] - '0';
	}
	response->has_length = response->chunked = response->framing = false;
	response->left = 0;
	response->state = RESPONSE_FIELDS;
	return 0;
}

/* What follows the head: RFC 9112, 6.3. */
static int end_head(struct response_stream *response)
{
	const int status = response->status;
	bool to_head;

	/* What comes now is no part of the head. */
	if (end_tokens(response) < 0)
		return -1;
	response->state = RESPONSE_STATUS;
	if (status == 101) {
		if (!request_upgraded(response->request))
			return refuse(response, "agrees to what was not asked for");
		response->state = RESPONSE_OPAQUE;
		return 0;
	}
	if (status < 200)
		return 0; /* others come before the final one: RFC 9110, 15.2 */
	to_head = request_answered(response->request);
	if (response->tokens && status == 206)
		return refuse(response, "is a part of one that may have a token in it");
	if (to_head || status == 204 || status == 304)
		return 0;
	if (response->chunked)
		response->state = RESPONSE_CHUNK_SIZE;
	else if (!response->has_length)
		response->state = RESPONSE_OPAQUE;
	else if (response->left)
		response->state = RESPONSE_LENGTH;
	return 0;
}

/* Digits, and after them at most an extension, which is not passed on. */
static int end_size(struct response_stream *response)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	size_t count = 0;

	response->left = 0;
	for (const char *digit; count < response->line_length && response->line[count] &&
				(digit = strchr(digits, response->line[count]));
	     count++)
		response->left = response->left << 4 | (uint64_t)((digit - digits) & 15);
	if (!count || count > CHUNK_DIGITS_MAX)
		return refuse(response, "has a chunk without a proper size");
	while (count < response->line_length && strchr(" \t", response->line[count]))
		count++;
	if (count < response->line_length && response->line[count] != ';')
		return refuse(response, "has a chunk without a proper size");
	response->state = response->left ? RESPONSE_CHUNK : RESPONSE_TRAILER;
	return 0;
}

/* A line is complete: what it says. */
static int end_line(struct response_stream *response)
{
	const bool empty = !response->line_length && !response->line_is_cut;

	switch (response->state) {
	case RESPONSE_STATUS:
		return end_status(response);
	case RESPONSE_FIELDS:
		return empty ? end_head(response) : end_field(response);
	case RESPONSE_CHUNK_SIZE:
		return end_size(response);
	case RESPONSE_CHUNK_END:
		response->state = RESPONSE_CHUNK_SIZE;
		return empty ? 0 : refuse(response, "has a chunk that is longer than it says");
	default: /* of the trailer */
		if (empty)
			response->state = RESPONSE_STATUS;
		return 0;
	}
}

/* Takes the rest of a line, or what there is of it. How many bytes, or -1. */
static ssize_t take_line(struct response_stream *response, const char *bytes, size_t length)
{
	const char *newline = memchr(bytes, '\n', length);
	const size_t count = newline ? (size_t)(newline - bytes) + 1 : length;
	const size_t room = sizeof(response->line) - response->line_length;
	const size_t kept = (size_t)bytes_minimum(room, newline ? count - 1 : count);
	int error;

	memcpy(response->line + response->line_length, bytes, kept);
	response->line_length += kept;
	response->line_is_cut |= kept < (newline ? count - 1 : count);
	if (!newline)
		return (ssize_t)count;
	if (response->line_length && response->line[response->line_length - 1] == '\r')
		response->line_length--;
	error = end_line(response);
	response->line_length = 0;
	response->line_is_cut = false;
	return error ? -1 : (ssize_t)count;
}

static bool is_chunked(enum response_state state)
{
	return state == RESPONSE_CHUNK_SIZE || state == RESPONSE_CHUNK ||
	       state == RESPONSE_CHUNK_END;
}

/* Without a NUL: they are bytes. */
static const char line_end[] = {'\r', '\n'}, last_chunk[] = {'0', '\r', '\n'};

/* Makes a chunk of @length bytes that lie at the start of @out. Returns how long it is. */
static size_t make_chunk(char *out, size_t length)
{
	char size[20];
	int count = snprintf(size, sizeof(size), "%zx\r\n", length);

	if (!length)
		return 0;
	memmove(out + count, out, length);
	memcpy(out, size, (size_t)count);
	memcpy(out + (size_t)count + length, line_end, sizeof(line_end));
	return length + (size_t)count + sizeof(line_end);
}

/* Lines between chunks do not pass; the last one is told when all that waits has left. */
static ssize_t take_chunk_line(struct response_stream *response, const char *bytes, size_t length,
			       size_t *taken, char *out)
{
	ssize_t count = take_line(response, bytes, length);
	size_t made;

	if (count < 0)
		return -1;
	*taken = (size_t)count;
	if (response->state != RESPONSE_TRAILER)
		return 0;
	if (end_tokens(response) < 0)
		return -1;
	made = make_chunk(out, masker_flush(&response->masker, out));
	response->masker.length = response->masker.passed = 0;
	memcpy(out + made, last_chunk, sizeof(last_chunk));
	return (ssize_t)(made + sizeof(last_chunk));
}

/* Contents, whatever they are. Returns how many bytes of @length are of them. */
static size_t count_contents(struct response_stream *response, size_t length)
{
	const size_t count = (size_t)bytes_minimum(length, response->left);

	response->left -= count;
	if (!response->left)
		response->state =
			response->state == RESPONSE_LENGTH ? RESPONSE_STATUS : RESPONSE_CHUNK_END;
	return count;
}

/* Contents less the tokens in them. Returns the length of what may leave, or -1. */
static ssize_t replace_tokens(struct response_stream *response, const char *bytes, size_t length,
			      char *out)
{
	const ssize_t made = token_scan_put(response->tokens, bytes, length, out);

	if (made < 0)
		return refuse(response, response->tokens->reason);
	/* Where it ends by its length. */
	return response->state == RESPONSE_STATUS && end_tokens(response) < 0 ? -1 : made;
}

/* What may leave goes through the masker into @out. */
static ssize_t pass(struct response_stream *response, enum response_state state, const char *bytes,
		    size_t length, char *out)
{
	char clean[TOKEN_SCAN_ROOM];
	ssize_t made;

	if (!response->tokens)
		return (ssize_t)masker_put(&response->masker, bytes, length, out);
	if (state != RESPONSE_LENGTH && state != RESPONSE_CHUNK && state != RESPONSE_OPAQUE) {
		if (token_scan_look(response->tokens, bytes, length) < 0)
			return refuse(response, response->tokens->reason);
		return (ssize_t)masker_put(&response->masker, bytes, length, out);
	}
	made = replace_tokens(response, bytes, length, clean);
	if (made < 0)
		return -1;
	length = masker_put(&response->masker, clean, (size_t)made, out);
	explicit_bzero(clean, (size_t)made);
	return (ssize_t)length;
}

ssize_t response_take(struct response_stream *response, const char *bytes, size_t length,
		      size_t *taken, char *out)
{
	const enum response_state state = response->state;
	ssize_t count, made;

	*taken = 0;
	if (response->tokens)
		length = (size_t)bytes_minimum(length, TOKEN_SCAN_BYTES);
	count = (ssize_t)length;
	if (state == RESPONSE_CHUNK_SIZE || state == RESPONSE_CHUNK_END)
		return take_chunk_line(response, bytes, length, taken, out);
	if (state == RESPONSE_LENGTH || state == RESPONSE_CHUNK)
		count = (ssize_t)count_contents(response, length);
	else if (state != RESPONSE_OPAQUE)
		count = take_line(response, bytes, length);
	if (count < 0)
		return -1;
	*taken = (size_t)count;
	made = pass(response, state, bytes, (size_t)count, out);
	if (made < 0)
		return -1;
	return is_chunked(state) ? (ssize_t)make_chunk(out, (size_t)made) : made;
}

size_t response_flush(struct response_stream *response, char *out)
{
	const size_t made = masker_flush(&response->masker, out);

	return is_chunked(response->state) ? make_chunk(out, made) : made;
}

bool response_is_between(const struct response_stream *response)
{
	return response->state == RESPONSE_STATUS && !response->line_length;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/http_body.h"

#include <stdio.h>
#include <string.h>

#include "vmm/base/bytes.h"

#define CHUNK_DIGITS_MAX 15

void http_body_begin(struct http_body *body, const struct http_request *request)
{
	*body = (struct http_body){.state = HTTP_BODY_DONE, .left = request->body_length};
	if (request->chunked)
		body->state = HTTP_BODY_CHUNK_SIZE;
	else if (request->body_length)
		body->state = HTTP_BODY_LENGTH;
}

/* Takes one byte of a line. 1: the line is complete, without its CRLF; 0; -1. */
static int take_line_byte(struct http_body *body, char byte, const char **reason)
{
	bool after_return = body->line_length && body->line[body->line_length - 1] == '\r';

	if (after_return != (byte == '\n')) {
		*reason = "has a line in its body that does not end as it must";
		return -1;
	}
	if (byte == '\n') {
		body->line_length--;
		return 1;
	}
	if ((byte >= 0 && byte < ' ' && byte != '\t' && byte != '\r') || byte == 0x7f ||
	    body->line_length == sizeof(body->line)) {
		*reason = "has a line between the parts of its body that is too long or none";
		return -1;
	}
	body->line[body->line_length++] = byte;
	return 0;
}

/* Hexadecimal digits and nothing else: extensions are not used, and understood in many ways. */
static int end_size(struct http_body *body, const char **reason)
{
	uint64_t size = 0;

	for (size_t i = 0; i < body->line_length; i++) {
		static const char digits[] = "0123456789abcdef0123456789ABCDEF";
		const char *digit = body->line[i] ? strchr(digits, body->line[i]) : NULL;

		if (!digit || body->line_length > CHUNK_DIGITS_MAX) {
			*reason = "has a chunk in its body without a proper size";
			return -1;
		}
		size = size << 4 | (uint64_t)((digit - digits) & 15);
	}
	if (!body->line_length) {
		*reason = "has a chunk in its body without a size";
		return -1;
	}
	body->left = size;
	body->state = size ? HTTP_BODY_CHUNK : HTTP_BODY_TRAILER;
	return 0;
}

static int end_trailer_line(struct http_body *body, const char **reason)
{
	if (!body->line_length) {
		body->state = HTTP_BODY_DONE;
		return 0;
	}
	body->trailer_bytes += body->line_length;
	if (body->trailer_bytes > LIMIT_SECRET_TRAILER_BYTES ||
	    !http_is_trailer(body->line, body->line_length)) {
		*reason = "has a trailer that cannot be passed on";
		return -1;
	}
	return 0;
}

static int end_line(struct http_body *body, const char **reason)
{
	int result = 0;

	if (body->state == HTTP_BODY_CHUNK_SIZE) {
		result = end_size(body, reason);
	} else if (body->state == HTTP_BODY_TRAILER) {
		result = end_trailer_line(body, reason);
	} else if (body->line_length) {
		*reason = "has a chunk in its body that is longer than it says";
		result = -1;
	} else {
		body->state = HTTP_BODY_CHUNK_SIZE;
	}
	body->line_length = 0;
	return result;
}

/* Contents, whatever they are. */
static size_t take_contents(struct http_body *body, size_t length)
{
	const size_t taken = (size_t)bytes_minimum(length, body->left);

	body->left -= taken;
	if (!body->left)
		body->state =
			body->state == HTTP_BODY_LENGTH ? HTTP_BODY_DONE : HTTP_BODY_CHUNK_END;
	return taken;
}

ssize_t http_body_take(struct http_body *body, const char *bytes, size_t length,
		       const char **reason)
{
	size_t done = 0;

	while (done < length && body->state != HTTP_BODY_DONE) {
		int result;

		if (body->state == HTTP_BODY_LENGTH || body->state == HTTP_BODY_CHUNK) {
			done += take_contents(body, length - done);
			continue;
		}
		result = take_line_byte(body, bytes[done++], reason);
		if (result > 0)
			result = end_line(body, reason);
		if (result < 0)
			return -1;
	}
	return (ssize_t)done;
}

int http_contents_check(struct stream_search *search, const struct secret_set *secrets,
			const void *bytes, size_t length, char reason[HTTP_REASON_BYTES])
{
	struct stream_text texts[LIMIT_SECRET_ALL];
	int found;

	secret_list_placeholders(secrets, texts);
	found = stream_search_piece(search, texts, secrets->count, bytes, length);
	if (found < 0)
		return 0;
	snprintf(reason, HTTP_REASON_BYTES,
		 "has the placeholder of %s in what is no header, where no secret is put",
		 secrets->secrets[found].name);
	return -1;
}

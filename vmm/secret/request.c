/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/request.h"

#include <stdio.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/token_request.h"

bool request_is_full(const struct request_stream *request)
{
	return sizeof(request->bytes) - request->length < REQUEST_PIECE_BYTES ||
	       request->state == REQUEST_WAITS;
}

void request_add(struct request_stream *request, const void *bytes, size_t length)
{
	memcpy(request->bytes + request->length, bytes, length);
	request->length += length;
}

static ssize_t refuse(struct request_stream *request, const char *reason)
{
	snprintf(request->reason, sizeof(request->reason), "%s", reason);
	return -1;
}

/* The first @length bytes leave; behind them nothing of a secret stays. */
static void leave(struct request_stream *request, char *bytes, size_t length)
{
	memcpy(bytes, request->bytes, length);
	request->length -= length;
	memmove(request->bytes, request->bytes + length, request->length);
	explicit_bzero(request->bytes + request->length, length);
}

static void note_uses(struct request_stream *request, const struct http_request *read)
{
	for (unsigned int i = 0; i < LIMIT_SECRETS; i++)
		request->uses[i] += read->uses[i];
}

static enum request_state state_behind_head(const struct request_stream *request,
					    const struct http_request *read)
{
	if (read->upgrade)
		return REQUEST_WAITS;
	if (request->body.state == HTTP_BODY_DONE)
		return REQUEST_HEAD;
	if (read->token.kind != HTTP_TOKEN_NONE && request->body.state == HTTP_BODY_LENGTH &&
	    read->body_length <= LIMIT_SECRET_TOKEN_REQUEST_BYTES)
		return REQUEST_TOKEN;
	return REQUEST_BODY;
}

static void note_method(struct request_stream *request, bool head)
{
	const uint64_t bit = UINT64_C(1) << request->begun % REQUEST_UNANSWERED;

	request->heads = head ? request->heads | bit : request->heads & ~bit;
	request->begun++;
}

static ssize_t take_head(struct request_stream *request, char *bytes)
{
	const char *reason = "";
	struct http_request read;
	size_t made;
	long length;

	if (request->begun - request->answered == REQUEST_UNANSWERED)
		return 0;
	length = http_head_length(request->bytes, request->length, &reason);
	if (length < 0)
		return refuse(request, reason);
	if (length > LIMIT_SECRET_HEAD_BYTES)
		return refuse(request, "has a head of more than 64 KiB");
	if (length == 0)
		return 0;
	/* Its head, secret and all, could be what the body before has asked somebody else for. */
	if (request->last)
		return refuse(request,
			      "follows one whose body some servers overlook; it may have a "
			      "connection of its own");
	made = (size_t)length;
	leave(request, bytes, made);
	if (http_head_rewrite(bytes, &made, &request->target, &read, request->reason) < 0)
		return -1;
	/* Only of the first is it clear which answer is its. */
	if (read.upgrade && request->begun)
		return refuse(request, "has an Upgrade and is not the first of its connection");
	note_uses(request, &read);
	http_body_begin(&request->body, &read);
	note_method(request, read.head);
	request->last = read.overlooked;
	request->state = state_behind_head(request, &read);
	request->token = read;
	return (ssize_t)made;
}

/* @length bytes that are no head: no placeholder belongs there. */
static ssize_t take_contents(struct request_stream *request, char *bytes, size_t length)
{
	if (http_contents_check(&request->search, request->target.secrets, request->bytes, length,
				request->reason) < 0)
		return -1;
	leave(request, bytes, length);
	return (ssize_t)length;
}

/* All of the body, once it is there. */
static ssize_t take_token(struct request_stream *request, char *bytes)
{
	const size_t length = (size_t)request->body.left;

	if (request->length < length)
		return 0;
	memset(request->token.uses, 0, sizeof(request->token.uses));
	if (token_request_rewrite(request->bytes, length, &request->target, &request->token,
				  request->reason) < 0)
		return -1;
	note_uses(request, &request->token);
	request->state = REQUEST_HEAD;
	return take_contents(request, bytes, length);
}

ssize_t request_take(struct request_stream *request, char *bytes, size_t size)
{
	const size_t length = (size_t)bytes_minimum(request->length, size);
	const char *reason = "";
	ssize_t taken;

	if (!request->length)
		return 0;
	switch (request->state) {
	case REQUEST_HEAD:
		return take_head(request, bytes);
	case REQUEST_BODY:
		taken = http_body_take(&request->body, request->bytes, length, &reason);
		if (taken < 0)
			return refuse(request, reason);
		if (request->body.state == HTTP_BODY_DONE)
			request->state = REQUEST_HEAD;
		return take_contents(request, bytes, (size_t)taken);
	case REQUEST_TOKEN:
		return take_token(request, bytes);
	case REQUEST_OPAQUE:
		return take_contents(request, bytes, length);
	case REQUEST_WAITS:
		break;
	}
	return 0;
}

bool request_upgraded(struct request_stream *request)
{
	if (request->state != REQUEST_WAITS)
		return false;
	request->state = REQUEST_OPAQUE;
	return true;
}

bool request_answered(struct request_stream *request)
{
	const uint64_t bit = UINT64_C(1) << request->answered % REQUEST_UNANSWERED;

	if (request->state == REQUEST_WAITS)
		request->state = REQUEST_HEAD;
	if (request->answered == request->begun)
		return false; /* nobody has asked */
	request->answered++;
	return (request->heads & bit) != 0;
}

bool request_is_between(const struct request_stream *request)
{
	return !request->length &&
	       (request->state == REQUEST_HEAD || request->state == REQUEST_OPAQUE);
}

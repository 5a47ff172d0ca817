/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/http2_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"

#define PIPE_BYTES_MIN 4096U

static void wipe_and_free(char *bytes, size_t length)
{
	if (bytes)
		explicit_bzero(bytes, length);
	free(bytes);
}

/* Moves what is there into @size bytes, at their start. */
static int change_room(struct http2_pipe *pipe, size_t size)
{
	char *bytes = malloc(size);

	if (!bytes)
		return -ENOMEM;
	if (pipe->bytes)
		memcpy(bytes, pipe->bytes + pipe->at, pipe->length);
	wipe_and_free(pipe->bytes, pipe->size);
	pipe->bytes = bytes;
	pipe->size = size;
	pipe->at = 0;
	return 0;
}

/* Makes room for @length more, at the end of what is there. */
static int make_room(struct http2_pipe *pipe, size_t length)
{
	size_t size = pipe->size ? pipe->size : PIPE_BYTES_MIN;

	if (pipe->bytes && pipe->at + pipe->length + length <= pipe->size)
		return 0;
	while (size < pipe->length + length)
		size *= 2;
	if (pipe->bytes && size == pipe->size) {
		memmove(pipe->bytes, pipe->bytes + pipe->at, pipe->length);
		pipe->at = 0;
		return 0;
	}
	return change_room(pipe, size);
}

int http2_pipe_add(struct http2_pipe *pipe, const void *bytes, size_t length)
{
	int error = length ? make_room(pipe, length) : 0;

	if (error || !length)
		return error;
	memcpy(pipe->bytes + pipe->at + pipe->length, bytes, length);
	pipe->length += length;
	return 0;
}

static void give_room_back(struct http2_pipe *pipe)
{
	wipe_and_free(pipe->bytes, pipe->size);
	pipe->bytes = NULL;
	pipe->size = pipe->at = 0;
}

size_t http2_pipe_take(struct http2_pipe *pipe, void *bytes, size_t size)
{
	const size_t length = (size_t)bytes_minimum(size, pipe->length);
	size_t enough = pipe->size;

	if (!length)
		return 0;
	memcpy(bytes, pipe->bytes + pipe->at, length);
	pipe->at += length;
	pipe->length -= length;
	/* Of many streams that once had much each may have little now. Where there is no memory for
	 * less the room stays. */
	while (enough > PIPE_BYTES_MIN && pipe->length <= enough / 4)
		enough /= 2;
	if (!pipe->length)
		give_room_back(pipe);
	else if (enough < pipe->size)
		change_room(pipe, enough);
	return length;
}

int http2_pipe_keep_trailer(struct http2_pipe *pipe, const char *bytes, size_t length)
{
	if (!length)
		return 0;
	pipe->trailer = malloc(length);
	if (!pipe->trailer)
		return -ENOMEM;
	memcpy(pipe->trailer, bytes, length);
	pipe->trailer_length = length;
	return 0;
}

size_t http2_pipe_empty(struct http2_pipe *pipe)
{
	const size_t length = pipe->length;

	give_room_back(pipe);
	wipe_and_free(pipe->trailer, pipe->trailer_length);
	pipe->trailer = NULL;
	pipe->length = pipe->trailer_length = 0;
	return length;
}

static void forget_rest(struct http2_rest *rest)
{
	wipe_and_free(rest->bytes, rest->length);
	*rest = (struct http2_rest){0};
}

/* The masker goes on where it was in this stream. */
static void take_up(struct http2_rest *rest, struct masker *masker)
{
	if (rest->length)
		memcpy(masker->bytes, rest->bytes, rest->length);
	masker->length = rest->length;
	masker->passed = rest->passed;
	forget_rest(rest);
}

/* And is free for another one: hardly ever does it hold anything. */
static int put_down(struct http2_rest *rest, struct masker *masker)
{
	const struct http2_rest held = {masker->length, masker->passed, NULL};

	masker->length = masker->passed = 0;
	if (!held.length)
		return 0;
	*rest = held;
	rest->bytes = malloc(held.length);
	if (!rest->bytes) {
		*rest = (struct http2_rest){0};
		return -ENOMEM;
	}
	memcpy(rest->bytes, masker->bytes, held.length);
	return 0;
}

int http2_stream_mask(struct http2_stream *stream, struct masker *masker, const void *bytes,
		      size_t length)
{
	char out[sizeof(masker->bytes)];
	size_t made;
	int error;

	take_up(&stream->rest, masker);
	made = masker_put(masker, bytes, length, out);
	error = put_down(&stream->rest, masker);
	return error ? error : http2_pipe_add(&stream->down, out, made);
}

int http2_stream_replace(struct http2_stream *stream, struct masker *masker, const void *bytes,
			 size_t length)
{
	char clean[TOKEN_SCAN_ROOM];
	const ssize_t made = token_scan_put(stream->tokens, bytes, length, clean);
	int error;

	if (made < 0)
		return -EPROTO;
	error = http2_stream_mask(stream, masker, clean, (size_t)made);
	explicit_bzero(clean, (size_t)made);
	return error;
}

int http2_stream_flush(struct http2_stream *stream, struct masker *masker)
{
	char out[sizeof(masker->bytes)];
	size_t made;
	int error;

	if (stream->rest.length == stream->rest.passed)
		return 0;
	take_up(&stream->rest, masker);
	made = masker_flush(masker, out);
	error = put_down(&stream->rest, masker);
	return error ? error : http2_pipe_add(&stream->down, out, made);
}

size_t http2_stream_empty_answer(struct http2_stream *stream)
{
	size_t length = http2_pipe_empty(&stream->down);

	length += stream->rest.length - stream->rest.passed;
	forget_rest(&stream->rest);
	if (stream->tokens) {
		length += token_scan_held(stream->tokens);
		token_scan_end(stream->tokens);
	}
	return stream->ours ? 0 : length;
}

void http2_stream_free(struct http2_stream *stream)
{
	http2_pipe_empty(&stream->up);
	http2_stream_empty_answer(stream);
	http2_pipe_empty(&stream->held);
	if (stream->tokens)
		explicit_bzero(stream->tokens, sizeof(*stream->tokens));
	free(stream->tokens);
	explicit_bzero(&stream->token, sizeof(stream->token));
	explicit_bzero(&stream->search, sizeof(stream->search));
	free(stream);
}

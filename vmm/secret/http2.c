/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/http2.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/http2_internal.h"

static enum http2_side other_side(enum http2_side side)
{
	return side == HTTP2_GUEST ? HTTP2_SERVER : HTTP2_GUEST;
}

static int32_t id_on(const struct http2_stream *stream, enum http2_side side)
{
	return side == HTTP2_GUEST ? stream->guest_id : stream->server_id;
}

/* What goes to a side. */
static struct http2_pipe *pipe_to(struct http2_stream *stream, enum http2_side side)
{
	return side == HTTP2_GUEST ? &stream->down : &stream->up;
}

int http2_on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		   size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
		   void *user)
{
	struct http2 *http2 = user;
	const enum http2_side side =
		session == http2->sessions[HTTP2_GUEST] ? HTTP2_GUEST : HTTP2_SERVER;

	(void)frame;
	http2_head_add(&http2->heads[side], name, name_length, value, value_length,
		       (flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0);
	return 0;
}

/* The library would leave it out. */
int http2_on_invalid_field(nghttp2_session *session, const nghttp2_frame *frame,
			   const uint8_t *name, size_t name_length, const uint8_t *value,
			   size_t value_length, uint8_t flags, void *user)
{
	struct http2 *http2 = user;
	const enum http2_side side =
		session == http2->sessions[HTTP2_GUEST] ? HTTP2_GUEST : HTTP2_SERVER;

	(void)frame;
	(void)name;
	(void)name_length;
	(void)value;
	(void)value_length;
	(void)flags;
	if (!http2->heads[side].objection)
		http2->heads[side].objection = "has a field that none has in HTTP/2";
	return 0;
}

void http2_consume(struct http2_stream *stream, enum http2_side side, size_t length)
{
	nghttp2_session *session = stream->http2->sessions[side];

	if (side == HTTP2_SERVER && stream->http2->server_over)
		return;
	if (id_on(stream, side))
		nghttp2_session_consume(session, id_on(stream, side), length);
	else
		nghttp2_session_consume_connection(session, length);
}

void http2_resume(struct http2_stream *stream, enum http2_side side)
{
	if (id_on(stream, side))
		nghttp2_session_resume_data(stream->http2->sessions[side], id_on(stream, side));
}

/* Behind the body there is its end, or a trailer. */
static int end_body(struct http2_pipe *pipe, struct http2 *http2, nghttp2_session *session,
		    int32_t id, uint32_t *flags)
{
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (!pipe->trailer)
		return 0;
	*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	http2_head_restore(&http2->trailer, pipe->trailer, pipe->trailer_length);
	return nghttp2_submit_trailer(session, id, http2->trailer.wire, http2->trailer.wire_count);
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t size,
			 uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct http2 *http2 = user;
	struct http2_stream *stream = source->ptr;
	const enum http2_side side =
		session == http2->sessions[HTTP2_GUEST] ? HTTP2_GUEST : HTTP2_SERVER;
	struct http2_pipe *pipe = pipe_to(stream, side);
	const size_t length = http2_pipe_take(pipe, bytes, size);

	if (length && !(side == HTTP2_GUEST && stream->ours))
		http2_consume(stream, other_side(side), length);
	if (!length && !pipe->over)
		return NGHTTP2_ERR_DEFERRED;
	if (!pipe->length && pipe->over && end_body(pipe, http2, session, id, flags) < 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	return (ssize_t)length;
}

nghttp2_data_provider http2_provider(struct http2_stream *stream)
{
	return (nghttp2_data_provider){.source.ptr = stream, .read_callback = read_body};
}

/* Nothing more of the request goes to the server. */
static void stop_request(struct http2_stream *stream)
{
	struct http2 *http2 = stream->http2;
	const size_t length = http2_pipe_empty(&stream->up) + http2_pipe_empty(&stream->held);

	if (length)
		http2_consume(stream, HTTP2_GUEST, length);
	if (!stream->deaf && stream->server_id && !http2->server_over)
		nghttp2_submit_rst_stream(http2->sessions[HTTP2_SERVER], NGHTTP2_FLAG_NONE,
					  stream->server_id, NGHTTP2_CANCEL);
	stream->deaf = true;
}

/* Nothing more of what there is of an answer goes to the guest. */
static void stop_answer(struct http2_stream *stream)
{
	const size_t length = http2_stream_empty_answer(stream);

	stream->mute = true;
	if (length)
		http2_consume(stream, HTTP2_SERVER, length);
}

void http2_stop(struct http2_stream *stream)
{
	stop_request(stream);
	stop_answer(stream);
}

void http2_cancel(struct http2_stream *stream, uint32_t code)
{
	http2_stop(stream);
	if (stream->guest_id)
		nghttp2_submit_rst_stream(stream->http2->sessions[HTTP2_GUEST], NGHTTP2_FLAG_NONE,
					  stream->guest_id, code);
}

/* Both sides have ended it. */
static void look_for_end(struct http2_stream *stream)
{
	struct http2 *http2 = stream->http2;
	struct http2_stream **at = &http2->streams;

	if (stream->guest_id || stream->server_id)
		return;
	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	http2->stream_count--;
	http2_stream_free(stream);
}

/* What has been said whole still goes to the server. */
static void end_on_guest(struct http2_stream *stream, uint32_t code)
{
	stream->guest_id = 0;
	stop_answer(stream);
	if (stream->server_id && (code != NGHTTP2_NO_ERROR || !stream->up.over))
		stop_request(stream);
}

/* What has been said whole still goes to the guest. */
static void end_on_server(struct http2_stream *stream, uint32_t code)
{
	stream->server_id = 0;
	stop_request(stream);
	if (!stream->guest_id)
		return;
	if (!stream->mute && !stream->down.over)
		http2_cancel(stream, code == NGHTTP2_NO_ERROR ? NGHTTP2_INTERNAL_ERROR : code);
	else if (stream->told_all && !stream->up.over)
		http2_cancel(stream, NGHTTP2_NO_ERROR);
}

int http2_on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct http2 *http2 = user;
	struct http2_stream *stream = nghttp2_session_get_stream_user_data(session, id);

	if (!stream)
		return 0;
	if (session == http2->sessions[HTTP2_GUEST])
		end_on_guest(stream, code);
	else
		end_on_server(stream, code);
	look_for_end(stream);
	return 0;
}

void http2_close_to_guest(struct http2 *http2)
{
	nghttp2_session *guest = http2->sessions[HTTP2_GUEST];

	if (http2->closing)
		return;
	http2->closing = true;
	nghttp2_submit_goaway(guest, NGHTTP2_FLAG_NONE,
			      nghttp2_session_get_last_proc_stream_id(guest), NGHTTP2_NO_ERROR,
			      NULL, 0);
}

bool http2_may_take(const struct http2 *http2, enum http2_side side)
{
	if (http2->broken || (side == HTTP2_SERVER && http2->server_over))
		return false;
	if (nghttp2_session_get_outbound_queue_size(http2->sessions[HTTP2_GUEST]) >=
	    LIMIT_HTTP2_QUEUE)
		return false;
	return http2->server_over || nghttp2_session_get_outbound_queue_size(
					     http2->sessions[HTTP2_SERVER]) < LIMIT_HTTP2_QUEUE;
}

static int break_off(struct http2 *http2, enum http2_side side, const char *why)
{
	const struct http2_plan *plan = &http2->plan;
	char text[RELAY_EVENT_TEXT_BYTES];

	http2->broken = true;
	snprintf(text, sizeof(text), "%s:%u: the connection was stopped: HTTP/2 of %s: %s",
		 plan->target.host, plan->target.port,
		 side == HTTP2_GUEST ? "a program" : "the server", why);
	plan->tell(plan->user, side == HTTP2_GUEST ? RELAY_EVENT_DENIED : RELAY_EVENT_FAILED, text);
	return -1;
}

int http2_take(struct http2 *http2, enum http2_side side, const void *bytes, size_t length)
{
	ssize_t taken;

	if (http2->broken || (side == HTTP2_SERVER && http2->server_over))
		return -1;
	taken = nghttp2_session_mem_recv(http2->sessions[side], bytes, length);
	return taken == (ssize_t)length ? 0 : break_off(http2, side, nghttp2_strerror((int)taken));
}

ssize_t http2_give(struct http2 *http2, enum http2_side side, const uint8_t **bytes)
{
	ssize_t length;

	if (http2->broken || (side == HTTP2_SERVER && http2->server_over))
		return 0;
	length = nghttp2_session_mem_send(http2->sessions[side], bytes);
	return length < 0 ? break_off(http2, side, nghttp2_strerror((int)length)) : length;
}

/* None of its streams comes to an end any more. */
static void end_server(struct http2 *http2)
{
	struct http2_stream *next;

	http2->server_over = true;
	for (struct http2_stream *stream = http2->streams; stream; stream = next) {
		next = stream->next;
		if (stream->server_id)
			end_on_server(stream, NGHTTP2_INTERNAL_ERROR);
		look_for_end(stream);
	}
	http2_close_to_guest(http2);
}

void http2_end(struct http2 *http2, enum http2_side side)
{
	if (side == HTTP2_SERVER && !http2->server_over)
		end_server(http2);
	else if (side == HTTP2_GUEST && !http2->server_over)
		nghttp2_session_terminate_session(http2->sessions[HTTP2_SERVER], NGHTTP2_NO_ERROR);
}

bool http2_is_over(const struct http2 *http2, enum http2_side side)
{
	nghttp2_session *session = http2->sessions[side];

	return http2->broken || (side == HTTP2_SERVER && http2->server_over) ||
	       (!nghttp2_session_want_read(session) && !nghttp2_session_want_write(session));
}

bool http2_is_holding(const struct http2 *http2)
{
	for (const struct http2_stream *stream = http2->streams; stream; stream = stream->next) {
		if (stream->rest.length > stream->rest.passed)
			return true;
	}
	return false;
}

void http2_flush(struct http2 *http2)
{
	for (struct http2_stream *stream = http2->streams; stream; stream = stream->next) {
		if (stream->mute || stream->rest.length == stream->rest.passed)
			continue;
		if (http2_stream_flush(stream, &http2->masker) < 0)
			http2_cancel(stream, NGHTTP2_INTERNAL_ERROR);
		http2_resume(stream, HTTP2_GUEST);
	}
}

const uint64_t *http2_uses(const struct http2 *http2)
{
	return http2->uses;
}

const uint64_t *http2_masked(const struct http2 *http2)
{
	return http2->masker.masked;
}

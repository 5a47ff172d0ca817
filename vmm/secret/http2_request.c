/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest says in HTTP/2. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/secret/http2_internal.h"
#include "vmm/secret/http_body.h"
#include "vmm/secret/token_request.h"

/* One more stream. NULL: there are enough, or the server takes none. */
static struct http2_stream *add_stream(struct http2 *http2, int32_t id)
{
	struct http2_stream *stream;

	if (http2->stream_count == LIMIT_HTTP2_STREAMS || http2->closing || http2->server_over)
		return NULL;
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return NULL;
	if (http2->plan.tokens) {
		stream->tokens = calloc(1, sizeof(*stream->tokens));
		if (!stream->tokens) {
			free(stream);
			return NULL;
		}
		stream->tokens->scope = http2->plan.tokens;
	}
	stream->http2 = http2;
	stream->guest_id = id;
	stream->next = http2->streams;
	http2->streams = stream;
	http2->stream_count++;
	return stream;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct http2 *http2 = user;
	struct http2_stream *stream;

	http2_head_begin(&http2->heads[HTTP2_GUEST]);
	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	stream = add_stream(http2, frame->hd.stream_id);
	if (stream)
		return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
	/* It has not been looked at, and may be said again elsewhere: RFC 9113, 8.7. */
	nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
				  NGHTTP2_REFUSED_STREAM);
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static void note_uses(struct http2 *http2, const struct http_request *request)
{
	for (unsigned int i = 0; i < LIMIT_SECRETS; i++)
		http2->uses[i] += request->uses[i];
}

/* A head is complete. */
static void begin_request(struct http2_stream *stream, bool ends)
{
	struct http2 *http2 = stream->http2;
	struct http2_head *head = &http2->heads[HTTP2_GUEST];
	nghttp2_session *server = http2->sessions[HTTP2_SERVER];
	const nghttp2_data_provider body = http2_provider(stream);
	char reason[HTTP_REASON_BYTES];
	struct http_request request;

	stream->grpc = http2_head_says(head, "content-type", "application/grpc");
	if (http2_head_rewrite(head, ends, &http2->plan.target, &request, reason) < 0) {
		http2_refuse_request(stream, reason);
		return;
	}
	/* It may have gone while the head came. */
	if (http2->server_over || !nghttp2_session_check_request_allowed(server)) {
		http2_cancel(stream, NGHTTP2_REFUSED_STREAM);
		return;
	}
	note_uses(http2, &request);
	stream->token = request;
	stream->without_body = request.overlooked;
	stream->server_id = nghttp2_submit_request(server, NULL, head->wire, head->wire_count,
						   ends ? NULL : &body, stream);
	if (stream->server_id < 0) {
		stream->server_id = 0;
		http2_cancel(stream, NGHTTP2_REFUSED_STREAM);
	}
}

/* Whether there is no placeholder in there, which is no head; or else the request is refused. */
static bool check_contents(struct http2_stream *stream, const void *bytes, size_t length)
{
	char reason[HTTP_REASON_BYTES];

	if (http_contents_check(&stream->search, stream->http2->plan.target.secrets, bytes, length,
				reason) == 0)
		return true;
	http2_refuse_request(stream, reason);
	return false;
}

/* The body of a request for tokens is complete: a secret may be put into it. */
static void finish_token(struct http2_stream *stream)
{
	struct http2 *http2 = stream->http2;
	struct http2_pipe *held = &stream->held;
	char *body, reason[HTTP_REASON_BYTES];

	if (stream->deaf || !held->length)
		return;
	body = held->bytes + held->at;
	memset(stream->token.uses, 0, sizeof(stream->token.uses));
	if (token_request_rewrite(body, held->length, &http2->plan.target, &stream->token, reason) <
	    0) {
		http2_refuse_request(stream, reason);
		return;
	}
	if (!check_contents(stream, body, held->length))
		return;
	note_uses(http2, &stream->token);
	if (http2_pipe_add(&stream->up, body, held->length) < 0)
		http2_cancel(stream, NGHTTP2_INTERNAL_ERROR);
	else
		http2_pipe_empty(held);
}

/* It waits until it is complete. Whether the stream goes on. */
static bool hold_token(struct http2_stream *stream, const void *bytes, size_t length)
{
	if (stream->held.length + length > LIMIT_SECRET_TOKEN_REQUEST_BYTES) {
		http2_refuse_request(stream, "has a body of more than 32 KiB, and is for a token");
		return false;
	}
	return http2_pipe_add(&stream->held, bytes, length) == 0;
}

/* The next bytes of a body. Whether the stream goes on. */
static bool take_body(struct http2_stream *stream, const void *bytes, size_t length)
{
	if (stream->token.token.kind != HTTP_TOKEN_NONE)
		return hold_token(stream, bytes, length);
	return check_contents(stream, bytes, length) &&
	       http2_pipe_add(&stream->up, bytes, length) == 0;
}

static void take_trailer(struct http2_stream *stream)
{
	struct http2_head *head = &stream->http2->heads[HTTP2_GUEST];
	char reason[HTTP_REASON_BYTES];

	if (http2_head_check_trailer(head, reason) < 0)
		http2_refuse_request(stream, reason);
	else if (check_contents(stream, head->bytes, head->length) &&
		 http2_pipe_keep_trailer(&stream->up, head->bytes, head->length) < 0)
		http2_cancel(stream, NGHTTP2_INTERNAL_ERROR);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct http2 *http2 = user;
	struct http2_stream *stream =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
	const bool head = frame->hd.type == NGHTTP2_HEADERS;

	if (!stream || (!head && frame->hd.type != NGHTTP2_DATA))
		return 0;
	stream->up.over |= ends;
	if (head && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		begin_request(stream, ends);
	else if (head && !stream->deaf)
		take_trailer(stream);
	if (head)
		http2_head_begin(&http2->heads[HTTP2_GUEST]);
	if (ends) {
		finish_token(stream);
		http2_resume(stream, HTTP2_SERVER);
	}
	return 0;
}

/* A server in front of others may say in HTTP/1.1 what came here in HTTP/2. There the next request
 * could be taken for the body of this one: it may have a connection of its own. */
static void note_body(struct http2_stream *stream)
{
	if (stream->without_body)
		http2_close_to_guest(stream->http2);
	stream->without_body = false;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
		   size_t length, void *user)
{
	struct http2_stream *stream = nghttp2_session_get_stream_user_data(session, id);

	(void)flags;
	(void)user;
	if (!stream || stream->deaf)
		return nghttp2_session_consume(session, id, length);
	if (length)
		note_body(stream);
	if (!take_body(stream, bytes, length)) {
		http2_consume(stream, HTTP2_GUEST, length);
		if (!stream->deaf)
			http2_cancel(stream, NGHTTP2_INTERNAL_ERROR);
		return 0;
	}
	http2_resume(stream, HTTP2_SERVER);
	return 0;
}

/* What the library finds wrong with a request ends its stream; with other frames, all of them. */
static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error,
			    void *user)
{
	struct http2 *http2 = user;
	char text[RELAY_EVENT_TEXT_BYTES];

	(void)session;
	(void)frame;
	snprintf(text, sizeof(text),
		 "%s:%u: a request was stopped: it breaks the rules of HTTP/2: %s",
		 http2->plan.target.host, http2->plan.target.port, nghttp2_strerror(error));
	http2->plan.tell(http2->plan.user, RELAY_EVENT_DENIED, text);
	return 0;
}

/* After the whole answer nothing more of the request is wanted: RFC 9113, 8.1. */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct http2_stream *stream =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)user;
	if (!stream || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
	    (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	stream->told_all = true;
	if (stream->deaf && !stream->up.over)
		http2_cancel(stream, NGHTTP2_NO_ERROR);
	return 0;
}

void http2_request_set_callbacks(nghttp2_session_callbacks *callbacks)
{
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, http2_on_field);
	nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, http2_on_invalid_field);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, http2_on_stream_close);
}

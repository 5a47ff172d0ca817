/* SPDX-License-Identifier: Apache-2.0 */
/* What a server says in HTTP/2. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/http2_internal.h"

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct http2 *http2 = user;

	(void)session;
	(void)frame;
	http2_head_begin(&http2->heads[HTTP2_SERVER]);
	return 0;
}

/* The head of an answer: one of those before the final one (RFC 9110, 15.2), or that. */
static void pass_head(struct http2_stream *stream, int status, bool ends)
{
	struct http2_head *head = &stream->http2->heads[HTTP2_SERVER];
	nghttp2_session *guest = stream->http2->sessions[HTTP2_GUEST];
	const nghttp2_data_provider body = http2_provider(stream);
	int error;

	if (status < 200) {
		error = nghttp2_submit_headers(guest, NGHTTP2_FLAG_NONE, stream->guest_id, NULL,
					       head->wire, head->wire_count, NULL);
	} else {
		stream->answered = true;
		error = nghttp2_submit_response(guest, stream->guest_id, head->wire,
						head->wire_count, ends ? NULL : &body);
	}
	if (error < 0)
		http2_cancel(stream, NGHTTP2_INTERNAL_ERROR);
}

/* NULL, or why a head must not pass where tokens are given out. */
static const char *find_objection(struct http2_stream *stream, int status)
{
	struct http2_head *head = &stream->http2->heads[HTTP2_SERVER];

	if (!stream->tokens)
		return NULL;
	if (http2_head_says(head, "content-encoding", "") &&
	    !http2_head_says(head, "content-encoding", "identity"))
		return "is packed, and there may be a token in it";
	if (status == 206)
		return "is a part of one that may have a token in it";
	if (token_scan_end(stream->tokens) < 0 ||
	    token_scan_look(stream->tokens, head->bytes, head->length) < 0 ||
	    token_scan_end(stream->tokens) < 0)
		return stream->tokens->reason;
	return NULL;
}

static void take_head(struct http2_stream *stream, bool ends)
{
	struct http2 *http2 = stream->http2;
	struct http2_head *head = &http2->heads[HTTP2_SERVER];
	const int status = http2_head_mask(head, &http2->masker);
	const char *objection = status < 0 ? head->objection : find_objection(stream, status);

	/* The first of them has a status, and no other has one: the library sees to that as well.
	 */
	if (objection || status < 0)
		http2_refuse_answer(stream, objection);
	else if ((status != 0) == stream->answered || (ends && status && status < 200))
		http2_refuse_answer(stream, "has heads that do not belong together");
	else if (status)
		pass_head(stream, status, ends);
	else if (http2_pipe_keep_trailer(&stream->down, head->bytes, head->length) < 0)
		http2_cancel(stream, NGHTTP2_INTERNAL_ERROR);
}

static void end_answer(struct http2_stream *stream)
{
	if (stream->tokens && token_scan_held(stream->tokens)) {
		http2_refuse_answer(stream, "ends within a token");
		return;
	}
	if (http2_stream_flush(stream, &stream->http2->masker) < 0) {
		http2_cancel(stream, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	stream->down.over = true;
	http2_resume(stream, HTTP2_GUEST);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct http2 *http2 = user;
	struct http2_stream *stream =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	const bool head = frame->hd.type == NGHTTP2_HEADERS;
	const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;

	/* It goes: the guest may begin another connection for what comes next. */
	if (frame->hd.type == NGHTTP2_GOAWAY)
		http2_close_to_guest(http2);
	if (!stream || stream->mute || (!head && frame->hd.type != NGHTTP2_DATA))
		return 0;
	if (head)
		take_head(stream, ends);
	if (head)
		http2_head_begin(&http2->heads[HTTP2_SERVER]);
	if (ends && !stream->mute && !stream->down.over)
		end_answer(stream);
	return 0;
}

/* Takes the next bytes of a body. Returns how many, or 0: the answer is stopped. */
static size_t take_piece(struct http2_stream *stream, const uint8_t *bytes, size_t length)
{
	struct masker *masker = &stream->http2->masker;
	struct token_scan *tokens = stream->tokens;
	const size_t taken =
		(size_t)bytes_minimum(tokens ? TOKEN_SCAN_BYTES : MASKER_PIECE_BYTES, length);
	const size_t held = tokens ? token_scan_held(tokens) : 0;
	const char *reason;
	int error = tokens ? http2_stream_replace(stream, masker, bytes, taken)
			   : http2_stream_mask(stream, masker, bytes, taken);

	if (!error)
		return taken;
	reason = tokens ? tokens->reason : NULL;
	if (tokens)
		token_scan_end(tokens);
	if (held) /* of bytes that came before these */
		http2_consume(stream, HTTP2_SERVER, held);
	if (error == -EPROTO)
		http2_refuse_answer(stream, reason);
	else
		http2_cancel(stream, NGHTTP2_INTERNAL_ERROR);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
		   size_t length, void *user)
{
	struct http2_stream *stream = nghttp2_session_get_stream_user_data(session, id);
	size_t taken;

	(void)user;
	(void)flags;
	if (!stream || stream->mute)
		return nghttp2_session_consume(session, id, length);
	for (size_t done = 0; done < length; done += taken) {
		taken = take_piece(stream, bytes + done, length - done);
		if (!taken)
			return nghttp2_session_consume(session, id, length - done);
	}
	http2_resume(stream, HTTP2_GUEST);
	return 0;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error,
			    void *user)
{
	struct http2_stream *stream =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	char reason[HTTP_REASON_BYTES];

	(void)user;
	snprintf(reason, sizeof(reason), "breaks the rules of HTTP/2: %s", nghttp2_strerror(error));
	if (stream)
		http2_refuse_answer(stream, reason);
	return 0;
}

/* The library ends a stream because of what came in it: for us there is CANCEL. */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct http2_stream *stream =
		nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)user;
	if (!stream || frame->hd.type != NGHTTP2_RST_STREAM ||
	    frame->rst_stream.error_code == NGHTTP2_CANCEL)
		return 0;
	stream->deaf = true;
	if (!stream->mute)
		http2_refuse_answer(stream, "breaks the rules of HTTP/2");
	return 0;
}

void http2_answer_set_callbacks(nghttp2_session_callbacks *callbacks)
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

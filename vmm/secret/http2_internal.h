/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of HTTP/2 share. */
#ifndef MVAGENT_SECRET_HTTP2_INTERNAL_H
#define MVAGENT_SECRET_HTTP2_INTERNAL_H

#include "vmm/secret/http2.h"
#include "vmm/secret/http2_head.h"
#include "vmm/secret/http2_memory.h"
#include "vmm/secret/http2_stream.h"

#define HTTP2_SIDES 2

struct http2 {
	struct http2_plan plan;
	nghttp2_session *sessions[HTTP2_SIDES];
	struct http2_memory memory;
	struct http2_stream *streams;
	unsigned int stream_count;
	bool closing;     /* the guest has been told to begin no further stream */
	bool server_over; /* no stream can be begun there */
	bool broken;      /* what a side says cannot be understood: http2_take has failed */
	struct http2_head heads[HTTP2_SIDES]; /* the one of each that comes: RFC 9113, 4.3 */
	struct http2_head trailer;            /* one that was kept, while it is sent */
	struct masker masker;                 /* of all answers: struct http2_rest */
	uint64_t uses[LIMIT_SECRETS];
};

/* Callbacks about what the guest says (http2_request.c), and the server (http2_answer.c). */
void http2_request_set_callbacks(nghttp2_session_callbacks *callbacks);
void http2_answer_set_callbacks(nghttp2_session_callbacks *callbacks);

/* The field that comes next, on either side. Of use as they are: nghttp2_on_header_callback and
 * nghttp2_on_invalid_header_callback. */
int http2_on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		   size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
		   void *user);
int http2_on_invalid_field(nghttp2_session *session, const nghttp2_frame *frame,
			   const uint8_t *name, size_t name_length, const uint8_t *value,
			   size_t value_length, uint8_t flags, void *user);

/* The stream on that side is over. */
int http2_on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user);

/* A body for the other side, which is that of @stream. */
nghttp2_data_provider http2_provider(struct http2_stream *stream);

/* There is more to be sent to that side, or the end of it. */
void http2_resume(struct http2_stream *stream, enum http2_side side);

/* Bytes of a body came from a side and are gone: it may send as many more. */
void http2_consume(struct http2_stream *stream, enum http2_side side, size_t length);

/* Nothing more of what the two say in this stream passes. */
void http2_stop(struct http2_stream *stream);

/* Ends the stream on both sides. @code: for the guest. */
void http2_cancel(struct http2_stream *stream, uint32_t code);

/* (http2_refusal.c) Stops all of it, and says so: to the user, and to the guest if nothing of an
 * answer is on its way.
 * @reason: as what follows "its request " or "its answer ". */
void http2_refuse_request(struct http2_stream *stream, const char *reason);
void http2_refuse_answer(struct http2_stream *stream, const char *reason);

/* The guest is to begin no further stream in this connection. */
void http2_close_to_guest(struct http2 *http2);

#endif

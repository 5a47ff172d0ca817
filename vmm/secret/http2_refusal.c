/* SPDX-License-Identifier: Apache-2.0 */
/* What a program and the user are told of a stream of HTTP/2 that was stopped. */
#include <stdio.h>
#include <string.h>

#include "vmm/secret/http2_internal.h"

/* gRPC's codes PERMISSION_DENIED and UNAVAILABLE. */
#define GRPC_DENIED      "7"
#define GRPC_UNAVAILABLE "14"

static void begin_answer(struct http2_head *head, const char *status, const char *type)
{
	http2_head_begin(head);
	http2_head_add(head, ":status", 7, status, strlen(status), false);
	http2_head_add(head, "content-type", 12, type, strlen(type), false);
}

/* Visible ASCII is itself but for '%': "PROTOCOL-HTTP2" of gRPC, Percent-Encoded. */
static void write_grpc_message(const char *sentence, char *text, size_t size)
{
	size_t made = 0;

	for (; *sentence && made + 4 < size; sentence++) {
		if (*sentence >= ' ' && *sentence <= '~' && *sentence != '%')
			text[made++] = *sentence;
		else
			made += (size_t)snprintf(text + made, size - made, "%%%02X",
						 (unsigned int)(unsigned char)*sentence);
	}
	text[made] = '\0';
}

/* A call ends with a head alone. 0 or an error of the library's. */
static int answer_call(struct http2_stream *stream, bool denied, const char *sentence)
{
	struct http2_head *head = &stream->http2->trailer;
	const char *code = denied ? GRPC_DENIED : GRPC_UNAVAILABLE;
	char text[3 * RELAY_EVENT_TEXT_BYTES];

	write_grpc_message(sentence, text, sizeof(text));
	begin_answer(head, "200", "application/grpc");
	http2_head_add(head, "grpc-status", 11, code, strlen(code), false);
	http2_head_add(head, "grpc-message", 12, text, strlen(text), false);
	http2_head_take_as_is(head);
	return nghttp2_submit_response(stream->http2->sessions[HTTP2_GUEST], stream->guest_id,
				       head->wire, head->wire_count, NULL);
}

/* 0, or below it. */
static int answer_request(struct http2_stream *stream, bool denied, const char *sentence)
{
	struct http2_head *head = &stream->http2->trailer;
	const nghttp2_data_provider body = http2_provider(stream);
	char text[RELAY_EVENT_TEXT_BYTES + 16], size[16];
	const int length = snprintf(text, sizeof(text), "mvagent: %s\n", sentence);
	int error = http2_pipe_add(&stream->down, text, (size_t)length);

	if (error)
		return error;
	snprintf(size, sizeof(size), "%d", length);
	begin_answer(head, denied ? "403" : "502", "text/plain; charset=utf-8");
	http2_head_add(head, "content-length", 14, size, strlen(size), false);
	http2_head_take_as_is(head);
	return nghttp2_submit_response(stream->http2->sessions[HTTP2_GUEST], stream->guest_id,
				       head->wire, head->wire_count, &body);
}

/* An answer of ours, where none has begun. */
static void answer(struct http2_stream *stream, bool denied, const char *sentence)
{
	int error;

	http2_stop(stream);
	stream->answered = stream->ours = true;
	stream->down.over = true;
	error = stream->grpc ? answer_call(stream, denied, sentence)
			     : answer_request(stream, denied, sentence);
	if (error < 0)
		http2_cancel(stream, NGHTTP2_INTERNAL_ERROR);
}

static void refuse(struct http2_stream *stream, enum relay_event_type type, const char *what,
		   const char *reason)
{
	const struct http2_plan *plan = &stream->http2->plan;
	char text[RELAY_EVENT_TEXT_BYTES];

	snprintf(text, sizeof(text), "%s:%u: %s was stopped: it %s", plan->target.host,
		 plan->target.port, what, reason);
	plan->tell(plan->user, type, text);
	if (stream->guest_id && !stream->answered)
		answer(stream, type == RELAY_EVENT_DENIED, text);
	else
		http2_cancel(stream, NGHTTP2_INTERNAL_ERROR);
}

void http2_refuse_request(struct http2_stream *stream, const char *reason)
{
	refuse(stream, RELAY_EVENT_DENIED, "a request", reason);
}

void http2_refuse_answer(struct http2_stream *stream, const char *reason)
{
	refuse(stream, RELAY_EVENT_FAILED, "an answer", reason);
}

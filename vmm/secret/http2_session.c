/* SPDX-License-Identifier: Apache-2.0 */
/* Two connections of HTTP/2 begin and end: what is agreed on with either side. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/http2_internal.h"

/* A head may be as long as it was, with what a packed one has besides. */
#define SENT_HEAD_BYTES (2UL * LIMIT_SECRET_HEAD_BYTES)

static nghttp2_option *make_options(void)
{
	nghttp2_option *options;

	if (nghttp2_option_new(&options) < 0)
		return NULL;
	/* What was not passed on yet is not asked for again. */
	nghttp2_option_set_no_auto_window_update(options, 1);
	nghttp2_option_set_no_closed_streams(options, 1);
	nghttp2_option_set_max_outbound_ack(options, LIMIT_HTTP2_ACKNOWLEDGED);
	nghttp2_option_set_stream_reset_rate_limit(options, LIMIT_HTTP2_RESETS,
						   LIMIT_HTTP2_RESETS_SECOND);
	nghttp2_option_set_max_continuations(options, LIMIT_HTTP2_CONTINUATIONS);
	nghttp2_option_set_max_send_header_block_length(options, SENT_HEAD_BYTES);
	nghttp2_option_set_peer_max_concurrent_streams(options, LIMIT_HTTP2_STREAMS);
	return options;
}

static int begin_guest(struct http2 *http2, nghttp2_session_callbacks *callbacks,
		       const nghttp2_option *options)
{
	/* No tunnel (SETTINGS_ENABLE_CONNECT_PROTOCOL), and no priorities of RFC 7540. */
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, LIMIT_HTTP2_STREAMS},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, LIMIT_HTTP2_UP_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_SECRET_HEAD_BYTES},
		{NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
	};
	nghttp2_session **session = &http2->sessions[HTTP2_GUEST];

	http2_request_set_callbacks(callbacks);
	if (nghttp2_session_server_new3(session, callbacks, http2, options,
					&http2->memory.functions) < 0 ||
	    nghttp2_submit_settings(*session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings)) <
		    0 ||
	    nghttp2_session_set_local_window_size(*session, NGHTTP2_FLAG_NONE, 0,
						  LIMIT_HTTP2_UP_WINDOW_ALL) < 0)
		return -ENOMEM;
	return 0;
}

static int begin_server(struct http2 *http2, nghttp2_session_callbacks *callbacks,
			const nghttp2_option *options)
{
	/* Nothing is to be pushed. */
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, LIMIT_HTTP2_DOWN_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_SECRET_HEAD_BYTES},
	};
	nghttp2_session **session = &http2->sessions[HTTP2_SERVER];

	http2_answer_set_callbacks(callbacks);
	if (nghttp2_session_client_new3(session, callbacks, http2, options,
					&http2->memory.functions) < 0 ||
	    nghttp2_submit_settings(*session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings)) <
		    0 ||
	    nghttp2_session_set_local_window_size(*session, NGHTTP2_FLAG_NONE, 0,
						  LIMIT_HTTP2_DOWN_WINDOW_ALL) < 0)
		return -ENOMEM;
	return 0;
}

/* The functions of either side in a set of its own. */
static int begin_sides(struct http2 *http2, const nghttp2_option *options)
{
	nghttp2_session_callbacks *guest = NULL, *server = NULL;
	int error = -ENOMEM;

	if (nghttp2_session_callbacks_new(&guest) == 0 &&
	    nghttp2_session_callbacks_new(&server) == 0) {
		error = begin_guest(http2, guest, options);
		error = error ? error : begin_server(http2, server, options);
	}
	nghttp2_session_callbacks_del(guest);
	nghttp2_session_callbacks_del(server);
	return error;
}

int http2_create(struct http2 **http2, const struct http2_plan *plan)
{
	struct http2 *made = calloc(1, sizeof(*made));
	nghttp2_option *options = make_options();
	int error = -ENOMEM;

	if (made && options) {
		made->plan = *plan;
		made->masker.table = plan->masks;
		http2_memory_begin(&made->memory, LIMIT_HTTP2_MEMORY_BYTES);
		error = begin_sides(made, options);
	}
	nghttp2_option_del(options);
	if (error)
		http2_destroy(made);
	else
		*http2 = made;
	return error;
}

void http2_destroy(struct http2 *http2)
{
	struct http2_stream *next;

	if (!http2)
		return;
	for (size_t i = 0; i < HTTP2_SIDES; i++)
		nghttp2_session_del(http2->sessions[i]);
	for (struct http2_stream *stream = http2->streams; stream; stream = next) {
		next = stream->next;
		http2_stream_free(stream);
	}
	for (size_t i = 0; i < HTTP2_SIDES; i++)
		http2_head_begin(&http2->heads[i]);
	http2_head_begin(&http2->trailer);
	explicit_bzero(&http2->masker, sizeof(http2->masker));
	free(http2);
}

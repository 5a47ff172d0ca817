/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest says in HTTP/2 to a server that a secret is for. A server that is here as well gets
 * proper HTTP/2, for its own name alone, with no placeholder in it, and with a secret only in the
 * fields of heads. It says those again, and the guest gets no secret. */
#include <nghttp2/nghttp2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/fuzz/secret_fixture.h"
#include "vmm/base/bytes.h"
#include "vmm/secret/http2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FRAME_HEAD_BYTES 9U /* RFC 9113, 4.1 */

struct scene {
	struct http2 *http2;
	nghttp2_session *server;
	nghttp2_hd_inflater *heads; /* of answers, as the guest unpacks them */
	bool value_said;            /* by the guest itself */
	char echo[1024];            /* what is said again */
	size_t echo_length, echo_at;
	uint8_t *to_guest;
	size_t to_guest_length;
};

static bool has(const void *bytes, size_t length, const char *text)
{
	return memmem(bytes, length, text, strlen(text)) != NULL;
}

static void on_told(void *user, enum relay_event_type type, const char *text)
{
	(void)user;
	if ((type != RELAY_EVENT_DENIED && type != RELAY_EVENT_FAILED) || !*text ||
	    has(text, strlen(text), VALUE))
		abort();
}

static int on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		    size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
		    void *user)
{
	struct scene *scene = user;
	const char *text = (const char *)value;

	(void)session;
	(void)flags;
	if (has(name, name_length, PLACE) || has(value, value_length, PLACE))
		abort();
	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST && !scene->value_said &&
	    has(value, value_length, VALUE))
		abort();
	if (name[0] == ':' && !scene->value_said && has(value, value_length, VALUE))
		abort();
	if (strcmp((const char *)name, ":authority") == 0 && strcasecmp(text, "a.test") != 0 &&
	    strcasecmp(text, "a.test:443") != 0)
		abort();
	if (strcmp((const char *)name, ":method") == 0 && strcasecmp(text, "CONNECT") == 0)
		abort();
	if (value_length > sizeof(scene->echo))
		return 0;
	memcpy(scene->echo, value, value_length);
	scene->echo_length = value_length;
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
		   size_t length, void *user)
{
	struct scene *scene = user;

	(void)session;
	(void)flags;
	(void)id;
	if (has(bytes, length, PLACE) || (!scene->value_said && has(bytes, length, VALUE)))
		abort();
	return 0;
}

static ssize_t read_echo(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t size,
			 uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct scene *scene = user;
	const size_t length = (size_t)bytes_minimum(size, scene->echo_length);

	(void)session;
	(void)id;
	(void)source;
	memcpy(bytes, scene->echo, length);
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)length;
}

/* A request begins: what was said last is said again, in the head and in the body. */
static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	static uint8_t status[] = ":status", ok[] = "200", name[] = "x-echo";
	struct scene *scene = user;
	const nghttp2_nv fields[] = {
		{status, ok, 7, 3, 0},
		{name, (uint8_t *)scene->echo, 6, scene->echo_length, 0},
	};
	const nghttp2_data_provider body = {.read_callback = read_echo};

	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		nghttp2_submit_response(session, frame->hd.stream_id, fields, ARRAY_SIZE(fields),
					&body);
	return 0;
}

static nghttp2_session *make_server(struct scene *scene)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *session;

	if (nghttp2_session_callbacks_new(&callbacks))
		abort();
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_field);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	if (nghttp2_session_server_new(&session, callbacks, scene) ||
	    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0))
		abort();
	nghttp2_session_callbacks_del(callbacks);
	return session;
}

/* A block of fields, as it is in one frame (of ours none goes on in another one). */
static void check_head(struct scene *scene, const uint8_t *bytes, size_t length)
{
	int flags = 0;

	while (length || !(flags & NGHTTP2_HD_INFLATE_FINAL)) {
		nghttp2_nv field;
		ssize_t taken =
			nghttp2_hd_inflate_hd2(scene->heads, &field, &flags, bytes, length, 1);

		if (taken < 0)
			abort();
		bytes += taken;
		length -= (size_t)taken;
		if ((flags & NGHTTP2_HD_INFLATE_EMIT) && !scene->value_said &&
		    has(field.value, field.valuelen, VALUE))
			abort();
	}
	nghttp2_hd_inflate_end_headers(scene->heads);
}

/* Whole frames of what has come to the guest. */
static void check_frames(struct scene *scene)
{
	const uint8_t *at = scene->to_guest;
	size_t left = scene->to_guest_length;

	while (left >= FRAME_HEAD_BYTES) {
		const size_t length = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];

		if (left < FRAME_HEAD_BYTES + length)
			break;
		if (at[3] == NGHTTP2_HEADERS)
			check_head(scene, at + FRAME_HEAD_BYTES, length);
		else if (!scene->value_said && has(at, FRAME_HEAD_BYTES + length, VALUE))
			abort();
		at += FRAME_HEAD_BYTES + length;
		left -= FRAME_HEAD_BYTES + length;
	}
	memmove(scene->to_guest, at, left);
	scene->to_guest_length = left;
}

static void give_to_guest(struct scene *scene)
{
	const uint8_t *bytes;
	ssize_t length;

	while ((length = http2_give(scene->http2, HTTP2_GUEST, &bytes)) > 0) {
		scene->to_guest = realloc(scene->to_guest, scene->to_guest_length + (size_t)length);
		if (!scene->to_guest)
			abort();
		memcpy(scene->to_guest + scene->to_guest_length, bytes, (size_t)length);
		scene->to_guest_length += (size_t)length;
		check_frames(scene);
	}
}

/* All that is to be said, until nobody says anything. */
static void converse(struct scene *scene)
{
	bool moved = true;

	while (moved) {
		const uint8_t *bytes;
		ssize_t length = http2_give(scene->http2, HTTP2_SERVER, &bytes);

		moved = length > 0;
		/* It is proper HTTP/2. */
		if (moved &&
		    nghttp2_session_mem_recv(scene->server, bytes, (size_t)length) != length)
			abort();
		length = nghttp2_session_mem_send(scene->server, &bytes);
		if (length > 0 && http2_may_take(scene->http2, HTTP2_SERVER)) {
			http2_take(scene->http2, HTTP2_SERVER, bytes, (size_t)length);
			moved = true;
		}
	}
	http2_flush(scene->http2);
	give_to_guest(scene);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct http2_plan plan = {
		.target = {"a.test", 443, the_set()}, .masks = the_table(), .tell = on_told};
	struct scene scene = {.value_said = has(data, size, VALUE)};
	const size_t piece = size ? 1 + (size_t)data[0] * 16 : 1;
	int error = 0;

	if (size < 1 || size > 100000)
		return 0;
	if (http2_create(&scene.http2, &plan) || nghttp2_hd_inflate_new(&scene.heads))
		abort();
	scene.server = make_server(&scene);
	http2_take(scene.http2, HTTP2_GUEST, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
	for (size_t done = 1, count; done < size && !error; done += count) {
		count = (size_t)bytes_minimum(piece, size - done);
		if (http2_may_take(scene.http2, HTTP2_GUEST))
			error = http2_take(scene.http2, HTTP2_GUEST, data + done, count);
		converse(&scene);
	}
	if (size & 1)
		http2_end(scene.http2, HTTP2_SERVER);
	converse(&scene);
	http2_end(scene.http2, HTTP2_GUEST);
	converse(&scene);
	nghttp2_session_del(scene.server);
	nghttp2_hd_inflate_del(scene.heads);
	http2_destroy(scene.http2);
	free(scene.to_guest);
	return 0;
}

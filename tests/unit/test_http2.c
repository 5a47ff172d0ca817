/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 between a guest and a server that are here as well: what may wait because of them, and
 * that nothing waits for what does not come. tests/relay/secret_http2.py has the rest, with real
 * peers.
 */
#include "vmm/secret/http2.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/http2_internal.h"

#define VALUE "the-secret-of-this-test"
#define PLACE "PLACEHOLDER-of-the-test"

#define FRAME_HEAD_BYTES 9U   /* RFC 9113, 4.1 */
#define GUEST_WINDOW     1000 /* of a stream, which the guest never opens again */

struct scene {
	struct secret_set set;
	struct mask_table *table;
	struct http2 *http2;
	nghttp2_session *guest, *server;
	int32_t asked;     /* the last stream at the server */
	uint32_t reset;    /* why the last stream at the guest ended */
	unsigned int told; /* sentences for the user */
	const char *said;  /* by the server in each answer; NULL: much */
};

static void on_told(void *user, enum relay_event_type type, const char *text)
{
	struct scene *scene = user;

	assert_true(type == RELAY_EVENT_DENIED || type == RELAY_EVENT_FAILED);
	assert_null(strstr(text, VALUE));
	scene->told++;
}

static int on_server_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct scene *scene = user;

	(void)session;
	if (frame->hd.type == NGHTTP2_HEADERS)
		scene->asked = frame->hd.stream_id;
	return 0;
}

static int on_guest_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct scene *scene = user;

	(void)session;
	(void)id;
	scene->reset = code;
	return 0;
}

static ssize_t say(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t size,
		   uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct scene *scene = user;
	bool *said = source->ptr;

	(void)session;
	(void)id;
	(void)flags;
	if (!scene->said) {
		memset(bytes, '.', size);
		return (ssize_t)size;
	}
	if (*said)
		return NGHTTP2_ERR_DEFERRED;
	*said = true;
	assert_true(strlen(scene->said) <= size);
	memcpy(bytes, scene->said, strlen(scene->said));
	return (ssize_t)strlen(scene->said);
}

/* All that is to be said, until nobody says anything. */
static void converse(struct scene *scene)
{
	const uint8_t *bytes;
	bool moved = true;
	ssize_t length;

	while (moved) {
		moved = false;
		for (enum http2_side side = HTTP2_GUEST; side <= HTTP2_SERVER; side++) {
			nghttp2_session *peer = side == HTTP2_GUEST ? scene->guest : scene->server;

			while ((length = http2_give(scene->http2, side, &bytes)) > 0) {
				assert_int_equal(
					nghttp2_session_mem_recv(peer, bytes, (size_t)length),
					length);
				moved = true;
			}
			if (!http2_may_take(scene->http2, side))
				continue;
			length = nghttp2_session_mem_send(peer, &bytes);
			if (length > 0)
				http2_take(scene->http2, side, bytes, (size_t)length);
			moved |= length > 0;
		}
	}
}

static void make_peers(struct scene *scene)
{
	static const nghttp2_settings_entry narrow = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
						      GUEST_WINDOW};
	nghttp2_session_callbacks *guest, *server;
	nghttp2_option *option;

	assert_int_equal(nghttp2_session_callbacks_new(&guest), 0);
	assert_int_equal(nghttp2_session_callbacks_new(&server), 0);
	assert_int_equal(nghttp2_option_new(&option), 0);
	nghttp2_session_callbacks_set_on_stream_close_callback(guest, on_guest_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(server, on_server_frame);
	nghttp2_option_set_no_auto_window_update(option, 1);
	assert_int_equal(nghttp2_session_client_new2(&scene->guest, guest, scene, option), 0);
	assert_int_equal(nghttp2_session_server_new(&scene->server, server, scene), 0);
	nghttp2_submit_settings(scene->guest, NGHTTP2_FLAG_NONE, &narrow, 1);
	nghttp2_session_set_local_window_size(scene->guest, NGHTTP2_FLAG_NONE, 0, 1 << 30);
	nghttp2_submit_settings(scene->server, NGHTTP2_FLAG_NONE, NULL, 0);
	nghttp2_session_callbacks_del(guest);
	nghttp2_session_callbacks_del(server);
	nghttp2_option_del(option);
}

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct secret *secret;

	assert_non_null(scene);
	scene->set.count = 2;
	secret = &scene->set.secrets[1];
	secret->length = LIMIT_SECRET_BYTES;
	memset(secret->value, 'v', LIMIT_SECRET_BYTES);
	memset(secret->placeholder, 'p', LIMIT_SECRET_BYTES);
	secret = &scene->set.secrets[0];
	*secret = (struct secret){.name = "KEY",
				  .length = strlen(VALUE),
				  .value = VALUE,
				  .placeholder = PLACE,
				  .host_count = 1,
				  .hosts = {{"api.test", 443}}};
	assert_int_equal(mask_table_create(&scene->table, &scene->set), 0);
	assert_int_equal(http2_create(&scene->http2,
				      &(struct http2_plan){
					      .target = {"api.test", 443, &scene->set},
					      .masks = scene->table,
					      .tell = on_told,
					      .user = scene,
				      }),
			 0);
	make_peers(scene);
	converse(scene);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	nghttp2_session_del(scene->guest);
	nghttp2_session_del(scene->server);
	http2_destroy(scene->http2);
	mask_table_destroy(scene->table);
	free(scene);
	return 0;
}

/* Its stream. */
static int32_t ask(struct scene *scene, const char *path)
{
	static uint8_t method[] = ":method", get[] = "GET", scheme[] = ":scheme", https[] = "https",
		       authority[] = ":authority", host[] = "api.test", name[] = ":path";
	const nghttp2_nv fields[] = {
		{method, get, 7, 3, 0},
		{scheme, https, 7, 5, 0},
		{authority, host, 10, 8, 0},
		{name, (uint8_t *)(uintptr_t)path, 5, strlen(path), 0},
	};

	return nghttp2_submit_request(scene->guest, NULL, fields, ARRAY_SIZE(fields), NULL, NULL);
}

/* The server answers what was asked last, without an end. @said: false, for it. */
static void answer(struct scene *scene, bool *said)
{
	static uint8_t status[] = ":status", ok[] = "200";
	const nghttp2_nv field = {status, ok, 7, 3, 0};
	const nghttp2_data_provider body = {.source.ptr = said, .read_callback = say};

	nghttp2_submit_response(scene->server, scene->asked, &field, 1, &body);
	converse(scene);
}

static size_t waiting(const struct scene *scene)
{
	size_t length = 0;

	for (struct http2_stream *stream = scene->http2->streams; stream; stream = stream->next)
		length += stream->down.length;
	return length;
}

/* What a guest is told by us is nothing that the server may say more for. */
static void test_refusals_open_no_window(void **state)
{
	struct scene *scene = *state;
	const unsigned int refusals = 20000;

	for (unsigned int i = 0; i < refusals; i++) {
		ask(scene, "/?" PLACE);
		converse(scene);
	}
	assert_int_equal(scene->told, refusals);
	for (unsigned int i = 0; i < 60; i++) {
		const int32_t before = scene->asked;

		ask(scene, "/");
		converse(scene);
		assert_int_not_equal(scene->asked, before);
		answer(scene, NULL);
	}
	/* Now there is something to be asked for. */
	ask(scene, "/?" PLACE);
	converse(scene);
	assert_in_range(waiting(scene), 1U << 20, LIMIT_HTTP2_DOWN_WINDOW_ALL);
}

/* What was held of answers that the guest does not want any more opens their server's window again.
 */
static void test_what_was_held_is_given_back(void **state)
{
	struct scene *scene = *state;
	static char start[LIMIT_SECRET_BYTES];

	memcpy(start, scene->set.secrets[1].value, sizeof(start));
	start[sizeof(start) - 1] = '\0';
	scene->said = start;
	for (size_t held = 0; held < LIMIT_HTTP2_DOWN_WINDOW_ALL + sizeof(start);
	     held += strlen(start)) {
		const int32_t id = ask(scene, "/");
		bool said = false;

		converse(scene);
		answer(scene, &said);
		assert_true(said);
		assert_true(http2_is_holding(scene->http2));
		nghttp2_submit_rst_stream(scene->guest, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
		converse(scene);
		assert_false(http2_is_holding(scene->http2));
		assert_int_equal(scene->http2->stream_count, 0);
	}
}

/* The server goes while a head comes: who asks learns that it was not asked. */
static void test_server_goes_while_a_head_comes(void **state)
{
	struct scene *scene = *state;
	uint8_t frame[256], rest[256] = {0};
	const uint8_t *bytes;
	size_t length, half;

	ask(scene, "/");
	length = (size_t)nghttp2_session_mem_send(scene->guest, &bytes);
	assert_in_range(length, FRAME_HEAD_BYTES + 2, sizeof(frame));
	assert_int_equal(bytes[3], NGHTTP2_HEADERS);
	half = (length - FRAME_HEAD_BYTES) / 2;
	memcpy(frame, bytes, length);
	memcpy(rest, bytes, FRAME_HEAD_BYTES);
	memcpy(rest + FRAME_HEAD_BYTES, bytes + FRAME_HEAD_BYTES + half,
	       length - FRAME_HEAD_BYTES - half);
	frame[2] = (uint8_t)half;
	frame[4] &= (uint8_t)~NGHTTP2_FLAG_END_HEADERS;
	rest[2] = (uint8_t)(length - FRAME_HEAD_BYTES - half);
	rest[3] = NGHTTP2_CONTINUATION;
	rest[4] = NGHTTP2_FLAG_END_HEADERS;
	assert_int_equal(http2_take(scene->http2, HTTP2_GUEST, frame, FRAME_HEAD_BYTES + half), 0);
	http2_end(scene->http2, HTTP2_SERVER);
	assert_int_equal(http2_take(scene->http2, HTTP2_GUEST, rest, length - half), 0);
	converse(scene);
	assert_int_equal(scene->reset, NGHTTP2_REFUSED_STREAM);
	assert_int_equal(scene->http2->stream_count, 0);
	assert_int_equal(scene->asked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_refusals_open_no_window, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_was_held_is_given_back, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_server_goes_while_a_head_comes, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

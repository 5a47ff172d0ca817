/* SPDX-License-Identifier: Apache-2.0 */
/* A guest and a server that both say in HTTP/2 what they like, in any order, and may not listen.
 * The input is a list of what they do. The guest gets no secret, the server no placeholder and
 * nothing waits for ever, or beyond what was agreed on. fuzz_http2.c has a server that is proper.
 */
#include <nghttp2/nghttp2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/secret_fixture.h"
#include "vmm/base/bytes.h"
#include "vmm/secret/http2_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FRAME_HEAD_BYTES 9U /* RFC 9113, 4.1 */
#define STREAMS          256U
#define SAID_BYTES_MAX   (1U << 20)

/* Bytes that wait, in either direction. */
struct line {
	uint8_t *bytes;
	size_t length;
};

struct side {
	struct line says, hears;
	bool deaf; /* takes nothing now */
	nghttp2_hd_inflater *heads;
	struct stream_search bodies[STREAMS]; /* of what it hears */
	int32_t last;                         /* stream, of those that began */
	int32_t cut;                          /* whose head is not whole yet; 0: none */
	struct line rest;                     /* of that head */
};

struct scene {
	const uint8_t *data;
	size_t left;
	struct http2 *http2;
	struct side sides[HTTP2_SIDES];
};

static void on_told(void *user, enum relay_event_type type, const char *text)
{
	(void)user;
	if ((type != RELAY_EVENT_DENIED && type != RELAY_EVENT_FAILED) || !*text)
		abort();
}

static uint8_t next(struct scene *scene)
{
	if (!scene->left)
		return 0;
	scene->left--;
	return *scene->data++;
}

static void add(struct line *line, const void *bytes, size_t length)
{
	line->bytes = realloc(line->bytes, line->length + length + 1);
	if (!line->bytes)
		abort();
	if (length)
		memcpy(line->bytes + line->length, bytes, length);
	line->length += length;
}

static void leave(struct line *line, size_t length)
{
	line->length -= length;
	memmove(line->bytes, line->bytes + length, line->length);
}

static void add_frame(struct line *line, uint8_t type, uint8_t flags, int32_t stream,
		      const void *bytes, size_t length)
{
	const uint8_t head[FRAME_HEAD_BYTES] = {
		(uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length, type, flags, 0,
		(uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};

	if (line->length > SAID_BYTES_MAX)
		return;
	add(line, head, sizeof(head));
	add(line, bytes, length);
}

/* A field as it is: RFC 7541, 6.2.2 and 6.2.1. */
static size_t put_field(uint8_t *block, const char *name, const char *value, bool kept)
{
	const size_t name_length = strlen(name), value_length = strlen(value);

	block[0] = kept ? 0x40 : 0;
	block[1] = (uint8_t)name_length;
	memcpy(block + 2, name, name_length);
	block[2 + name_length] = (uint8_t)value_length;
	memcpy(block + 3 + name_length, value, value_length);
	return 3 + name_length + value_length;
}

/* Fields, of which the input chooses some. */
static size_t make_block(struct scene *scene, uint8_t *block, enum http2_side side, bool trailer)
{
	static const char *const pseudo[][2] = {
		{":method", "POST"}, {":scheme", "https"}, {":authority", "a.test"},
		{":path", "/"},      {":method", "HEAD"},  {":path", "/" PLACE},
	};
	static const char *const status[] = {"200", "100", "204", "304", "101", "103"};
	static const char *const fields[][2] = {
		{"x-key", PLACE},
		{"content-length", "5"},
		{"content-length", "0"},
		{"x-key", VALUE},
		{"host", "a.test"},
		{"host", "b.test"},
		{"connection", "close"},
		{"te", "trailers"},
		{"content-type", "application/grpc"},
		{"X-Upper", "x"},
		{"cookie", "a=" PLACE},
		{"authorization", "Basic UExBQ0UtSE9MREVSMQ=="},
		{"x-half", "S3CRET-S3"},
		{"transfer-encoding", "chunked"},
		{":evil", "x"},
		{"x", ""},
	};
	const uint8_t choice = next(scene), kept = next(scene);
	size_t length = 0;

	for (size_t i = 0; !trailer && side == HTTP2_GUEST && i < 4; i++) {
		const size_t which = choice == 0xff && i == 0   ? 4
				     : choice == 0xfe && i == 3 ? 5
								: i;

		if (choice != 0xf0 + i)
			length += put_field(block + length, pseudo[which][0], pseudo[which][1],
					    kept & 1);
	}
	if (!trailer && side == HTTP2_SERVER)
		length += put_field(block + length, ":status",
				    status[(choice >> 4) % ARRAY_SIZE(status)], false);
	for (size_t i = 0; i < (choice & 3); i++) {
		const size_t which = next(scene) % ARRAY_SIZE(fields);

		/* What the guest has itself is no secret to it. */
		if (side == HTTP2_SERVER || strcmp(fields[which][1], VALUE) != 0)
			length += put_field(block + length, fields[which][0], fields[which][1],
					    kept & 2);
	}
	return length;
}

static int32_t choose_stream(struct scene *scene, struct side *side, uint8_t how)
{
	const int32_t all = side->last + 1, id = (how & 0x7f) % (all / 2 + 1) * 2 + 1;

	(void)scene;
	return how & 0x80 ? side->last : id;
}

static void say_head(struct scene *scene, enum http2_side which, bool trailer)
{
	struct side *side = &scene->sides[which];
	const uint8_t how = next(scene), flags = next(scene);
	uint8_t block[2048], ends = flags & NGHTTP2_FLAG_END_STREAM;
	const size_t length = make_block(scene, block, which, trailer);
	size_t first = length;
	int32_t id;

	if (side->cut) {
		add_frame(&side->says, NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, side->cut,
			  side->rest.bytes, side->rest.length);
		side->cut = 0;
		side->rest.length = 0;
		return;
	}
	if (which == HTTP2_GUEST && !trailer)
		id = side->last += 2;
	else
		id = choose_stream(scene, side, how);
	if (id >= (int32_t)(2 * STREAMS))
		return;
	if (which == HTTP2_GUEST)
		scene->sides[HTTP2_SERVER].last = side->last;
	if (flags & 0x80)
		first = length / 2;
	add_frame(&side->says, NGHTTP2_HEADERS,
		  (uint8_t)(ends | (first == length ? NGHTTP2_FLAG_END_HEADERS : 0)), id, block,
		  first);
	if (first < length && flags & 0x40) {
		side->cut = id;
		add(&side->rest, block + first, length - first);
		return;
	}
	if (first < length)
		add_frame(&side->says, NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, id,
			  block + first, length - first);
}

static void say_data(struct scene *scene, struct side *side, const char *text)
{
	static uint8_t bytes[16384];
	const int32_t id = choose_stream(scene, side, next(scene));
	const uint8_t flags = next(scene), size = next(scene);
	size_t length = strlen(text), from = 0;

	if (size & 0x80) {
		length = (size & 0x7fU) * 128U;
		memset(bytes, '.', sizeof(bytes));
	} else {
		from = size % (length + 1);
		memcpy(bytes, text, length);
		/* Its start, or its end. */
		if (size & 0x40) {
			length = from;
			from = 0;
		}
	}
	add_frame(&side->says, NGHTTP2_DATA, flags & NGHTTP2_FLAG_END_STREAM, id, bytes + from,
		  length - from);
}

static void say_small(struct scene *scene, struct side *side, uint8_t type)
{
	const uint8_t how = next(scene), value = next(scene);
	const int32_t id = choose_stream(scene, side, how);
	uint8_t bytes[8] = {0, 0, value, value, 0, 0, 0, value};

	switch (type) {
	case NGHTTP2_RST_STREAM:
		add_frame(&side->says, type, 0, id, (uint8_t[]){0, 0, 0, value % 14}, 4);
		break;
	case NGHTTP2_WINDOW_UPDATE:
		add_frame(&side->says, type, 0, how == 0x7f ? 0 : id, bytes, 4);
		break;
	case NGHTTP2_SETTINGS:
		bytes[0] = bytes[2] = 0;
		bytes[1] = 1 + value % 6;
		bytes[3] = 0;
		bytes[4] = how & 1 ? 0x40 : 0;
		bytes[5] = how & 2 ? 0 : how;
		add_frame(&side->says, type, how >> 7, 0, bytes, how & 0x80 ? 0 : 6);
		break;
	case NGHTTP2_GOAWAY:
		bytes[0] = bytes[1] = bytes[2] = 0;
		bytes[3] = (uint8_t)id;
		add_frame(&side->says, type, 0, 0, bytes, 8);
		break;
	case NGHTTP2_PRIORITY:
		add_frame(&side->says, type, 0, id, bytes, 5);
		break;
	default:
		add_frame(&side->says, type, how & 1, 0, bytes, 8);
	}
}

/* What a side has heard in a stream, or in a head: nothing that is not for it. */
static void check_frame(struct side *side, const struct stream_text *text, const uint8_t *at,
			size_t length)
{
	const uint32_t id = (uint32_t)at[7] << 8 | at[8];
	const uint8_t *bytes = at + FRAME_HEAD_BYTES;
	int flags = 0;

	if (at[3] == NGHTTP2_DATA && id / 2 < STREAMS &&
	    stream_search_piece(&side->bodies[id / 2], text, 1, bytes, length) >= 0)
		abort();
	while (at[3] == NGHTTP2_HEADERS && (length || !(flags & NGHTTP2_HD_INFLATE_FINAL))) {
		nghttp2_nv field;
		const ssize_t taken =
			nghttp2_hd_inflate_hd2(side->heads, &field, &flags, bytes, length, 1);

		if (taken < 0)
			abort();
		bytes += taken;
		length -= (size_t)taken;
		if ((flags & NGHTTP2_HD_INFLATE_EMIT) &&
		    memmem(field.value, field.valuelen, text->text, text->length))
			abort();
	}
	if (at[3] == NGHTTP2_HEADERS)
		nghttp2_hd_inflate_end_headers(side->heads);
}

static void hear(struct scene *scene, enum http2_side which)
{
	static const struct stream_text forbidden[] = {{VALUE, sizeof(VALUE) - 1},
						       {PLACE, sizeof(PLACE) - 1}};
	struct side *side = &scene->sides[which];
	const uint8_t *bytes;
	ssize_t given;

	while (!side->deaf && (given = http2_give(scene->http2, which, &bytes)) > 0) {
		add(&side->hears, bytes, (size_t)given);
		if (which == HTTP2_SERVER && side->hears.length >= NGHTTP2_CLIENT_MAGIC_LEN &&
		    memcmp(side->hears.bytes, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN) == 0)
			leave(&side->hears, NGHTTP2_CLIENT_MAGIC_LEN);
		while (side->hears.length >= FRAME_HEAD_BYTES) {
			const uint8_t *at = side->hears.bytes;
			const size_t length = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];

			if (side->hears.length < FRAME_HEAD_BYTES + length)
				break;
			check_frame(side, &forbidden[which], at, length);
			leave(&side->hears, FRAME_HEAD_BYTES + length);
		}
	}
}

/* What waits is within what was agreed on, and no stream waits for what cannot come. */
static void check_streams(const struct http2 *http2)
{
	size_t up = 0, down = 0, count = 0;

	for (const struct http2_stream *stream = http2->streams; stream; stream = stream->next) {
		count++;
		up += stream->up.length;
		down += stream->ours
				? 0
				: stream->down.length + stream->rest.length - stream->rest.passed;
		if (!stream->guest_id && !stream->server_id)
			abort();
		if (http2->server_over &&
		    (stream->server_id || (stream->up.over && !stream->mute && !stream->down.over)))
			abort();
	}
	if (count != http2->stream_count || count > LIMIT_HTTP2_STREAMS ||
	    up > LIMIT_HTTP2_UP_WINDOW_ALL || down > LIMIT_HTTP2_DOWN_WINDOW_ALL)
		abort();
}

static void move(struct scene *scene, size_t piece)
{
	for (enum http2_side which = HTTP2_GUEST; which <= HTTP2_SERVER; which++) {
		struct line *says = &scene->sides[which].says;

		while (says->length && http2_may_take(scene->http2, which)) {
			const size_t length = (size_t)bytes_minimum(piece, says->length);

			http2_take(scene->http2, which, says->bytes, length);
			leave(says, length);
		}
		hear(scene, HTTP2_SERVER);
		hear(scene, HTTP2_GUEST);
		if (!scene->http2->broken)
			check_streams(scene->http2);
	}
}

static void act(struct scene *scene)
{
	static const char *const texts[] = {"." PLACE ".", "." VALUE ".", VALUE, "5ized"};
	const uint8_t what = next(scene);
	const enum http2_side which = what & 1 ? HTTP2_SERVER : HTTP2_GUEST;
	struct side *side = &scene->sides[which];

	switch (what >> 1 & 15) {
	case 0:
	case 1:
	case 2:
		say_head(scene, which, false);
		break;
	case 3:
		say_head(scene, which, true);
		break;
	case 4:
	case 5:
		/* What the guest has itself is no secret to it. */
		say_data(scene, side,
			 texts[which == HTTP2_GUEST ? what >> 5 & 1 ? 3 : 0 : what >> 5 & 3]);
		break;
	case 6:
		say_small(scene, side, NGHTTP2_RST_STREAM);
		break;
	case 7:
		say_small(scene, side, NGHTTP2_WINDOW_UPDATE);
		break;
	case 8:
		say_small(scene, side, NGHTTP2_SETTINGS);
		break;
	case 9:
		say_small(scene, side, NGHTTP2_GOAWAY);
		break;
	case 10:
		say_small(scene, side, NGHTTP2_PING);
		break;
	case 11:
		say_small(scene, side, NGHTTP2_PRIORITY);
		break;
	case 12:
		side->deaf = !side->deaf;
		break;
	case 13:
		http2_flush(scene->http2);
		break;
	case 14:
		if (what == 0xfd)
			http2_end(scene->http2, HTTP2_SERVER);
		break;
	default: /* anything at all */
		add(&side->says, scene->data, (size_t)bytes_minimum(what >> 5, scene->left));
	}
}

static void begin(struct scene *scene)
{
	static const uint8_t wide[] = {0, 4, 0, 1, 0, 0};

	for (size_t i = 0; i < HTTP2_SIDES; i++) {
		if (nghttp2_hd_inflate_new(&scene->sides[i].heads))
			abort();
		scene->sides[i].last = -1;
	}
	add(&scene->sides[HTTP2_GUEST].says, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
	add_frame(&scene->sides[HTTP2_GUEST].says, NGHTTP2_SETTINGS, 0, 0, wide, sizeof(wide));
	add_frame(&scene->sides[HTTP2_SERVER].says, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct http2_plan plan = {
		.target = {"a.test", 443, the_set()}, .masks = the_table(), .tell = on_told};
	struct scene *scene = calloc(1, sizeof(*scene));
	size_t piece;

	if (!scene || http2_create(&scene->http2, &plan))
		abort();
	scene->data = data;
	scene->left = size;
	piece = next(scene);
	piece = piece & 0x80 ? 16384 : 1 + piece;
	begin(scene);
	while (scene->left && !scene->http2->broken) {
		act(scene);
		move(scene, piece);
	}
	for (size_t i = 0; i < HTTP2_SIDES; i++)
		scene->sides[i].deaf = false;
	if (size & 1)
		http2_end(scene->http2, HTTP2_SERVER);
	move(scene, piece);
	http2_end(scene->http2, HTTP2_GUEST);
	move(scene, piece);
	http2_destroy(scene->http2);
	for (size_t i = 0; i < HTTP2_SIDES; i++) {
		nghttp2_hd_inflate_del(scene->sides[i].heads);
		free(scene->sides[i].says.bytes);
		free(scene->sides[i].hears.bytes);
		free(scene->sides[i].rest.bytes);
	}
	free(scene);
	return 0;
}

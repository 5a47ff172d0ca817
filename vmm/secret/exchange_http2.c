/* SPDX-License-Identifier: Apache-2.0 */
/* A connection whose both ends speak HTTP/2. */
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/broker_internal.h"

static void on_told(void *user, enum relay_event_type type, const char *text)
{
	struct exchange *exchange = user;

	broker_tell(exchange->broker, type, exchange, 0, text);
}

int exchange_begin_http2(struct exchange *exchange)
{
	struct broker *broker = exchange->broker;
	const bool watched = token_store_watches(&broker->tokens, exchange->host, exchange->port);

	explicit_bzero(exchange->buffers, sizeof(*exchange->buffers));
	free(exchange->buffers);
	exchange->buffers = NULL;
	return http2_create(&exchange->http2,
			    &(struct http2_plan){
				    .target = {exchange->host, exchange->port, broker->secrets},
				    .masks = broker->masks,
				    .tokens = watched ? &exchange->tokens : NULL,
				    .tell = on_told,
				    .user = exchange,
			    });
}

static struct tls *tls_of(struct exchange *exchange, enum http2_side side)
{
	return side == HTTP2_GUEST ? &exchange->guest : &exchange->server;
}

/* What a side says. Whether there was anything. */
static bool take(struct exchange *exchange, enum http2_side side)
{
	struct tls *tls = tls_of(exchange, side);
	uint8_t bytes[TLS_PIECE_BYTES];
	size_t count;

	if (tls->closed || !http2_may_take(exchange->http2, side))
		return false;
	count = tls_read(tls, bytes, sizeof(bytes));
	if (count) {
		http2_take(exchange->http2, side, bytes, count);
		explicit_bzero(bytes, count);
		return true;
	}
	if (!tls->over && !tls->failed)
		return false;
	http2_end(exchange->http2, side);
	return true;
}

/* What is to be said to it: frames, as many as go into a record, for those are costly. */
static bool give(struct exchange *exchange, enum http2_side side)
{
	struct tls *tls = tls_of(exchange, side);
	uint8_t record[TLS_PIECE_BYTES];
	const uint8_t *bytes;
	size_t filled = 0;
	bool moved = false;
	ssize_t length;

	if (tls->closed)
		return false;
	while (tls_has_room(tls) && (length = http2_give(exchange->http2, side, &bytes)) > 0) {
		moved = true;
		for (size_t done = 0, count; done < (size_t)length; done += count) {
			count = (size_t)bytes_minimum((size_t)length - done,
						      sizeof(record) - filled);
			memcpy(record + filled, bytes + done, count);
			filled += count;
			if (filled == sizeof(record)) {
				tls_write(tls, record, filled);
				filled = 0;
			}
		}
	}
	tls_write(tls, record, filled);
	explicit_bzero(record, sizeof(record));
	return moved;
}

/* Says that nothing more comes, where that is so. */
static bool close_what_is_over(struct exchange *exchange)
{
	const bool guest_over = exchange->guest.over || exchange->guest.failed ||
				http2_is_over(exchange->http2, HTTP2_GUEST);
	bool moved = false;

	if (guest_over && !exchange->guest.closed) {
		http2_end(exchange->http2, HTTP2_GUEST);
		give(exchange, HTTP2_SERVER);
		tls_close(&exchange->guest, true);
		moved = true;
	}
	if ((guest_over || http2_is_over(exchange->http2, HTTP2_SERVER)) &&
	    !exchange->server.closed) {
		tls_close(&exchange->server, true);
		moved = true;
	}
	return moved;
}

bool exchange_move_http2(struct exchange *exchange)
{
	bool moved = take(exchange, HTTP2_GUEST);

	moved |= give(exchange, HTTP2_SERVER);
	moved |= take(exchange, HTTP2_SERVER);
	moved |= give(exchange, HTTP2_GUEST);
	moved |= close_what_is_over(exchange);
	return moved;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/clock.h"
#include "vmm/secret/broker_internal.h"

#define HANDSHAKE_SECONDS 30U
#define REFUSAL_SECONDS   10U /* for the guest to take it */

/* How long the start of a secret in an answer waits for the rest of it. */
#define PAUSE_MS 100U

/* Rounds of one connection before others have their turn, and for how long another is begun: a few
 * bytes can be a head of HTTP/2 that is a thousand times as long. */
#define TURNS   16
#define TURN_NS (5 * (uint64_t)CLOCK_NS_PER_MS)

#define EVENTS (POLLIN | POLLOUT | POLLRDHUP)

static void advance(struct exchange *exchange);

static uint64_t seconds_from_now(unsigned int seconds)
{
	return clock_monotonic_ns() + seconds * (uint64_t)1000 * CLOCK_NS_PER_MS;
}

static void tell_uses(struct exchange *exchange)
{
	struct broker *broker = exchange->broker;
	const uint64_t *uses, *masked;

	if (!exchange->buffers && !exchange->http2)
		return;
	uses = exchange->http2 ? http2_uses(exchange->http2) : exchange->buffers->request.uses;
	masked = exchange->http2 ? http2_masked(exchange->http2)
				 : exchange->buffers->response.masker.masked;
	for (unsigned int i = 0; i < LIMIT_SECRETS; i++) {
		const char *name = broker->secrets->secrets[i].name;
		const uint64_t replaced = exchange->tokens.replaced[i];

		if (uses[i])
			broker_tell(broker, RELAY_EVENT_SECRET, exchange, uses[i], name);
		if (masked[i])
			broker_tell(broker, RELAY_EVENT_MASKED, exchange, masked[i], name);
		if (replaced)
			broker_tell(broker, RELAY_EVENT_TOKEN, exchange, replaced, name);
	}
}

void exchange_close(struct exchange *exchange)
{
	struct loop *loop;

	if (exchange->state == EXCHANGE_FREE || exchange->state == EXCHANGE_CLOSED)
		return;
	loop = exchange->broker->loop;
	tell_uses(exchange);
	exchange->state = EXCHANGE_CLOSED;
	loop_cancel(loop, &exchange->guest_watch);
	loop_cancel(loop, &exchange->server_watch);
	loop_cancel(loop, &exchange->again);
	loop_cancel(loop, &exchange->pause);
	tls_end(&exchange->guest);
	tls_end(&exchange->server);
	if (exchange->buffers)
		explicit_bzero(exchange->buffers, sizeof(*exchange->buffers));
	free(exchange->buffers);
	exchange->buffers = NULL;
	http2_destroy(exchange->http2);
	exchange->http2 = NULL;
	broker_look_for_end(exchange->broker);
}

/* The guest's program gets an answer that says why, and the user a sentence. */
static void refuse(struct exchange *exchange, enum relay_event_type type, const char *sentence)
{
	if (exchange->state != EXCHANGE_OPEN)
		return;
	broker_tell(exchange->broker, type, exchange, 0, sentence);
	snprintf(exchange->refusal, sizeof(exchange->refusal), "%s", sentence);
	exchange->refusal_type = type;
	exchange->state = EXCHANGE_REFUSING;
	exchange->deadline_ns = seconds_from_now(REFUSAL_SECONDS);
	tls_close(&exchange->server, false);
}

static void refuse_request(struct exchange *exchange)
{
	char text[RELAY_EVENT_TEXT_BYTES];

	snprintf(text, sizeof(text), "%s:%u: a request was stopped: it %s", exchange->host,
		 exchange->port, exchange->buffers->request.reason);
	refuse(exchange, RELAY_EVENT_DENIED, text);
}

static void refuse_answer(struct exchange *exchange)
{
	char text[RELAY_EVENT_TEXT_BYTES];

	snprintf(text, sizeof(text), "%s:%u: an answer was stopped: it %s", exchange->host,
		 exchange->port, exchange->buffers->response.reason);
	refuse(exchange, RELAY_EVENT_FAILED, text);
}

/* In HTTP only where nothing of an answer is on its way: else the two would be taken for one. */
static bool write_refusal(struct exchange *exchange)
{
	const bool failed = exchange->refusal_type == RELAY_EVENT_FAILED;
	char text[2 * RELAY_EVENT_TEXT_BYTES];
	int length;

	if (exchange->refusal_written || (!exchange->guest.ready && !exchange->guest.failed))
		return false;
	exchange->refusal_written = true;
	if (response_is_between(&exchange->buffers->response)) {
		length = snprintf(text, sizeof(text),
				  "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
				  "Content-Length: %zu\r\nConnection: close\r\n\r\nmvagent: %s\n",
				  failed ? "502 Bad Gateway" : "403 Forbidden",
				  strlen(exchange->refusal) + 10, exchange->refusal);
		tls_write(&exchange->guest, text, (size_t)length);
	}
	tls_close(&exchange->guest, true);
	return true;
}

/* Handshakes, one of which may fail. */
static void check_handshakes(struct exchange *exchange)
{
	char text[RELAY_EVENT_TEXT_BYTES], why[256];

	if (exchange->server.failed && !exchange->server.ready) {
		tls_explain(&exchange->server, why, sizeof(why));
		snprintf(text, sizeof(text), "%s:%u was not trusted with a secret: %s",
			 exchange->host, exchange->port, why);
		refuse(exchange, RELAY_EVENT_FAILED, text);
	} else if (exchange->guest.failed && !exchange->guest.ready) {
		tls_explain(&exchange->guest, why, sizeof(why));
		snprintf(text, sizeof(text),
			 "%s:%u: a program does not take the certificate that mvagent has for "
			 "this host, or not the HTTP that the server speaks: %s",
			 exchange->host, exchange->port, why);
		refuse(exchange, RELAY_EVENT_FAILED, text);
	} else if (exchange->guest.ready && exchange->server.ready) {
		exchange->deadline_ns = 0;
	}
}

/* From the guest to its server. Whether anything moved. */
static bool move_up(struct exchange *exchange)
{
	struct request_stream *request = &exchange->buffers->request;
	char bytes[REQUEST_ROOM];
	bool moved = false;
	ssize_t length;

	if (!tls_has_room(&exchange->server) || exchange->server.closed)
		return false;
	if (!request_is_full(request)) {
		size_t count = tls_read(&exchange->guest, bytes, REQUEST_PIECE_BYTES);

		request_add(request, bytes, count);
		moved = count > 0;
	}
	while ((length = request_take(request, bytes, sizeof(bytes))) > 0) {
		for (ssize_t done = 0; done < length; done += TLS_PIECE_BYTES)
			tls_write(&exchange->server, bytes + done,
				  (size_t)bytes_minimum(TLS_PIECE_BYTES, (size_t)(length - done)));
		explicit_bzero(bytes, (size_t)length);
		moved = true;
	}
	if (length < 0) {
		explicit_bzero(bytes, sizeof(bytes));
		refuse_request(exchange);
		return true;
	}
	if (exchange->guest.over && !exchange->server.closed) {
		/* What has no end must not look as if it had one. */
		tls_close(&exchange->server, request_is_between(request));
		moved = true;
	}
	return moved;
}

static void on_pause(struct loop_operation *operation, int result)
{
	struct exchange *exchange = CONTAINER_OF(operation, struct exchange, pause);
	char bytes[RESPONSE_ROOM];
	size_t length;

	if (result < 0 || exchange->state != EXCHANGE_OPEN)
		return;
	if (exchange->http2) {
		http2_flush(exchange->http2);
	} else {
		length = response_flush(&exchange->buffers->response, bytes);
		tls_write(&exchange->guest, bytes, length);
	}
	advance(exchange);
}

/* What waits to be told from a secret does not wait long. */
static void pause_soon(struct exchange *exchange)
{
	if (loop_operation_idle(&exchange->pause))
		loop_timer(exchange->broker->loop, &exchange->pause, PAUSE_MS, on_pause);
}

/* Plain text to the guest, which may be longer than a record. */
static void write_down(struct exchange *exchange, const char *bytes, size_t length)
{
	for (size_t done = 0; done < length; done += TLS_PIECE_BYTES)
		tls_write(&exchange->guest, bytes + done,
			  (size_t)bytes_minimum(TLS_PIECE_BYTES, length - done));
}

/* What the server has said: as far as it is understood it goes to the guest. */
static void pass_down(struct exchange *exchange, const char *bytes, size_t count)
{
	struct response_stream *response = &exchange->buffers->response;
	char out[2 * RESPONSE_ROOM];
	size_t taken, made = 0;

	for (size_t done = 0; done < count; done += taken) {
		ssize_t length =
			response_take(response, bytes + done, count - done, &taken, out + made);

		if (length < 0) {
			refuse_answer(exchange);
			return;
		}
		made += (size_t)length;
		if (made > RESPONSE_ROOM) {
			write_down(exchange, out, made);
			made = 0;
		}
	}
	write_down(exchange, out, made);
	if (masker_is_holding(&response->masker))
		pause_soon(exchange);
}

/* From the server to the guest. */
static bool move_down(struct exchange *exchange)
{
	char in[MASKER_PIECE_BYTES], out[RESPONSE_ROOM];
	size_t count, length;

	if (!tls_has_room(&exchange->guest) || exchange->guest.closed)
		return false;
	count = tls_read(&exchange->server, in, sizeof(in));
	if (count) {
		pass_down(exchange, in, count);
		explicit_bzero(in, count);
		return true;
	}
	if (!exchange->server.over && !exchange->server.failed)
		return false;
	length = response_flush(&exchange->buffers->response, out);
	write_down(exchange, out, length);
	tls_close(&exchange->guest, exchange->server.over_told);
	return true;
}

static bool is_over(const struct exchange *exchange)
{
	const struct tls *guest = &exchange->guest, *server = &exchange->server;

	if (exchange->state == EXCHANGE_REFUSING)
		return exchange->refusal_written && tls_is_sent(guest) &&
		       (guest->fd_over || guest->failed);
	/* What the guest said before it left still goes to the server, if it got so far. */
	if (exchange->guest_gone && (!server->ready || (server->closed && tls_is_sent(server))))
		return true;
	return (guest->ready && guest->failed) || (guest->closed && tls_is_sent(guest)) ||
	       (guest->over && server->failed);
}

/* While a refusal waits to be taken what the guest says is not wanted any more. */
static void discard(struct exchange *exchange)
{
	char bytes[TLS_PIECE_BYTES];

	while (exchange->guest.ready && tls_read(&exchange->guest, bytes, sizeof(bytes)) > 0)
		continue;
}

/* The server is asked when it is known what the guest speaks, and decides. */
static bool move_server(struct exchange *exchange)
{
	struct alpn *alpn = &exchange->alpn;
	struct tls *server = &exchange->server;
	bool moved;

	if (!alpn->asked && !exchange->guest.failed)
		return false;
	if (!exchange->server_asked) {
		alpn->http2 = alpn->http2 && broker_has_room_for_http2(exchange->broker);
		server->failed |= alpn_ask_server(alpn, server->ssl) < 0;
		exchange->server_asked = true;
	}
	moved = tls_move(server);
	if (!alpn->settled && (server->ready || server->failed)) {
		alpn_settle(alpn, server->ready ? server->ssl : NULL);
		moved = true;
	}
	return moved;
}

static bool move_both_ways(struct exchange *exchange)
{
	bool moved;

	if (exchange->alpn.http2 && !exchange->http2 &&
	    (!alpn_is_http2(exchange->guest.ssl) || exchange_begin_http2(exchange) < 0)) {
		exchange_close(exchange);
		return false;
	}
	if (exchange->http2) {
		moved = exchange_move_http2(exchange);
		if (http2_is_holding(exchange->http2))
			pause_soon(exchange);
		return moved;
	}
	moved = move_up(exchange);
	if (exchange->state == EXCHANGE_OPEN)
		moved |= move_down(exchange);
	return moved;
}

static bool take_turn(struct exchange *exchange)
{
	bool moved = tls_move(&exchange->guest);

	moved |= move_server(exchange);
	if (exchange->state == EXCHANGE_OPEN)
		check_handshakes(exchange);
	if (exchange->state == EXCHANGE_OPEN && exchange->guest.ready && exchange->server.ready)
		moved |= move_both_ways(exchange);
	if (exchange->state == EXCHANGE_REFUSING) {
		moved |= write_refusal(exchange);
		discard(exchange);
	}
	return moved;
}

static void on_again(struct loop_operation *operation, int result)
{
	struct exchange *exchange = CONTAINER_OF(operation, struct exchange, again);

	if (result == 0)
		advance(exchange);
}

static void advance(struct exchange *exchange)
{
	const uint64_t end_ns = clock_monotonic_ns() + TURN_NS;
	bool moved = true;

	if (exchange->state == EXCHANGE_FREE || exchange->state == EXCHANGE_CLOSED)
		return;
	for (int i = 0; moved && i < TURNS && (i == 0 || clock_monotonic_ns() < end_ns); i++)
		moved = take_turn(exchange);
	if (exchange->state == EXCHANGE_CLOSED)
		return;
	if (is_over(exchange))
		exchange_close(exchange);
	else if (moved && loop_operation_idle(&exchange->again))
		loop_timer(exchange->broker->loop, &exchange->again, 0, on_again);
}

static void on_guest(struct loop_operation *operation, int result)
{
	struct exchange *exchange = CONTAINER_OF(operation, struct exchange, guest_watch);

	if (result < 0 || exchange->state == EXCHANGE_CLOSED)
		return;
	exchange->guest_gone |= (result & (POLLHUP | POLLERR)) != 0;
	advance(exchange);
}

static void on_server(struct loop_operation *operation, int result)
{
	struct exchange *exchange = CONTAINER_OF(operation, struct exchange, server_watch);

	if (result >= 0)
		advance(exchange);
}

static int begin(struct exchange *exchange, const struct terminate_message *message)
{
	struct broker *broker = exchange->broker;
	SSL_CTX *context = broker_context(broker, exchange->host, exchange->port);
	struct loop *loop = broker->loop;
	int error;

	exchange->buffers = calloc(1, sizeof(*exchange->buffers));
	if (!context || !exchange->buffers)
		return -ENOMEM;
	exchange->buffers->response.request = &exchange->buffers->request;
	exchange->buffers->response.masker.table = broker->masks;
	exchange->tokens =
		(struct token_scope){&broker->tokens, exchange->host, exchange->port, {0}};
	exchange->buffers->tokens.scope = &exchange->tokens;
	if (token_store_watches(&broker->tokens, exchange->host, exchange->port))
		exchange->buffers->response.tokens = &exchange->buffers->tokens;
	exchange->buffers->request.target =
		(struct http_target){exchange->host, exchange->port, broker->secrets};
	error = tls_begin(&exchange->guest, context, message->first, message->length);
	if (!error)
		alpn_attach(&exchange->alpn, exchange->guest.ssl);
	error = error ? error : tls_begin(&exchange->server, broker->server_context, NULL, 0);
	error = error ? error : tls_expect(&exchange->server, exchange->host);
	error = error ? error
		      : loop_watch(loop, &exchange->guest_watch, exchange->guest.fd, EVENTS,
				   on_guest);
	return error ? error
		     : loop_watch(loop, &exchange->server_watch, exchange->server.fd, EVENTS,
				  on_server);
}

void exchange_open(struct exchange *exchange, const struct terminate_message *message, int guest_fd,
		   int server_fd)
{
	struct broker *broker = exchange->broker;

	*exchange = (struct exchange){
		.broker = broker,
		.state = EXCHANGE_OPEN,
		.port = (uint16_t)message->port,
		.guest.fd = guest_fd,
		.server.fd = server_fd,
		.deadline_ns = seconds_from_now(HANDSHAKE_SECONDS),
	};
	snprintf(exchange->host, sizeof(exchange->host), "%s", message->host);
	if (begin(exchange, message) < 0) {
		exchange_close(exchange);
		return;
	}
	broker_start_ticking(broker);
	advance(exchange);
}

static bool is_at_rest(const struct exchange *exchange)
{
	return loop_operation_idle(&exchange->guest_watch) &&
	       loop_operation_idle(&exchange->server_watch) &&
	       loop_operation_idle(&exchange->again) && loop_operation_idle(&exchange->pause);
}

bool exchange_is_free(struct exchange *exchange)
{
	if (exchange->state == EXCHANGE_CLOSED && is_at_rest(exchange))
		exchange->state = EXCHANGE_FREE;
	return exchange->state == EXCHANGE_FREE;
}

void exchange_tick(struct exchange *exchange, uint64_t now_ns)
{
	if (exchange->state != EXCHANGE_OPEN && exchange->state != EXCHANGE_REFUSING)
		return;
	if (exchange->deadline_ns && now_ns > exchange->deadline_ns)
		exchange_close(exchange);
}

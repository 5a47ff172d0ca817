/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/broker.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/base/bytes.h"
#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/secret/broker_internal.h"

#define TICK_MS 1000U

void broker_tell(struct broker *broker, enum relay_event_type type, const struct exchange *exchange,
		 uint64_t count, const char *text)
{
	struct relay_event event = {
		.type = type,
		.port = exchange->port,
		.sent = type == RELAY_EVENT_SECRET ? count : 0,
		.received = type == RELAY_EVENT_MASKED || type == RELAY_EVENT_TOKEN ? count : 0,
	};

	snprintf(event.host, sizeof(event.host), "%s", exchange->host);
	snprintf(event.text, sizeof(event.text), "%s", text);
	if (type == RELAY_EVENT_DENIED || type == RELAY_EVENT_FAILED) {
		if (!told_is_new(&broker->told, &event))
			return;
		told_add(&broker->told, &event);
	}
	/* A supervisor that is behind is waited for: the use of a secret must be told. */
	while (send(broker->event_fd, &event, sizeof(event), MSG_NOSIGNAL) < 0 && errno == EINTR)
		continue;
}

SSL_CTX *broker_context(struct broker *broker, const char *host, uint16_t port)
{
	/* Tokens, which come last, are for no further hosts. */
	for (unsigned int i = 0; i < bytes_minimum(broker->secrets->count, LIMIT_SECRETS); i++) {
		const struct secret *secret = &broker->secrets->secrets[i];

		for (unsigned int j = 0; j < secret->host_count; j++) {
			if (secret->hosts[j].port == port &&
			    strcmp(secret->hosts[j].name, host) == 0)
				return broker->contexts[i][j];
		}
	}
	return NULL;
}

bool broker_has_room_for_http2(const struct broker *broker)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < LIMIT_SECRET_CONNECTIONS; i++) {
		const struct exchange *exchange = &broker->exchanges[i];

		count += exchange->state == EXCHANGE_OPEN && exchange->server_asked &&
			 exchange->alpn.http2;
	}
	return count < LIMIT_HTTP2_CONNECTIONS;
}

static void on_tick(struct loop_operation *operation, int result)
{
	struct broker *broker = CONTAINER_OF(operation, struct broker, tick);
	const uint64_t now = clock_monotonic_ns();
	bool any = false;

	if (result < 0)
		return;
	for (unsigned int i = 0; i < LIMIT_SECRET_CONNECTIONS; i++) {
		exchange_tick(&broker->exchanges[i], now);
		any |= !exchange_is_free(&broker->exchanges[i]);
	}
	if (any)
		loop_timer(broker->loop, &broker->tick, TICK_MS, on_tick);
}

void broker_start_ticking(struct broker *broker)
{
	if (loop_operation_idle(&broker->tick))
		loop_timer(broker->loop, &broker->tick, TICK_MS, on_tick);
}

void broker_look_for_end(struct broker *broker)
{
	if (!broker->over)
		return;
	for (unsigned int i = 0; i < LIMIT_SECRET_CONNECTIONS; i++) {
		if (broker->exchanges[i].state == EXCHANGE_OPEN ||
		    broker->exchanges[i].state == EXCHANGE_REFUSING)
			return;
	}
	loop_stop(broker->loop, 0);
}

/* Those that came: fewer than were sent if there was no room for more (recvmsg(2), MSG_CTRUNC). */
static void take_descriptors(const struct cmsghdr *header, int fds[TERMINATE_DESCRIPTORS])
{
	if (header->cmsg_len > CMSG_LEN(0) && header->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(header),
		       (size_t)bytes_minimum(header->cmsg_len - CMSG_LEN(0),
					     TERMINATE_DESCRIPTORS * sizeof(int)));
}

/* A packet and its two sockets, for which there may be no room. 1, 0 when there is none now, -errno
 * when there will be none. */
static int receive(struct broker *broker, struct terminate_message *message, int fds[2])
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(TERMINATE_DESCRIPTORS * sizeof(int))];
	} control = {0};
	struct iovec vector = {message, sizeof(*message)};
	struct msghdr header = {.msg_iov = &vector,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = sizeof(control)};
	ssize_t length = recvmsg(broker->relay_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR ? 1 : 0;
	if (length <= 0)
		return -ECONNRESET;
	take_descriptors(&control.header, fds);
	if (length < (ssize_t)offsetof(struct terminate_message, first) ||
	    message->length != (size_t)length - offsetof(struct terminate_message, first) ||
	    message->port == 0 || message->port > UINT16_MAX)
		return -EPROTO;
	message->host[sizeof(message->host) - 1] = '\0';
	return 1;
}

static struct exchange *find_free(struct broker *broker)
{
	for (unsigned int i = 0; i < LIMIT_SECRET_CONNECTIONS; i++) {
		if (exchange_is_free(&broker->exchanges[i]))
			return &broker->exchanges[i];
	}
	return NULL;
}

static void on_relay(struct loop_operation *operation, int result)
{
	struct broker *broker = CONTAINER_OF(operation, struct broker, relay_watch);
	struct terminate_message message = {0};

	if (result == -ECANCELED)
		return;
	for (;;) {
		int fds[TERMINATE_DESCRIPTORS] = {-1, -1};
		struct exchange *exchange;
		int received = receive(broker, &message, fds);

		if (received == 0)
			return;
		exchange = received > 0 && fds[1] >= 0 ? find_free(broker) : NULL;
		if (exchange) {
			exchange->broker = broker;
			exchange_open(exchange, &message, fds[0], fds[1]);
			continue;
		}
		fd_close(&fds[0]);
		fd_close(&fds[1]);
		if (received < 0) {
			loop_cancel(broker->loop, &broker->relay_watch);
			broker->over = true;
			broker_look_for_end(broker);
			return;
		}
	}
}

/* The server must be who it says, by the host's own trust, in TLS of today. */
static SSL_CTX *make_server_context(X509_STORE *trust)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	if (!context || !SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION)) {
		SSL_CTX_free(context);
		return NULL;
	}
	SSL_CTX_set1_cert_store(context, trust);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	return context;
}

static int make_contexts(struct broker *broker)
{
	for (unsigned int i = 0; i < broker->secrets->count; i++) {
		const struct secret *secret = &broker->secrets->secrets[i];

		for (unsigned int j = 0; j < secret->host_count; j++) {
			broker->contexts[i][j] =
				authority_certify(broker->authority, secret->hosts[j].name);
			if (!broker->contexts[i][j])
				return -ENOMEM;
		}
	}
	return 0;
}

int broker_create(struct broker **broker, struct loop *loop, const struct broker_plan *plan)
{
	struct broker *made = calloc(1, sizeof(*made));
	int error;

	if (!made)
		return log_errno(-ENOMEM, "cannot begin");
	made->loop = loop;
	made->secrets = plan->secrets;
	made->authority = plan->authority;
	made->relay_fd = plan->relay_fd;
	made->event_fd = plan->event_fd;
	made->server_context = make_server_context(plan->trust);
	X509_STORE_free(plan->trust);
	error = made->server_context ? make_contexts(made) : -ENOMEM;
	error = error ? error : mask_table_create(&made->masks, plan->secrets);
	made->tokens = (struct token_store){plan->secrets, made->masks, plan->secrets->count};
	error = error ? error
		      : loop_watch(loop, &made->relay_watch, made->relay_fd, POLLIN, on_relay);
	if (error) {
		broker_destroy(made);
		return log_errno(error, "cannot begin");
	}
	*broker = made;
	return 0;
}

void broker_destroy(struct broker *broker)
{
	if (!broker)
		return;
	broker->over = false;
	loop_end(broker->loop, &broker->tick);
	loop_end(broker->loop, &broker->relay_watch);
	for (unsigned int i = 0; i < LIMIT_SECRET_CONNECTIONS; i++) {
		struct exchange *exchange = &broker->exchanges[i];

		exchange_close(exchange);
		while (!exchange_is_free(exchange)) {
			if (loop_run_once(broker->loop, -1) < 0)
				log_fatal("cannot end a connection");
		}
	}
	for (unsigned int i = 0; i < LIMIT_SECRETS; i++) {
		for (unsigned int j = 0; j < LIMIT_SECRET_HOSTS; j++)
			SSL_CTX_free(broker->contexts[i][j]);
	}
	told_end(&broker->told, broker->event_fd, 0);
	SSL_CTX_free(broker->server_context);
	mask_table_destroy(broker->masks);
	fd_close(&broker->relay_fd);
	fd_close(&broker->event_fd);
	free(broker);
}

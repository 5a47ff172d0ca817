/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the broker share. */
#ifndef MVAGENT_SECRET_BROKER_INTERNAL_H
#define MVAGENT_SECRET_BROKER_INTERNAL_H

#include "vmm/secret/alpn.h"
#include "vmm/secret/broker.h"
#include "vmm/secret/http2.h"
#include "vmm/secret/response.h"
#include "vmm/secret/tls.h"
#include "vmm/secret/token_store.h"
#include "vmm/wire/terminate.h"
#include "vmm/wire/told.h"

enum exchange_state {
	EXCHANGE_FREE,
	EXCHANGE_OPEN,
	EXCHANGE_REFUSING, /* the guest is told why, and then it is over */
	EXCHANGE_CLOSED,   /* waits for the loop to let go of it */
};

/* HTTP/1.1; what is only there while it is used. */
struct exchange_buffers {
	struct request_stream request;
	struct response_stream response;
	struct token_scan tokens;
};

/* One connection of the guest's, and the one to its server. */
struct exchange {
	struct broker *broker;
	enum exchange_state state;
	char host[RELAY_NAME_BYTES + 1];
	uint16_t port;
	struct tls guest, server;
	struct loop_operation guest_watch, server_watch, again, pause;
	struct alpn alpn;
	struct token_scope tokens;
	bool server_asked;                /* its handshake has begun */
	struct exchange_buffers *buffers; /* NULL in HTTP/2 */
	struct http2 *http2;              /* NULL in HTTP/1.1 */
	uint64_t deadline_ns;             /* of the handshakes, or of a refusal; 0: none */
	enum relay_event_type refusal_type;
	bool refusal_written;
	bool guest_gone; /* it has closed its whole end */
	char refusal[RELAY_EVENT_TEXT_BYTES];
};

struct broker {
	struct loop *loop;
	const struct secret_set *secrets;
	const struct authority *authority;
	struct mask_table *masks;
	struct token_store tokens;
	SSL_CTX *server_context;                              /* for connections to servers */
	SSL_CTX *contexts[LIMIT_SECRETS][LIMIT_SECRET_HOSTS]; /* for the guest, in a host's name */
	int relay_fd;
	int event_fd;
	bool over; /* mvagent-relay is gone */
	struct loop_operation relay_watch;
	struct loop_operation tick;
	struct told told; /* of denials and failures */
	struct exchange exchanges[LIMIT_SECRET_CONNECTIONS];
};

/* Begins with both sockets, which it takes over. */
void exchange_open(struct exchange *exchange, const struct terminate_message *message, int guest_fd,
		   int server_fd);

/* Ends it now. */
void exchange_close(struct exchange *exchange);

/* Whether it is FREE: also one that is CLOSED, when the loop has let go of it. */
bool exchange_is_free(struct exchange *exchange);

/* From now on it speaks HTTP/2. 0 or -ENOMEM. */
int exchange_begin_http2(struct exchange *exchange);

/* Moves what there is, in both directions. Whether anything moved. */
bool exchange_move_http2(struct exchange *exchange);

void exchange_tick(struct exchange *exchange, uint64_t now_ns);

/* The context for TLS with the guest in the name of a host; NULL: no secret is for it. */
SSL_CTX *broker_context(struct broker *broker, const char *host, uint16_t port);

/* Tells the supervisor; a denial or failure with the same words once. */
void broker_tell(struct broker *broker, enum relay_event_type type, const struct exchange *exchange,
		 uint64_t count, const char *text);

/* Whether one more connection may speak HTTP/2. */
bool broker_has_room_for_http2(const struct broker *broker);

void broker_start_ticking(struct broker *broker);

/* One is closed: that may have been the last. */
void broker_look_for_end(struct broker *broker);

#endif

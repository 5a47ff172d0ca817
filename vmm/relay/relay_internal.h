/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the relay share. */
#ifndef MVAGENT_RELAY_RELAY_INTERNAL_H
#define MVAGENT_RELAY_RELAY_INTERNAL_H

#include "vmm/relay/dial.h"
#include "vmm/relay/first.h"
#include "vmm/base/flow.h"
#include "vmm/base/stream_search.h"
#include "vmm/relay/lookup.h"
#include "vmm/relay/relay.h"
#include "vmm/wire/relay.h"
#include "vmm/wire/told.h"

/*
 *   FREE -> REQUEST -> LOOKUP -> DIAL -> PROXY -> OPEN -> CLOSED -> FREE
 * Without a name there is no LOOKUP, without a proxy no PROXY. REQUEST -> OFFERED -> OPEN for a
 * stream that waits for somebody on the host. CLOSED waits for the loop to let go of it.
 */
enum connection_state {
	CONNECTION_FREE,
	CONNECTION_REQUEST, /* the guest has not said all that it wants */
	CONNECTION_LOOKUP,
	CONNECTION_DIAL,
	CONNECTION_PROXY, /* CONNECT was sent */
	CONNECTION_OPEN,
	CONNECTION_OFFERED,
	CONNECTION_CLOSED,
};

struct connection {
	struct relay *relay;
	enum connection_state state;
	int guest_fd;  /* one end of a pair, -1: none */
	int server_fd; /* TCP, -1: none */
	struct loop_operation guest_watch, server_watch, again;
	struct loop_operation inner_watch; /* of guest_fd once it leads to mvagent-secret */
	bool terminated;                   /* it does */
	uint64_t deadline_ns;              /* of the state; in OPEN of the first bytes. 0: none */
	uint64_t opened_ns;                /* when the server was there */
	uint64_t moved_ns;                 /* when bytes last moved */

	struct relay_request request;
	char host[NAME_BYTES]; /* in its one form, or an address as text */
	bool is_address;
	bool guest_gone; /* it has closed its whole end */
	bool end_untold; /* the supervisor was behind when it was over */

	/* What the guest said before it is clear what it is, and then the verdict on it. */
	uint8_t *first;
	size_t first_length;
	bool first_over;
	enum first_verdict verdict;

	struct lookup_waiter waiter;
	struct dial dial;
	char *proxy_head; /* of the proxy's answer, while in PROXY */
	size_t proxy_length;
	struct flow up, down;         /* from the guest, and to it */
	struct stream_search *search; /* for placeholders, in what is in the clear; or NULL */
};

struct listener {
	struct relay *relay;
	int fd; /* -1: none */
	uint16_t guest_port;
	struct loop_operation watch;
};

struct relay {
	struct loop *loop;
	const struct relay_settings *settings;
	struct lookup *lookup;
	int lender_fd;
	int event_fd;
	int secret_fd; /* to mvagent-secret; -1: there is none */
	int sign_fd;   /* to mvagent-sign; the same */
	struct loop_operation lender_watch;
	struct loop_operation tick;
	struct loop_operation farewell;
	uint64_t end_ns;               /* when it ends at the latest; 0: not yet */
	unsigned int connection_count; /* that there may be */
	struct connection *connections;
	struct listener listeners[LIMIT_RELAY_PUBLISHED];
	struct told told;    /* of denials */
	uint64_t bytes_left; /* of settings->byte_limit, if there is one */
	bool spent;          /* more was to be moved: nothing is any more */
	bool spent_told;
	bool ending; /* there is nothing else to be done but to tell: that may wait */
};

/* Hands the guest's end over to mvagent-secret, with what it has said; the connection goes on with
 * what that one has to say in the guest's place, as if nobody had said anything yet. 0 or -errno.
 * (terminate.c) */
int connection_hand_over(struct connection *connection);

/* Hands the guest's end over to mvagent-sign, with what it has said, and is done. (terminate.c) */
void connection_hand_over_to_sign(struct connection *connection);

/* Looks for placeholders in what the guest says, from now on. Whether what it has said
 * before has none; else the denial was told. (terminate.c) */
bool connection_inspect(struct connection *connection);

/* Takes bytes that no flow reads from what may still be moved. Whether there were so many.
 * (spend.c) */
bool connection_pay(struct connection *connection, size_t length);

/* More was to be moved than may be: ends all connections, and tells. (spend.c) */
void relay_end_spent(struct relay *relay);

/* Whether there is nothing left to tell of that. (spend.c) */
bool relay_tell_spent(struct relay *relay);

/* Begins with the guest's stream, which it takes over. */
void connection_open(struct connection *connection, int guest_fd);

/* What can happen next, if anything. */
void connection_advance(struct connection *connection);

#define CONNECTION_EVENTS (POLLIN | POLLOUT | POLLRDHUP)

/* Ends it now, whatever is under way. */
void connection_close(struct connection *connection);

/* Somebody has connected to the host's side of @guest_port; takes over @server_fd. */
void connection_accept(struct connection *connection, int server_fd, uint16_t guest_port);

/* Whether it is FREE: also one that is CLOSED, when the loop has let go of it. */
bool connection_is_free(struct connection *connection);

/* Ends it when its time is over. Returns whether it needs to be looked at again soon. */
bool connection_tick(struct connection *connection, uint64_t now_ns);

/* Tells the supervisor. A denial in the same words is told once. Whether it need not be told again:
 * a supervisor that is behind is not waited for. */
bool relay_tell(struct relay *relay, enum relay_event_type type,
		const struct connection *connection, const char *text);

/* Offers are there: somebody may have been waiting. */
void relay_serve_listeners(struct relay *relay);

/* Sees to it that connection_tick is called. */
void relay_start_ticking(struct relay *relay);

#endif

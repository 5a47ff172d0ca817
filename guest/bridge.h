/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of the guest's programs to hosts that are allowed, carried to mvagent-relay over
 * vsock, one stream each; and those of the host's programs to ports of the guest. */
#ifndef GUEST_BRIDGE_H
#define GUEST_BRIDGE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/flow.h"
#include "vmm/base/limits.h"
#include "vmm/wire/relay.h"

enum bridge_state {
	BRIDGE_FREE,
	BRIDGE_CONNECTING, /* to the relay */
	BRIDGE_ASKED,      /* it has been told what for, and has not answered */
	BRIDGE_OPEN,
};

struct bridge_connection {
	enum bridge_state state;
	bool offer; /* waits for somebody on the host; its client is a server of the guest then */
	bool asked_by_http;   /* the client waits for an answer to its CONNECT */
	bool again;           /* there is work that no event announces */
	int client;           /* TCP, -1: none yet */
	int host;             /* vsock */
	struct flow up, down; /* to the host, and from it */
	unsigned int answer_length;
	uint8_t answer[RELAY_OFFER_BYTES];
};

struct bridge {
	int epoll;
	uint32_t tag;
	unsigned int in_use; /* connections from here on are free */
	unsigned int wanted_offers, offers;
	struct bridge_connection connections[LIMIT_RELAY_CONNECTIONS];
};

#define BRIDGE_TAGS (2 * LIMIT_RELAY_CONNECTIONS)

/* Zeroes the bridge. Events on @epoll have data.u32 from @tag on. */
void bridge_init(struct bridge *bridge, int epoll, uint32_t tag);

/* Takes over @client, a connection to what the guest believes is @name and @port. */
void bridge_carry(struct bridge *bridge, int client, const char *name, uint16_t port);

/* As bridge_carry, for a client that has asked by CONNECT and said @rest after it; it is answered
 * in HTTP. */
void bridge_carry_request(struct bridge *bridge, int client, const char *name, uint16_t port,
			  const void *rest, size_t rest_length);

/* Takes over @client, who wants to speak to the host's ssh-agent. */
void bridge_carry_agent(struct bridge *bridge, int client);

/* Sees to it that so many streams wait for somebody on the host. */
void bridge_offer(struct bridge *bridge, unsigned int count);

/* Handles an event, @tag being relative to the first. */
void bridge_handle(struct bridge *bridge, uint32_t tag, uint32_t events);

/* Work that no event announces. Returns whether there is still some. */
bool bridge_do_rest(struct bridge *bridge);

#endif

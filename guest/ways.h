/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and addresses that the guest may reach: each name gets an address of the loopback network,
 * and at each of its ports somebody listens who carries connections to the host. What is allowed
 * the host says; a guest that believes otherwise only finds that its connections are refused.
 */
#ifndef GUEST_WAYS_H
#define GUEST_WAYS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "guest/bridge.h"
#include "guest/dns.h"
#include "vmm/wire/names.h"

#define WAYS_NAMES     512U
#define WAYS_LISTENERS 2048U

struct ways_name {
	char name[DNS_NAME_BYTES];
	struct in_addr address;
};

struct ways_listener {
	int fd;
	unsigned int name; /* index */
	uint16_t port;
};

struct ways {
	int host; /* to the supervisor; -1: nobody is there to ask */
	int epoll;
	uint32_t tag;
	struct bridge *bridge;
	bool wants_proxy; /* --proxy-env: guest/connect_proxy.h */
	bool wants_agent; /* --ssh-agent: guest/agent_socket.h */
	unsigned int name_count;
	unsigned int listener_count;
	struct ways_name names[WAYS_NAMES];
	struct ways_listener listeners[WAYS_LISTENERS];
};

/* Connects to the supervisor, and makes what it allows by address. Events of the listeners on
 * @epoll have data.u32 from @tag on. 0, or -errno when nobody is there to ask: then no name is
 * known. */
int ways_open(struct ways *ways, struct bridge *bridge, int epoll, uint32_t tag);

/* For dns.h, with the ways as context. */
bool ways_find(void *context, const char *name, struct in_addr *address);
bool ways_find_address(void *context, struct in_addr address, char name[DNS_NAME_BYTES]);

/* Somebody connects to the listener; @tag is relative to the first. */
void ways_accept(struct ways *ways, uint32_t tag);

#endif

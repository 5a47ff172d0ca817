/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's resolver: DNS on 127.0.0.1, by UDP and TCP. A name that is not known gets its answer
 * at once; nothing is ever asked elsewhere.
 */
#ifndef GUEST_RESOLVER_H
#define GUEST_RESOLVER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/dns.h"

#define RESOLVER_CLIENTS      16U /* that may have a question by TCP at once */
#define RESOLVER_CLIENT_BYTES 600U

/* A connection by TCP, and the part of its question that has come. */
struct resolver_client {
	int fd; /* -1: free */
	size_t have;
	uint8_t bytes[RESOLVER_CLIENT_BYTES];
};

struct resolver {
	const struct dns_names *names;
	int epoll;
	uint32_t tag; /* of the first event: RESOLVER_TAGS follow each other */
	int udp;
	int tcp;
	unsigned int oldest; /* of the clients: who has to go when there is one more */
	struct resolver_client clients[RESOLVER_CLIENTS];
};

#define RESOLVER_TAGS (2 + RESOLVER_CLIENTS)

/* Takes the sockets of @port of 127.0.0.1, bound already when this returns. 0 or -errno. */
int resolver_bind(struct resolver *resolver, in_port_t port);

/* Watches them on @epoll, with data.u32 from @tag on. 0 or -errno. */
int resolver_open(struct resolver *resolver, const struct dns_names *names, int epoll,
		  uint32_t tag);

/* Handles an event, @tag being relative to the first. */
void resolver_handle(struct resolver *resolver, uint32_t tag);

void resolver_close(struct resolver *resolver);

#endif

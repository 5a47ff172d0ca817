/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proxy on the guest's loopback for programs that insist on one (--proxy-env): it knows CONNECT
 * (RFC 9110, 9.3.6) and nothing else. It finds no names and decides nothing: what is asked for goes
 * to the host as it is, in the stream that any other connection to the outside would get.
 */
#ifndef GUEST_CONNECT_PROXY_H
#define GUEST_CONNECT_PROXY_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/bridge.h"

#define CONNECT_PROXY_CLIENTS    64U /* that may be saying at once what they want */
#define CONNECT_PROXY_HEAD_BYTES 4096U

/* A connection whose request has come in part. */
struct connect_proxy_client {
	int fd; /* -1: free */
	size_t have;
	char head[CONNECT_PROXY_HEAD_BYTES];
};

struct connect_proxy {
	struct bridge *bridge;
	int epoll;
	uint32_t tag;        /* of the first event: CONNECT_PROXY_TAGS follow each other */
	int listener;        /* -1: there is no such proxy */
	unsigned int oldest; /* of the clients: who has to go when there is one more */
	struct connect_proxy_client clients[CONNECT_PROXY_CLIENTS];
};

#define CONNECT_PROXY_TAGS (1 + CONNECT_PROXY_CLIENTS)

struct connect_proxy_target {
	char name[RELAY_NAME_BYTES + 1]; /* or an address as text, without brackets */
	uint16_t port;
};

/* Reads the head of a request. Returns its length, 0 when it has not all come, or the status that
 * refuses it, negative: -400, -431 (too long) or -501 (not CONNECT). Pure. */
int connect_proxy_read(const char *bytes, size_t length, struct connect_proxy_target *target);

/* Listens at @address. Events on @epoll have data.u32 from @tag on. 0 or -errno. */
int connect_proxy_open(struct connect_proxy *proxy, struct bridge *bridge,
		       const struct sockaddr_in *address, int epoll, uint32_t tag);

/* Handles an event, @tag being relative to the first. */
void connect_proxy_handle(struct connect_proxy *proxy, uint32_t tag);

#endif

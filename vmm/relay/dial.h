/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP connection to the first of several addresses that answers (RFC 8305): one family after the
 * other, the next as soon as one has failed or has not answered for a while. */
#ifndef MVAGENT_RELAY_DIAL_H
#define MVAGENT_RELAY_DIAL_H

#include <stdbool.h>

#include "vmm/base/limits.h"
#include "vmm/loop/loop.h"
#include "vmm/relay/address.h"

#define DIAL_AT_ONCE 3U

struct dial;

struct dial_attempt {
	struct dial *dial;
	int fd; /* -1: none */
	struct loop_operation watch;
};

/* Embedded by its owner; zero before first use. */
struct dial {
	struct loop *loop;
	void (*done)(struct dial *dial, int fd, const struct address *address);
	uint16_t port;
	unsigned int count;
	unsigned int next; /* address to try */
	struct address addresses[LIMIT_RELAY_ADDRESSES];
	unsigned int tried[DIAL_AT_ONCE]; /* address of each attempt */
	struct dial_attempt attempts[DIAL_AT_ONCE];
	struct loop_operation pause;
	bool active;
	int error; /* of the last attempt that failed */
};

/* Begins, with addresses and port filled in by the caller. @done is called once from the loop, with
 * a connected, non-blocking socket that is the owner's then, or -errno. */
void dial_start(struct dial *dial, struct loop *loop,
		void (*done)(struct dial *dial, int fd, const struct address *address));

/* It is not called any more. */
void dial_stop(struct dial *dial);

/* Whether its memory may be used for something else. */
bool dial_is_idle(const struct dial *dial);

/* Puts addresses of both families in turns, IPv6 first, each family in its own order. */
void dial_sort(struct address *addresses, unsigned int count);

#endif

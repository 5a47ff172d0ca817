/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of allowed names, by c-ares from the host's name servers. What was found is kept for as
 * long as its owner says, within bounds: everyone who asks meanwhile gets the same. Several who ask
 * at once are one question.
 */
#ifndef MVAGENT_RELAY_LOOKUP_H
#define MVAGENT_RELAY_LOOKUP_H

#include "vmm/base/limits.h"
#include "vmm/loop/loop.h"
#include "vmm/relay/address.h"
#include "vmm/relay/names.h"

struct lookup;

struct lookup_result {
	const char *error; /* NULL, or why there is none */
	unsigned int count;
	struct address addresses[LIMIT_RELAY_ADDRESSES]; /* in the order that they came */
};

/* Who waits for a result. Embedded by its owner; zero before first use. */
struct lookup_waiter {
	void (*done)(struct lookup_waiter *waiter, const struct lookup_result *result);
	struct lookup_waiter *next;
	bool waiting;
};

/* @servers: ADDRESS[:PORT],... in place of those of /etc/resolv.conf, or NULL. Reads what c-ares
 * needs of the host's files: later there are none. 0 or -errno with the sentence printed. */
int lookup_create(struct lookup **lookup, struct loop *loop, const char *servers);
void lookup_destroy(struct lookup *lookup);

/* Asks for @name. @done is called once, perhaps before this returns. */
void lookup_ask(struct lookup *lookup, const char *name, struct lookup_waiter *waiter,
		void (*done)(struct lookup_waiter *waiter, const struct lookup_result *result));

/* It is not called any more. No-op when it does not wait. */
void lookup_forget(struct lookup *lookup, struct lookup_waiter *waiter);

/* To be called every so often: questions that had no answer in time are asked again, or given up.
 */
void lookup_tick(struct lookup *lookup);

#endif

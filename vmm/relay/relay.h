/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay: connections of the guest to what the policy allows, and of the host to ports of the
 * guest that are published. mvagent-vmm asks for one end of a stream for each connection of the
 * guest (vmm/wire/lend.h); what the guest says in it (vmm/wire/relay.h) is a request and no more.
 */
#ifndef MVAGENT_RELAY_RELAY_H
#define MVAGENT_RELAY_RELAY_H

#include "vmm/loop/loop.h"
#include "vmm/relay/settings.h"

struct relay;

/* Operations of the loop that a relay may need. */
#define RELAY_LOOP_CAPACITY (8U * LIMIT_RELAY_CONNECTIONS)

struct relay_plan {
	const struct relay_settings *settings; /* outlives the relay */
	int lender_fd;                         /* to mvagent-vmm; the relay's then */
	int event_fd;                          /* to the supervisor; the relay's then */
	int secret_fd;                         /* to mvagent-secret, or -1; the relay's then */
	int sign_fd;                           /* to mvagent-sign, or -1; the relay's then */
	int listeners[LIMIT_RELAY_PUBLISHED];  /* of settings->published; the relay's then */
	unsigned int connections;              /* at once: what descriptors allow, at most
						  LIMIT_RELAY_CONNECTIONS */
};

/* 0 or -errno with the sentence printed; the plan's descriptors are closed in either case when the
 * relay is. */
int relay_create(struct relay **relay, struct loop *loop, const struct relay_plan *plan);
void relay_destroy(struct relay *relay);

#endif

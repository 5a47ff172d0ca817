/* SPDX-License-Identifier: Apache-2.0 */
/* All connections whose TLS ends here: mvagent-relay hands them over, one after the other. */
#ifndef MVAGENT_SECRET_BROKER_H
#define MVAGENT_SECRET_BROKER_H

#include "vmm/loop/loop.h"
#include "vmm/secret/authority.h"
#include "vmm/secret/secret.h"
#include "vmm/wire/relay.h"

struct broker;

/* Operations of the loop that one may need. */
#define BROKER_LOOP_CAPACITY (4U * LIMIT_SECRET_CONNECTIONS + 8U)

struct broker_plan {
	struct secret_set *secrets; /* tokens come to them */
	const struct authority *authority;
	X509_STORE *trust; /* who may certify servers; the broker's then */
	int relay_fd;      /* to mvagent-relay; the broker's then, as the next one */
	int event_fd;      /* to the supervisor */
};

/* 0 or -errno with the sentence printed. */
int broker_create(struct broker **broker, struct loop *loop, const struct broker_plan *plan);
void broker_destroy(struct broker *broker);

#endif

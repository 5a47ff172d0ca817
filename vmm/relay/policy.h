/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hosts and ports a guest may reach: rules, and the one function that decides by them. The
 * supervisor asks it for the guest's resolver, mvagent-relay for each connection, and
 * `mvagent policy check` for a person.
 */
#ifndef MVAGENT_RELAY_POLICY_H
#define MVAGENT_RELAY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/relay/address.h"
#include "vmm/relay/names.h"

/* What a rule without a port is about. */
#define ROUTE_PORT_TLS   443U
#define ROUTE_PORT_PLAIN 80U

enum route_target {
	ROUTE_HOST,    /* this name */
	ROUTE_BELOW,   /* all names below it: *.example.com */
	ROUTE_ADDRESS, /* this address */
};

struct route_rule {
	bool deny;
	enum route_target target;
	char name[NAME_BYTES];
	struct address address;
	uint16_t port; /* 0: 443 and 80 to allow, all to deny */
	char *origin;  /* how the user gave it: "--allow example.com" */
};

/* A private address that a name may have all the same: a client of the user's own is set up for
 * that name, which had that address when the run began (--allow-from). */
struct route_private {
	char name[NAME_BYTES];
	uint16_t port;
	struct address address;
};

/* Zero before use. */
struct route_policy {
	bool any_server_name; /* TLS to a host may name another, or none: --allow-any-sni */
	unsigned int count;
	struct route_rule *rules;
	unsigned int private_count;
	struct route_private privates[LIMIT_ROUTE_ADDRESSES];
};

/* Adds HOST[:PORT], *.HOST[:PORT], ADDRESS[:PORT] or [ADDRESS]:PORT. @origin is copied. 0 or -errno
 * with the sentence printed. */
int route_policy_add(struct route_policy *policy, bool deny, const char *text, const char *origin);

/* Adds such an address. 0; -EINVAL when it is no private one (what is loopback, link-local or
 * metadata stays refused), or no name; -E2BIG. */
int route_policy_add_private(struct route_policy *policy, const char *name, uint16_t port,
			     const struct address *address);
void route_policy_free(struct route_policy *policy);

enum route_verdict {
	ROUTE_ALLOWED,    /* by .rule */
	ROUTE_DENIED,     /* by .rule */
	ROUTE_OTHER_PORT, /* .rule allows the host, but another port */
	ROUTE_NO_RULE,
	ROUTE_NO_NAME, /* it is no name at all */
};

struct route_decision {
	enum route_verdict verdict;
	const struct route_rule *rule;
};

/* Decides about a host (a name in any form, or an address) and a port; 0: whether any port of it is
 * allowed. A rule that denies counts more than all that allow. */
struct route_decision route_policy_decide(const struct route_policy *policy, const char *host,
					  size_t length, uint16_t port);

/* An address that @host, an allowed name in its one form, has: NULL when it may be connected to (it
 * is public, a rule allows it by itself, or it was added for that name), or what is against it. */
const char *route_policy_objection(const struct route_policy *policy, const char *host,
				   const struct address *address, uint16_t port);

/* The ports of a host that are allowed; returns their count. */
unsigned int route_policy_ports(const struct route_policy *policy, const char *host, size_t length,
				uint16_t ports[LIMIT_ROUTE_PORTS]);

#define ROUTE_SENTENCE_BYTES 1024

/* The decision in words, with the option that would change it: one sentence. */
void route_explain(const struct route_decision *decision, const char *host, uint16_t port,
		   char text[ROUTE_SENTENCE_BYTES]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What mvagent-relay is told at its start, as lines of text in a file without a name: not on its
 * command line, which others can read and which has bounds. The supervisor writes it.
 */
#ifndef MVAGENT_RELAY_SETTINGS_H
#define MVAGENT_RELAY_SETTINGS_H

#include <stdint.h>

#include "vmm/relay/policy.h"
#include "vmm/relay/proxy.h"

/* A port of the host that leads to one of the guest. */
struct published_port {
	struct address address; /* of the host, to listen on */
	uint16_t port;
	uint16_t guest_port;
};

/* A host whose TLS ends in mvagent-secret. */
struct terminated_host {
	char name[NAME_BYTES];
	uint16_t port;
};

/* What the guest has in the place of a secret. It is worth nothing, and has no business elsewhere.
 */
struct placeholder {
	char name[LIMIT_SECRET_NAME_BYTES + 1]; /* of the secret */
	char text[LIMIT_SECRET_BYTES + 1];
};

#define RELAY_TERMINATED_HOSTS (LIMIT_SECRETS * LIMIT_SECRET_HOSTS)

struct relay_settings {
	struct route_policy policy;
	struct proxy proxy;
	uint64_t byte_limit; /* for all connections together, both ways; 0: none */
	char servers[512];   /* of DNS, as c-ares has them; empty: the host's own */
	unsigned int published_count;
	struct published_port published[LIMIT_RELAY_PUBLISHED];
	unsigned int terminated_count;
	struct terminated_host terminated[RELAY_TERMINATED_HOSTS];
	unsigned int placeholder_count;
	struct placeholder placeholders[LIMIT_SECRETS];
};

/* Writes them to a sealed file in memory. Its descriptor, or -errno with the sentence printed. */
int relay_settings_write(const struct relay_settings *settings);

/* Reads them from such a file. 0 or -errno with the sentence printed. */
int relay_settings_read(struct relay_settings *settings, int fd);

/* Whether the TLS of connections to @host, a name in its one form, ends in mvagent-secret. */
bool relay_settings_terminate(const struct relay_settings *settings, const char *host,
			      uint16_t port);

/* Whose placeholder is in the name of a host, in small or large letters; NULL: nobody's. */
const char *relay_settings_find_placeholder(const struct relay_settings *settings, const char *host,
					    size_t length);

void relay_settings_free(struct relay_settings *settings);

#endif

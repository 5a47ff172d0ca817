/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What mvagent-relay is told at its start, as lines of text in a file without a name: not on its
 * command line, which others can read and which has bounds. The supervisor writes it.
 */
#ifndef MVAGENT_RELAY_SETTINGS_H
#define MVAGENT_RELAY_SETTINGS_H

#include "vmm/relay/policy.h"
#include "vmm/relay/proxy.h"

/* A port of the host that leads to one of the guest. */
struct published_port {
	struct address address; /* of the host, to listen on */
	uint16_t port;
	uint16_t guest_port;
};

struct relay_settings {
	struct route_policy policy;
	struct proxy proxy;
	char servers[512]; /* of DNS, as c-ares has them; empty: the host's own */
	unsigned int published_count;
	struct published_port published[LIMIT_RELAY_PUBLISHED];
};

/* Writes them to a sealed file in memory. Its descriptor, or -errno with the sentence printed. */
int relay_settings_write(const struct relay_settings *settings);

/* Reads them from such a file. 0 or -errno with the sentence printed. */
int relay_settings_read(struct relay_settings *settings, int fd);

void relay_settings_free(struct relay_settings *settings);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sentences about connections that were told to the supervisor: each is told once. A guest can make
 * many of them; those that find no room are counted, and the count is told.
 */
#ifndef MVAGENT_WIRE_TOLD_H
#define MVAGENT_WIRE_TOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/wire/relay.h"

/* Zero before use. */
struct told {
	unsigned int count;
	uint64_t untold;      /* of them */
	uint64_t ends_untold; /* of connections; the owner counts */
	struct {
		char host[RELAY_NAME_BYTES + 1];
		uint32_t port;
		char text[RELAY_EVENT_TEXT_BYTES];
	} sentences[LIMIT_RELAY_DENIALS];
};

/* Whether this one is to be told: it was not, and there is room. One without room is counted. */
bool told_is_new(struct told *told, const struct relay_event *event);

/* It was told. */
void told_add(struct told *told, const struct relay_event *event);

/* Tells how many were not, if any. @flags: of send(2). */
void told_end(const struct told *told, int event_fd, int flags);

#endif

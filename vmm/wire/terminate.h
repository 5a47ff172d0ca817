/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What mvagent-relay says to mvagent-secret: a connection of the guest's whose TLS is to end there.
 * One packet of a SOCK_SEQPACKET pair, with two stream sockets (SCM_RIGHTS): the guest's, and one
 * that leads to the server. Both ends are of one build.
 */
#ifndef MVAGENT_WIRE_TERMINATE_H
#define MVAGENT_WIRE_TERMINATE_H

#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/wire/relay.h"

#define TERMINATE_DESCRIPTORS 2

struct terminate_message {
	uint32_t port;
	uint32_t length;                        /* of .first */
	char host[RELAY_NAME_BYTES + 1];        /* terminated */
	uint8_t first[LIMIT_RELAY_FIRST_BYTES]; /* what the guest has said so far; the packet
						   ends with it */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What mvagent-relay says to mvagent-sign: a connection of the guest's to the agent. One packet of
 * a SOCK_SEQPACKET pair, with one stream socket (SCM_RIGHTS): the guest's end. Both are of one
 * build.
 */
#ifndef MVAGENT_WIRE_SIGN_H
#define MVAGENT_WIRE_SIGN_H

#include <stdint.h>

#include "vmm/base/limits.h"

/* In the guest: where its programs find the agent. */
#define SIGN_GUEST_SOCKET "/run/mvagent/ssh-agent"

struct sign_hand_over {
	uint32_t length;                        /* of .first */
	uint8_t first[LIMIT_RELAY_FIRST_BYTES]; /* what the guest has said so far; the packet ends
						   with it */
};

#endif

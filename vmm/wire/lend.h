/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How mvagent-vmm, which can make no socket, comes by one for each connection of the guest: over a
 * SOCK_SEQPACKET pair it asks mvagent-relay, which answers with the same structure and, as
 * SCM_RIGHTS, one end of a stream; without a descriptor the connection is refused. Answers come in
 * any order.
 */
#ifndef MVAGENT_WIRE_LEND_H
#define MVAGENT_WIRE_LEND_H

#include <stdint.h>

struct lend_message {
	uint32_t slot;   /* the asker's own */
	uint32_t serial; /* so that an answer that comes too late is known for it */
};

#endif

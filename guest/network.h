/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's network, of which there is little: a loopback interface, a card whose link is up and
 * that has no address and no route, and a process that answers questions about names and carries
 * connections to the hosts that are allowed.
 */
#ifndef GUEST_NETWORK_H
#define GUEST_NETWORK_H

#include "guest/message.h"

/* Brings up the loopback interface, to which the kernel gives its addresses, and the card, to which
 * nobody gives one. 0 or -errno with @failure filled in. */
int network_raise(struct failure *failure);

/* Starts the process that answers, and that carries connections to hosts that are allowed. The
 * session's end kills it. It keeps nothing open of what this process has: @control, and the
 * standard descriptors. @ready gets a descriptor for network_wait. 0 or -errno with @failure filled
 * in. */
int network_start(int control, int *ready, struct failure *failure);

/* Waits until it has heard from the host what is allowed. */
void network_wait(int *ready);

#endif

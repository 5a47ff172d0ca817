/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's network, of which there is little: a loopback interface, a card whose link is up and
 * that has no address and no route, and a process that answers questions about names.
 */
#ifndef GUEST_NETWORK_H
#define GUEST_NETWORK_H

#include "guest/message.h"

/* Brings up the loopback interface, to which the kernel gives its addresses, and the card, to which
 * nobody gives one. 0 or -errno with @failure filled in. */
int network_raise(struct failure *failure);

/* Starts the process that answers; it listens when this returns. The session's end kills it. It
 * keeps nothing open of what this process has: @control, and the standard descriptors. 0 or -errno
 * with @failure filled in. */
int network_start(int control, struct failure *failure);

#endif

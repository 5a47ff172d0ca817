/* SPDX-License-Identifier: Apache-2.0 */
/* Where the guest's programs find the host's ssh-agent (--ssh-agent): each connection is carried to
 * the host as it is, where what it asks is looked at. */
#ifndef GUEST_AGENT_SOCKET_H
#define GUEST_AGENT_SOCKET_H

#include "guest/bridge.h"

/* Listens at @path, for all of the guest. Events on @epoll have data.u32 @tag. The descriptor, or
 * -errno. */
int agent_socket_open(const char *path, int epoll, uint32_t tag);

/* Somebody connects. */
void agent_socket_accept(int listener, struct bridge *bridge);

#endif

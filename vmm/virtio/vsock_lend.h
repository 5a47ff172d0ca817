/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of the guest whose descriptor is asked for when they are: vmm/wire/lend.h. All with
 * the device's lock held. */
#ifndef MVAGENT_VIRTIO_VSOCK_LEND_H
#define MVAGENT_VIRTIO_VSOCK_LEND_H

#include "vmm/virtio/vsock_serve.h"

/* Whether a packet of the guest is for the lender's port. */
bool vsock_is_lent(const struct vsock_device *device, const struct vsock_header *header);

/* The connection of @guest_port there, or NULL; one that is over only if there is no other. */
struct vsock_connection *vsock_find_lent(struct vsock_device *device, uint32_t guest_port);

/* The guest asks for a connection. 0, or -ENOSPC when it has all it may have. */
int vsock_lend_ask(struct vsock_device *device, const struct vsock_header *request);

/* A packet for a connection that waits for its descriptor. */
void vsock_lend_forget(struct vsock_connection *connection, const struct vsock_header *header);

/* As vsock_connection_forget_guest, for a connection in any state. */
void vsock_lend_forget_guest(struct vsock_connection *connection);

/* Makes the places of connections that are over free for others. */
void vsock_lend_reuse(struct vsock_device *device);

#endif

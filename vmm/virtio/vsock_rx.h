/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receive queue of the vsock device: the guest's empty buffers, filled with packets for it. A
 * few buffers are held ready, so that one read from a descriptor can fill several of them; a held
 * buffer stays unused until there is something to say.
 */
#ifndef MVAGENT_VIRTIO_VSOCK_RX_H
#define MVAGENT_VIRTIO_VSOCK_RX_H

#include <stdint.h>

#include "vmm/virtio/queue.h"
#include "vmm/virtio/vsock_connection.h"
#include "vmm/virtio/vsock_packet.h"

#define VSOCK_RX_HELD 16U

struct vsock_rx {
	struct virtqueue queue;
	uint64_t guest_cid;
	unsigned int first; /* of the held buffers, in a ring */
	unsigned int count;
	struct descriptor_chain held[VSOCK_RX_HELD];
};

/* All return 1 when a packet was made, 0 when the guest has no buffer free (or, for data, the
 * descriptor had nothing), -EPROTO for a broken ring or a buffer that cannot hold a packet. */

/* A packet without payload; the CIDs are @header's. */
int vsock_rx_send(struct vsock_rx *rx, const struct vsock_header *header);

/* What the connection owes to the guest, one packet. */
int vsock_rx_send_control(struct vsock_rx *rx, struct vsock_connection *connection);

/* At most @credit bytes of the connection's descriptor, in one read and as many packets as they
 * need. */
int vsock_rx_send_data(struct vsock_rx *rx, struct vsock_connection *connection, uint32_t credit);

/* Forgets the queue and the held buffers. */
void vsock_rx_stop(struct vsock_rx *rx);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/guest_vsock.h"

#include <linux/virtio_vsock.h>

#define RECEIVE    (BUFFERS + 0x100000)
#define TRANSMIT   (BUFFERS + 0x200000)
#define GUEST_CID  3U
#define HOST_CID   2U
#define GUEST_PORT 5000U

void vsock_start_mute(struct vsock_link *link, uint64_t device)
{
	memset(link, 0, sizeof(*link));
	link->transmit = TRANSMIT;
	start_device(link->rings, device, FEATURE_INDIRECT);
}

void vsock_give(struct vsock_link *link, uint16_t index)
{
	set_descriptor(&link->rings[0], index, RECEIVE + (uint64_t)index * VSOCK_RX_BYTES,
		       VSOCK_RX_BYTES, WRITE, 0);
	show_chain(&link->rings[0], index);
}

void vsock_start(struct vsock_link *link, uint64_t device)
{
	vsock_start_mute(link, device);
	for (uint16_t i = 0; i < VSOCK_RX_BUFFERS; i++)
		vsock_give(link, i);
	kick_ring(&link->rings[0]);
}

void *vsock_payload(const struct vsock_link *link)
{
	return (void *)(link->transmit + 64);
}

void vsock_post(struct vsock_link *link, const struct vsock_packet *packet, uint32_t bytes)
{
	struct ring *ring = &link->rings[1];
	uint16_t slot = ring->shown % 8;
	struct virtio_vsock_hdr *header =
		(void *)(TRANSMIT + 0x100000 + slot * sizeof(struct virtio_vsock_hdr));

	*header = (struct virtio_vsock_hdr){
		.src_cid = packet->source_cid ? packet->source_cid : GUEST_CID,
		.dst_cid = packet->destination_cid ? packet->destination_cid : HOST_CID,
		.src_port = packet->guest_port ? packet->guest_port : GUEST_PORT,
		.dst_port = packet->port,
		.len = packet->length,
		.type = packet->type ? packet->type : VIRTIO_VSOCK_TYPE_STREAM,
		.op = packet->operation,
		.flags = packet->flags,
		.buf_alloc = packet->buffer_bytes ? packet->buffer_bytes : 65536,
		.fwd_cnt = packet->forwarded_bytes ? packet->forwarded_bytes : link->received,
	};
	set_descriptor(ring, slot, (uint64_t)header, VSOCK_HEADER, bytes ? NEXT : 0,
		       (uint16_t)(slot + 8));
	set_descriptor(ring, (uint16_t)(slot + 8), link->transmit + 64, bytes, 0, 0);
	show_chain(ring, slot);
	kick_ring(ring);
}

void vsock_send(struct vsock_link *link, const struct vsock_packet *packet, uint32_t bytes)
{
	vsock_post(link, packet, bytes);
	wait_used(&link->rings[1]);
}

struct vsock_packet *vsock_poll(struct vsock_link *link)
{
	struct ring *ring = &link->rings[0];
	const struct virtio_vsock_hdr *header;
	uint32_t length;
	uint16_t index;

	if (ring->used->idx == ring->seen) {
		pause_guest(50);
		if (ring->used->idx == ring->seen)
			return NULL;
	}
	index = (uint16_t)ring->used->ring[ring->seen & (ring->size - 1)].id;
	length = wait_used(ring);
	need(index < VSOCK_RX_BUFFERS, "a buffer comes back that was never given");
	need(length >= VSOCK_HEADER && length <= VSOCK_RX_BYTES, "a packet larger than its buffer");
	header = (const void *)(RECEIVE + (uint64_t)index * VSOCK_RX_BYTES);
	need(header->len == length - VSOCK_HEADER, "a packet that is not as long as it says");
	link->received += header->len;
	link->packet = (struct vsock_packet){
		.source_cid = header->src_cid,
		.destination_cid = header->dst_cid,
		.guest_port = header->dst_port,
		.port = header->src_port,
		.length = header->len,
		.type = header->type,
		.operation = header->op,
		.flags = header->flags,
		.buffer_bytes = header->buf_alloc,
		.forwarded_bytes = header->fwd_cnt,
		.first = header->len >= 4 ? read_32((uint64_t)(header + 1)) : 0,
	};
	vsock_give(link, index);
	kick_ring(ring);
	return &link->packet;
}

struct vsock_packet *vsock_wait(struct vsock_link *link, uint32_t port)
{
	struct patience patience = patience_begin();

	for (;;) {
		struct vsock_packet *packet = vsock_poll(link);

		if (packet && packet->port == port)
			return packet;
		if (!packet && !patience_left(&patience))
			fail_number("nothing comes from vsock port", port);
	}
}

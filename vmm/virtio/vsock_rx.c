/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vsock_rx.h"

#include <errno.h>

#include "vmm/base/bytes.h"
#include "vmm/base/limits.h"

/* Any one buffer fits, and all held ones when they are of one piece each, as Linux's are. */
#define RX_VECTOR (LIMIT_CHAIN_SEGMENTS + VSOCK_RX_HELD)

static struct descriptor_chain *held(struct vsock_rx *rx, unsigned int index)
{
	return &rx->held[(rx->first + index) % VSOCK_RX_HELD];
}

/* Takes buffers until @wanted are held. Returns how many are, or -EPROTO. */
static int hold(struct vsock_rx *rx, unsigned int wanted)
{
	while (rx->count < wanted) {
		struct descriptor_chain *chain = held(rx, rx->count);
		int result = virtqueue_pop(&rx->queue, chain);

		if (result < 0)
			return result;
		if (result == 0)
			break;
		if (chain->writable_bytes <= VSOCK_HEADER_BYTES)
			return -EPROTO;
		rx->count++;
	}
	return (int)rx->count;
}

/* Gives the first held buffer to the guest, with the payload that is in it already. */
static int complete(struct vsock_rx *rx, const struct vsock_header *header)
{
	struct descriptor_chain *chain = held(rx, 0);
	uint8_t bytes[VSOCK_HEADER_BYTES];

	vsock_header_encode(header, bytes);
	descriptor_chain_write(chain, 0, bytes, sizeof(bytes));
	rx->first = (rx->first + 1) % VSOCK_RX_HELD;
	rx->count--;
	return virtqueue_push(&rx->queue, chain->head, VSOCK_HEADER_BYTES + header->length);
}

int vsock_rx_send(struct vsock_rx *rx, const struct vsock_header *header)
{
	int result = hold(rx, 1);

	if (result <= 0)
		return result;
	result = complete(rx, header);
	return result < 0 ? result : 1;
}

static void address(const struct vsock_rx *rx, struct vsock_header *header)
{
	header->source_cid = VSOCK_HOST_CID;
	header->destination_cid = rx->guest_cid;
}

int vsock_rx_send_control(struct vsock_rx *rx, struct vsock_connection *connection)
{
	struct vsock_header header;
	int result = hold(rx, 1);

	if (result <= 0)
		return result;
	vsock_connection_make_control(connection, &header);
	address(rx, &header);
	return vsock_rx_send(rx, &header);
}

/* The room for payload in the held buffers, cut at @credit bytes. Fills @room with each buffer's
 * part and @vector with all of it; returns the count of iovecs. */
static unsigned int collect_room(struct vsock_rx *rx, uint32_t credit, uint32_t room[VSOCK_RX_HELD],
				 struct iovec vector[RX_VECTOR])
{
	unsigned int pieces = 0;

	for (unsigned int i = 0; i < VSOCK_RX_HELD; i++)
		room[i] = 0;
	for (unsigned int i = 0; i < rx->count && credit; i++) {
		const struct descriptor_chain *chain = held(rx, i);
		uint32_t bytes = chain->writable_bytes - VSOCK_HEADER_BYTES;
		unsigned int added;

		bytes = (uint32_t)bytes_minimum(bytes, LIMIT_VSOCK_PACKET_BYTES);
		bytes = (uint32_t)bytes_minimum(bytes, credit);
		added = descriptor_chain_writable_iovec(chain, VSOCK_HEADER_BYTES, bytes,
							vector + pieces, RX_VECTOR - pieces);
		if (!added)
			break;
		pieces += added;
		credit -= bytes;
		room[i] = bytes;
	}
	return pieces;
}

int vsock_rx_send_data(struct vsock_rx *rx, struct vsock_connection *connection, uint32_t credit)
{
	struct iovec vector[RX_VECTOR];
	uint32_t room[VSOCK_RX_HELD];
	uint32_t left;
	int result = hold(rx, VSOCK_RX_HELD);

	if (result <= 0)
		return result;
	left = vsock_connection_read(connection, vector, collect_room(rx, credit, room, vector));
	result = left > 0;
	for (unsigned int i = 0; left; i++) {
		uint32_t length = (uint32_t)bytes_minimum(left, room[i]);
		struct vsock_header header;
		int error;

		vsock_connection_make_data(connection, &header, length);
		address(rx, &header);
		error = complete(rx, &header);
		if (error < 0)
			return error;
		left -= length;
	}
	return result;
}

void vsock_rx_stop(struct vsock_rx *rx)
{
	rx->queue.size = 0;
	rx->first = 0;
	rx->count = 0;
}

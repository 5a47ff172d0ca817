/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vsock_packet.h"

#include <assert.h>
#include <endian.h>
#include <linux/virtio_vsock.h>
#include <stdbool.h>
#include <string.h>

#include "vmm/base/limits.h"

static_assert(sizeof(struct virtio_vsock_hdr) == VSOCK_HEADER_BYTES, "virtio 1.2, 5.10.6");

void vsock_header_decode(struct vsock_header *header, const uint8_t bytes[VSOCK_HEADER_BYTES])
{
	struct virtio_vsock_hdr wire;

	memcpy(&wire, bytes, sizeof(wire));
	header->source_cid = le64toh(wire.src_cid);
	header->destination_cid = le64toh(wire.dst_cid);
	header->source_port = le32toh(wire.src_port);
	header->destination_port = le32toh(wire.dst_port);
	header->length = le32toh(wire.len);
	header->type = le16toh(wire.type);
	header->operation = le16toh(wire.op);
	header->flags = le32toh(wire.flags);
	header->buffer_bytes = le32toh(wire.buf_alloc);
	header->forwarded_bytes = le32toh(wire.fwd_cnt);
}

void vsock_header_encode(const struct vsock_header *header, uint8_t bytes[VSOCK_HEADER_BYTES])
{
	const struct virtio_vsock_hdr wire = {
		.src_cid = htole64(header->source_cid),
		.dst_cid = htole64(header->destination_cid),
		.src_port = htole32(header->source_port),
		.dst_port = htole32(header->destination_port),
		.len = htole32(header->length),
		.type = htole16(header->type),
		.op = htole16(header->operation),
		.flags = htole32(header->flags),
		.buf_alloc = htole32(header->buffer_bytes),
		.fwd_cnt = htole32(header->forwarded_bytes),
	};

	memcpy(bytes, &wire, sizeof(wire));
}

enum vsock_verdict vsock_packet_judge(const struct vsock_header *header, size_t chain_bytes,
				      uint64_t guest_cid)
{
	const bool addressed = header->source_cid == guest_cid &&
			       header->destination_cid == VSOCK_HOST_CID &&
			       header->type == VSOCK_TYPE_STREAM;

	if (chain_bytes < VSOCK_HEADER_BYTES)
		return VSOCK_PACKET_DROP;
	if (!addressed)
		return VSOCK_PACKET_REFUSE;
	/* A reset is one, whatever else it says. */
	if (header->operation == VSOCK_OPERATION_RESET)
		return VSOCK_PACKET_GOOD;
	if (header->length > chain_bytes - VSOCK_HEADER_BYTES ||
	    header->length > LIMIT_VSOCK_PACKET_BYTES)
		return VSOCK_PACKET_BROKEN;
	return VSOCK_PACKET_GOOD;
}

void vsock_header_make_reset(struct vsock_header *reset, const struct vsock_header *refused)
{
	*reset = (struct vsock_header){
		.source_cid = refused->destination_cid,
		.destination_cid = refused->source_cid,
		.source_port = refused->destination_port,
		.destination_port = refused->source_port,
		.type = refused->type,
		.operation = VSOCK_OPERATION_RESET,
	};
}

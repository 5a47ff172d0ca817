/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of a vsock packet (virtio 1.2, 5.10.6), decoded and judged. Pure: bytes in, a verdict
 * out.
 */
#ifndef MVAGENT_VIRTIO_VSOCK_PACKET_H
#define MVAGENT_VIRTIO_VSOCK_PACKET_H

#include <stddef.h>
#include <stdint.h>

#define VSOCK_HEADER_BYTES 44U
#define VSOCK_HOST_CID     2U /* 5.10.4 */

#define VSOCK_TYPE_STREAM 1U

/* 5.10.6: op */
enum vsock_operation {
	VSOCK_OPERATION_REQUEST = 1,
	VSOCK_OPERATION_RESPONSE = 2,
	VSOCK_OPERATION_RESET = 3,
	VSOCK_OPERATION_SHUTDOWN = 4,
	VSOCK_OPERATION_DATA = 5,
	VSOCK_OPERATION_CREDIT_UPDATE = 6,
	VSOCK_OPERATION_CREDIT_REQUEST = 7,
};

/* 5.10.6.5: flags of VSOCK_OPERATION_SHUTDOWN: the sender will not receive, or send, any more. */
#define VSOCK_SHUTDOWN_RECEIVE 1U
#define VSOCK_SHUTDOWN_SEND    2U
#define VSOCK_SHUTDOWN_BOTH    (VSOCK_SHUTDOWN_RECEIVE | VSOCK_SHUTDOWN_SEND)

/* struct virtio_vsock_hdr, in the host's byte order */
struct vsock_header {
	uint64_t source_cid;
	uint64_t destination_cid;
	uint32_t source_port;
	uint32_t destination_port;
	uint32_t length; /* of the payload, bytes */
	uint16_t type;
	uint16_t operation;
	uint32_t flags;
	uint32_t buffer_bytes;    /* buf_alloc: size of the sender's receive buffer */
	uint32_t forwarded_bytes; /* fwd_cnt: what has left that buffer so far, modulo 2^32 */
};

void vsock_header_decode(struct vsock_header *header, const uint8_t bytes[VSOCK_HEADER_BYTES]);
void vsock_header_encode(const struct vsock_header *header, uint8_t bytes[VSOCK_HEADER_BYTES]);

enum vsock_verdict {
	VSOCK_PACKET_GOOD,   /* from the guest to the host, and as long as it says */
	VSOCK_PACKET_BROKEN, /* from the guest to the host, but not as long as it says */
	VSOCK_PACKET_REFUSE, /* not from it, or not for us, or of a type that we do not know */
	VSOCK_PACKET_DROP,   /* too short to be a packet */
};

/* Judges a packet that the guest sent in a chain of @chain_bytes. @header counts for nothing when
 * @chain_bytes is too short to hold one. */
enum vsock_verdict vsock_packet_judge(const struct vsock_header *header, size_t chain_bytes,
				      uint64_t guest_cid);

/* The reset that answers @refused (5.10.6.4.1: also for an unknown type, which is kept so that the
 * sender knows its socket). */
void vsock_header_make_reset(struct vsock_header *reset, const struct vsock_header *refused);

#endif

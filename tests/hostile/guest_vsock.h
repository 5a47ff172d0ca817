/* SPDX-License-Identifier: Apache-2.0 */
/* vsock packets (virtio 1.2, 5.10.6), made and taken by hand. */
#ifndef MVAGENT_TESTS_GUEST_VSOCK_H
#define MVAGENT_TESTS_GUEST_VSOCK_H

#include "tests/hostile/guest_virtio.h"

#define VSOCK_REQUEST        1U
#define VSOCK_RESPONSE       2U
#define VSOCK_RESET          3U
#define VSOCK_SHUTDOWN       4U
#define VSOCK_DATA           5U
#define VSOCK_CREDIT_UPDATE  6U
#define VSOCK_CREDIT_REQUEST 7U

/* What is at the other end of each port: vmm/wire/selftest.h. */
#define VSOCK_SINK_PORT  SELFTEST_SINK_PORT
#define VSOCK_FLOOD_PORT SELFTEST_FLOOD_PORT
#define VSOCK_STUCK_PORT SELFTEST_STUCK_PORT
#define VSOCK_GONE_PORT  SELFTEST_GONE_PORT
#define VSOCK_ECHO_PORT  SELFTEST_ECHO_PORT
#define VSOCK_ECHO_PORTS SELFTEST_ECHO_PORTS

#define VSOCK_HEADER     44U
#define VSOCK_RX_BUFFERS 8U
#define VSOCK_RX_BYTES   4096U

/* Between the guest's port 5000 and @port of the host, unless said otherwise; a packet that came
 * lies here as well, with the first bytes of its payload. */
struct vsock_packet {
	uint64_t source_cid, destination_cid; /* 0: what they are by right */
	uint32_t guest_port;                  /* 0: 5000 */
	uint32_t port;
	uint32_t length;
	uint16_t type; /* 0: stream */
	uint16_t operation;
	uint32_t flags;
	uint32_t buffer_bytes; /* 0: 65536 */
	uint32_t forwarded_bytes;
	uint32_t first;
};

struct vsock_link {
	struct ring rings[3]; /* receive, transmit, event */
	uint64_t transmit;    /* where packets are made */
	uint32_t received;    /* bytes of payload so far: what credit is counted by */
	struct vsock_packet packet;
};

/* Starts the device with receive buffers in its queue, or with none. */
void vsock_start(struct vsock_link *link, uint64_t device);
void vsock_start_mute(struct vsock_link *link, uint64_t device);

/* Gives receive buffer @index to the device. */
void vsock_give(struct vsock_link *link, uint16_t index);

/* Where the payload of the next packet goes. */
void *vsock_payload(const struct vsock_link *link);

/* Puts a packet in the transmit queue, with @bytes of payload whatever its header says, and kicks.
 * vsock_send waits until the device has taken it. */
void vsock_post(struct vsock_link *link, const struct vsock_packet *packet, uint32_t bytes);
void vsock_send(struct vsock_link *link, const struct vsock_packet *packet, uint32_t bytes);

/* The next packet for us, from any port; NULL when none comes in a moment. Its buffer goes back. */
struct vsock_packet *vsock_poll(struct vsock_link *link);

/* The next from @port; ends the run when none comes. */
struct vsock_packet *vsock_wait(struct vsock_link *link, uint32_t port);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One vsock stream between the guest and a descriptor of the host: its states, its credit both ways
 * (virtio 1.2, 5.10.6.3) and the bytes that the descriptor did not take yet. It knows no queue:
 * packets come in decoded, and what it owes to the guest is kept as a few flags until there is room
 * to say it, so that nothing is lost and nothing grows.
 *
 *   EXPECTED --request--> OPEN --both directions over, or reset--> FLUSHING --all written--> CLOSED
 *   (none) --request--> ASKED --descriptor lent--> OPEN, or --refused--> CLOSED
 *
 * From FLUSHING on the guest knows nothing of the connection any more, but what it sent before
 * still goes to the descriptor.
 */
#ifndef MVAGENT_VIRTIO_VSOCK_CONNECTION_H
#define MVAGENT_VIRTIO_VSOCK_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "vmm/virtio/vsock_packet.h"

enum vsock_state {
	VSOCK_UNUSED, /* no such connection */
	VSOCK_EXPECTED,
	VSOCK_ASKED, /* the guest asked for it, and we asked for a descriptor: vsock_lend.h */
	VSOCK_OPEN,
	VSOCK_FLUSHING,
	VSOCK_CLOSED,
};

/* Bytes on their way from the guest to the descriptor, in a ring that is allocated the first time
 * the descriptor does not take everything at once. */
struct vsock_backlog {
	uint32_t size; /* of the ring: the credit that the guest has */
	uint8_t *bytes;
	uint32_t first;
	uint32_t count;
};

struct vsock_connection {
	enum vsock_state state;
	uint32_t host_port;
	uint32_t guest_port;
	int fd; /* a stream socket, owned */

	bool readable;        /* the descriptor may have bytes: not yet read to EAGAIN */
	bool host_ended;      /* it had its end of file */
	bool host_left;       /* nobody reads what is written to it */
	bool write_shut;      /* shutdown(SHUT_WR) was done */
	uint32_t guest_ended; /* VSOCK_SHUTDOWN_* that the guest sent */
	uint32_t told;        /* VSOCK_SHUTDOWN_* that the guest was sent */

	/* Owed to the guest */
	bool owes_response;
	bool owes_reset;
	bool owes_credit_update;
	bool owes_credit_request;
	bool credit_requested; /* since the guest last had room */

	/* Host to guest */
	uint32_t sent_bytes;           /* modulo 2^32, like all counts of credit */
	uint32_t guest_buffer_bytes;   /* as the guest last said */
	uint32_t guest_consumed_bytes; /* as the guest last said */

	/* Guest to host */
	uint32_t consumed_bytes;  /* written to the descriptor, or dropped with it */
	uint32_t announced_bytes; /* the last consumed_bytes that the guest was told */
	struct vsock_backlog backlog;
};

/* The guest asked for the connection: EXPECTED becomes OPEN. */
void vsock_connection_open(struct vsock_connection *connection, const struct vsock_header *request);

/* A packet of the guest for a connection that is OPEN. @payload: header->length bytes of guest
 * memory. Whatever breaks the protocol or the credit ends in a reset. */
void vsock_connection_receive(struct vsock_connection *connection,
			      const struct vsock_header *header, const struct iovec *payload,
			      unsigned int count);

/* The descriptor's poll events. */
void vsock_connection_poll(struct vsock_connection *connection, uint32_t events);

/* The watch of the descriptor failed: it is given up, both ways. */
void vsock_connection_abandon(struct vsock_connection *connection);

/* The connection is over; the guest is told with a reset, or cannot be or need not be told. */
void vsock_connection_reset(struct vsock_connection *connection);
void vsock_connection_forget_guest(struct vsock_connection *connection);

/* How many bytes may be read for the guest now: 0 when there are none, or it has no room, or the
 * descriptor gave EAGAIN. */
uint32_t vsock_connection_readable(struct vsock_connection *connection);

/* Reads from the descriptor straight into the guest's buffers. Returns the count, 0 at the end of
 * file and when there is nothing now. */
uint32_t vsock_connection_read(struct vsock_connection *connection, const struct iovec *vector,
			       unsigned int count);

/* The header of a data packet of @length bytes that were read, which are then counted as sent. */
void vsock_connection_make_data(struct vsock_connection *connection, struct vsock_header *header,
				uint32_t length);

/* Whether the guest is owed a packet without payload. */
bool vsock_connection_owes(const struct vsock_connection *connection);

/* That packet's header; it is then no longer owed. */
void vsock_connection_make_control(struct vsock_connection *connection,
				   struct vsock_header *header);

/* Closes the stream's end towards the host, in order: its peer sees the end of file and not an
 * error. The descriptor itself is left to be closed by its owner. */
void vsock_connection_hang_up(struct vsock_connection *connection);

#endif

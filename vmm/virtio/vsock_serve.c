/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vsock_serve.h"

#include <errno.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/virtio/vsock_lend.h"

struct vsock_connection *vsock_find_connection(struct vsock_device *device, uint32_t host_port)
{
	for (unsigned int i = 0; i < LIMIT_VSOCK_PORTS; i++) {
		struct vsock_connection *connection = &device->ports[i].connection;

		if (connection->state != VSOCK_UNUSED && connection->host_port == host_port)
			return connection;
	}
	return NULL;
}

/* Answers with a reset, but for a reset: two ends that answer these would never stop. There is room
 * for it: no packet is taken in without. */
static void refuse(struct vsock_device *device, const struct vsock_header *header)
{
	if (header->operation != VSOCK_OPERATION_RESET)
		vsock_header_make_reset(&device->refusals[device->refusal_count++], header);
}

static void take_request(struct vsock_device *device, const struct vsock_header *header)
{
	struct vsock_connection *connection =
		vsock_find_connection(device, header->destination_port);

	if (vsock_is_lent(device, header)) {
		if (vsock_lend_ask(device, header) < 0)
			refuse(device, header);
	} else if (connection && connection->state == VSOCK_EXPECTED)
		vsock_connection_open(connection, header);
	else if (connection && connection->state == VSOCK_OPEN &&
		 connection->guest_port == header->source_port)
		vsock_connection_reset(connection);
	else
		refuse(device, header);
}

static void take_packet(struct vsock_device *device, const struct descriptor_chain *chain)
{
	struct iovec payload[LIMIT_CHAIN_SEGMENTS];
	uint8_t bytes[VSOCK_HEADER_BYTES] = {0};
	struct vsock_connection *connection;
	struct vsock_header header;
	enum vsock_verdict verdict;
	unsigned int count;

	descriptor_chain_read(chain, 0, bytes, sizeof(bytes));
	vsock_header_decode(&header, bytes);
	verdict = vsock_packet_judge(&header, chain->readable_bytes, device->config.guest_cid);
	if (verdict == VSOCK_PACKET_DROP)
		return;
	if (verdict == VSOCK_PACKET_REFUSE) {
		refuse(device, &header);
		return;
	}
	if (header.operation == VSOCK_OPERATION_REQUEST && verdict == VSOCK_PACKET_GOOD) {
		take_request(device, &header);
		return;
	}
	connection = vsock_is_lent(device, &header)
			     ? vsock_find_lent(device, header.source_port)
			     : vsock_find_connection(device, header.destination_port);
	if (!connection || connection->state == VSOCK_EXPECTED ||
	    connection->guest_port != header.source_port) {
		refuse(device, &header);
	} else if (connection->state == VSOCK_ASKED) {
		vsock_lend_forget(connection, &header);
	} else if (connection->state == VSOCK_OPEN && verdict == VSOCK_PACKET_BROKEN) {
		vsock_connection_reset(connection);
	} else if (connection->state == VSOCK_OPEN) {
		count = descriptor_chain_readable_iovec(chain, VSOCK_HEADER_BYTES, header.length,
							payload, ARRAY_SIZE(payload));
		vsock_connection_receive(connection, &header, payload, count);
	}
	/* Else it crossed the reset that ended the connection, and needs no other. */
}

/* Takes in what the guest sent, as long as there is room for what that may make us owe. The queue's
 * size bounds it (virtqueue_pop). */
static int serve_tx(struct vsock_device *device)
{
	struct descriptor_chain chain;
	int result;

	virtqueue_disable_kicks(&device->tx);
	while (device->refusal_count < VSOCK_REFUSALS) {
		result = virtqueue_pop(&device->tx, &chain);
		if (result < 0)
			return result;
		if (result == 0) {
			if (virtqueue_enable_kicks(&device->tx))
				fd_signal_event(device->wake_fd);
			return 0;
		}
		take_packet(device, &chain);
		result = virtqueue_push(&device->tx, chain.head, 0);
		if (result < 0)
			return result;
	}
	return 0;
}

static int send_refusals(struct vsock_device *device)
{
	unsigned int sent = 0;
	unsigned int left;
	int result = 1;

	while (sent < device->refusal_count && result > 0) {
		result = vsock_rx_send(&device->rx, &device->refusals[sent]);
		if (result > 0)
			sent++;
	}
	left = device->refusal_count - sent;
	for (unsigned int i = 0; i < left; i++)
		device->refusals[i] = device->refusals[sent + i];
	device->refusal_count = left;
	return result;
}

/* Everything that the connection owes, as far as the guest's buffers go. Returns whether something
 * was sent, or -EPROTO. */
static int send_owed(struct vsock_device *device, struct vsock_connection *connection)
{
	int sent = 0;
	int result = 1;

	while (result > 0 && vsock_connection_owes(connection)) {
		result = vsock_rx_send_control(&device->rx, connection);
		if (result < 0)
			return result;
		sent |= result;
	}
	return sent;
}

/* What one connection has for the guest: all it owes, and one batch of data. Sets *@unsaid when
 * that was not all. Returns whether something was sent, or -EPROTO. */
static int serve_connection(struct vsock_device *device, struct vsock_connection *connection,
			    bool *unsaid)
{
	uint32_t credit = vsock_connection_readable(connection);
	int sent = send_owed(device, connection);
	int result;

	if (sent < 0)
		return sent;
	if (credit && !vsock_connection_owes(connection)) {
		result = vsock_rx_send_data(&device->rx, connection, credit);
		if (result < 0)
			return result;
		sent |= result;
		/* That read may have found the end of file. */
		result = send_owed(device, connection);
		if (result < 0)
			return result;
		sent |= result;
	}
	credit = vsock_connection_readable(connection);
	if (credit || vsock_connection_owes(connection))
		*unsaid = true;
	return sent;
}

/* One turn over all connections, from the one after that which was served last. */
static int serve_turn(struct vsock_device *device, bool *unsaid)
{
	const unsigned int first = device->turn;
	int sent = 0;
	int result;

	*unsaid = false;
	result = send_refusals(device);
	if (result < 0)
		return result;
	if (device->refusal_count)
		*unsaid = true;
	for (unsigned int i = 0; i < device->in_use; i++) {
		unsigned int port = (first + i) % device->in_use;

		result = serve_connection(device, &device->ports[port].connection, unsaid);
		if (result < 0)
			return result;
		if (result > 0)
			device->turn = port + 1;
		sent |= result;
	}
	return sent;
}

/* Says to the guest what there is to say, as far as its buffers go; the queue's size bounds that
 * too. Kicks of this queue are wanted only when they ran out. */
static int serve_rx(struct vsock_device *device)
{
	bool unsaid;
	int sent;

	virtqueue_disable_kicks(&device->rx.queue);
	do {
		sent = serve_turn(device, &unsaid);
		if (sent < 0)
			return sent;
	} while (sent && unsaid);
	if (unsaid && virtqueue_enable_kicks(&device->rx.queue))
		fd_signal_event(device->wake_fd);
	return 0;
}

/* The descriptors of connections that are over: the watch ends first, then the descriptor. */
static void close_finished(struct vsock_device *device)
{
	for (unsigned int i = 0; i < device->in_use; i++) {
		struct vsock_port *port = &device->ports[i];

		if (port->connection.state != VSOCK_CLOSED || port->connection.fd < 0)
			continue;
		if (loop_operation_idle(&port->watch)) {
			fd_close(&port->connection.fd);
		} else if (!port->watch.cancelling) {
			vsock_connection_hang_up(&port->connection);
			loop_cancel(device->loop, &port->watch);
		}
	}
	vsock_lend_reuse(device);
}

void vsock_forget_guest(struct vsock_device *device)
{
	for (unsigned int i = 0; i < device->in_use; i++)
		vsock_lend_forget_guest(&device->ports[i].connection);
	device->refusal_count = 0;
	device->tx.size = 0;
	vsock_rx_stop(&device->rx);
}

int vsock_serve(struct vsock_device *device)
{
	bool interrupt, tx_waits;
	int result;

	if (!device->active || device->broken) {
		close_finished(device);
		return device->broken ? -EPROTO : 0;
	}
	result = serve_tx(device);
	tx_waits = device->refusal_count == VSOCK_REFUSALS;
	if (result == 0)
		result = serve_rx(device);
	if (result < 0) {
		device->broken = true;
		vsock_forget_guest(device);
	} else {
		interrupt = virtqueue_publish(&device->tx);
		interrupt |= virtqueue_publish(&device->rx.queue);
		if (interrupt)
			loop_signal(device->loop, device->interrupt_fd);
		if (tx_waits && device->refusal_count < VSOCK_REFUSALS)
			fd_signal_event(device->wake_fd);
	}
	close_finished(device);
	return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest with a vsock driver, for tests: brings the device up through its registers, keeps the
 * receive queue filled, obeys kicks and interrupts as the rings ask for them, and notes what the
 * device sent.
 */
#ifndef MVAGENT_TESTS_VSOCK_GUEST_H
#define MVAGENT_TESTS_VSOCK_GUEST_H

#include "tests/unit/guest_ring.h"
#include "vmm/loop/loop.h"
#include "vmm/virtio/mmio.h"
#include "vmm/virtio/vsock.h"
#include "vmm/virtio/vsock_packet.h"

#define GUEST_CID       3U
#define GUEST_RX_BYTES  4096U
#define GUEST_RING_SIZE 128U
#define GUEST_STREAMS   4U
#define GUEST_TX_SLOTS  64U
#define GUEST_TX_BYTES  (VSOCK_HEADER_BYTES + 65536U)

/* One end of a connection as the guest sees it. */
struct guest_stream {
	uint32_t host_port;
	uint32_t guest_port;
	uint32_t window;   /* what we grant: buf_alloc */
	uint64_t consumed; /* of what we received: fwd_cnt */
	bool hoards;       /* does not consume what it receives */
	uint64_t sent;
	uint64_t received;
	bool corrupt;            /* received a byte that is not the pattern's */
	bool overrun;            /* received more than we granted */
	uint32_t device_window;  /* buf_alloc of the device */
	uint32_t device_counted; /* its fwd_cnt */
	uint32_t told;           /* shutdown flags */
	unsigned int packets[8]; /* by operation */
};

struct vsock_guest {
	struct ring_memory memory;
	struct loop *loop;
	struct vsock_device *device;
	struct virtio_mmio *mmio;
	void *page;
	int interrupt_fd;
	bool event_idx;
	struct guest_ring rx, tx;
	uint64_t rx_gpa;
	uint64_t tx_gpa;
	bool rx_starved; /* gives no buffers to the device */
	unsigned int withheld_count;
	uint64_t withheld[GUEST_RING_SIZE]; /* the buffers that it keeps back for that */
	uint64_t rx_of_head[GUEST_RING_SIZE];
	unsigned int tx_slot_of_head[GUEST_RING_SIZE];
	bool tx_slot_used[GUEST_TX_SLOTS];
	unsigned int stray_resets; /* for no stream of ours */
	unsigned int strays;       /* any other packet for none */
	struct guest_stream streams[GUEST_STREAMS];
};

/* Byte @position of what flows in stream @port: the same in both directions. */
static inline uint8_t pattern_byte(uint32_t port, uint64_t position)
{
	return (uint8_t)(position ^ (position >> 8) ^ (position >> 16) ^ (port * 37));
}

static inline void pattern_fill(uint8_t *bytes, size_t length, uint32_t port, uint64_t position)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = pattern_byte(port, position + i);
}

static inline bool pattern_matches(const uint8_t *bytes, size_t length, uint32_t port,
				   uint64_t position)
{
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] != pattern_byte(port, position + i))
			return false;
	}
	return true;
}

static inline void guest_set(struct vsock_guest *guest, uint64_t offset, uint32_t value)
{
	virtio_mmio_write(guest->mmio, offset, &value, sizeof(value));
}

static inline uint32_t guest_get(struct vsock_guest *guest, uint64_t offset)
{
	uint32_t value;

	virtio_mmio_read(guest->mmio, offset, &value, sizeof(value));
	return value;
}

static inline void guest_kick(struct vsock_guest *guest, struct guest_ring *ring,
			      unsigned int index)
{
	if (guest_ring_wants_kick(ring))
		fd_signal_event(virtio_mmio_kick_fd(guest->mmio, index));
}

static inline void guest_offer_buffer(struct vsock_guest *guest, uint64_t gpa)
{
	struct ring_segment segment = {.gpa = gpa, .length = GUEST_RX_BYTES, .writable = true};
	int head = guest_ring_add(&guest->rx, &segment, 1);

	if (head >= 0)
		guest->rx_of_head[head] = gpa;
}

/* Gives at most @count of the buffers to the device that it does not have. */
static inline void guest_offer_withheld(struct vsock_guest *guest, unsigned int count)
{
	for (; count && guest->withheld_count; count--)
		guest_offer_buffer(guest, guest->withheld[--guest->withheld_count]);
	guest_kick(guest, &guest->rx, 0);
}

static inline void guest_write_queue(struct vsock_guest *guest, uint32_t index,
				     const struct virtio_queue_setup *setup)
{
	guest_set(guest, 0x30, index);
	guest_set(guest, 0x38, setup->size);
	guest_set(guest, 0x80, (uint32_t)setup->descriptor_gpa);
	guest_set(guest, 0x90, (uint32_t)setup->available_gpa);
	guest_set(guest, 0xa0, (uint32_t)setup->used_gpa);
	guest_set(guest, 0x44, 1);
}

/* Resets the device and brings it up. */
static inline void guest_start(struct vsock_guest *guest)
{
	struct virtio_queue_setup setup;

	guest->memory.next = RING_MEMORY_GPA;
	guest->rx_gpa = ring_memory_take(&guest->memory, GUEST_RING_SIZE * GUEST_RX_BYTES);
	guest->tx_gpa = ring_memory_take(&guest->memory, GUEST_TX_SLOTS * GUEST_TX_BYTES);
	guest_set(guest, 0x70, 0);
	guest_set(guest, 0x70, 3);
	guest_set(guest, 0x24, 1);
	guest_set(guest, 0x20, 1);
	guest_set(guest, 0x24, 0);
	guest_set(guest, 0x20, guest->event_idx ? 1U << VIRTIO_RING_F_EVENT_IDX : 0);
	guest_set(guest, 0x70, 11);
	guest_ring_create(&guest->rx, &guest->memory, GUEST_RING_SIZE, guest->event_idx, &setup);
	guest_write_queue(guest, 0, &setup);
	guest_ring_create(&guest->tx, &guest->memory, GUEST_RING_SIZE, guest->event_idx, &setup);
	guest_write_queue(guest, 1, &setup);
	guest_set(guest, 0x70, 15);
	memset(guest->tx_slot_used, 0, sizeof(guest->tx_slot_used));
	guest->withheld_count = 0;
	for (unsigned int i = 0; i < GUEST_RING_SIZE; i++)
		guest->withheld[guest->withheld_count++] =
			guest->rx_gpa + i * (uint64_t)GUEST_RX_BYTES;
	if (!guest->rx_starved)
		guest_offer_withheld(guest, GUEST_RING_SIZE);
}

static inline void guest_create(struct vsock_guest *guest, enum loop_backend backend,
				bool event_idx)
{
	memset(guest, 0, sizeof(*guest));
	guest->event_idx = event_idx;
	ring_memory_create(&guest->memory);
	guest->page = aligned_alloc(4096, VIRTIO_MMIO_PAGE_SIZE);
	guest->interrupt_fd = fd_create_event();
	if (!guest->page || loop_create(&guest->loop, 64, backend) < 0)
		abort();
	memset(guest->page, 0, VIRTIO_MMIO_PAGE_SIZE);
	if (vsock_device_create(&guest->device, guest->loop, GUEST_CID) < 0 ||
	    virtio_mmio_create(&guest->mmio, vsock_device_description(guest->device),
			       &guest->memory.guest, guest->loop, guest->page,
			       guest->interrupt_fd) < 0 ||
	    loop_enable(guest->loop) < 0)
		abort();
}

static inline void guest_destroy(struct vsock_guest *guest)
{
	virtio_mmio_destroy(guest->mmio);
	vsock_device_destroy(guest->device);
	loop_destroy(guest->loop);
	fd_close(&guest->interrupt_fd);
	free(guest->page);
	ring_memory_destroy(&guest->memory);
}

/* Adds a packet in its own slot, split in @segments pieces. Returns whether there was room. */
static inline bool guest_send_raw(struct vsock_guest *guest, const void *bytes, size_t length,
				  unsigned int segments)
{
	struct ring_segment pieces[8];
	unsigned int slot = 0;
	uint64_t gpa;
	int head;

	while (slot < GUEST_TX_SLOTS && guest->tx_slot_used[slot])
		slot++;
	if (slot == GUEST_TX_SLOTS || length < segments || segments > 8)
		return false;
	gpa = guest->tx_gpa + slot * (uint64_t)GUEST_TX_BYTES;
	memcpy(ring_memory_at(&guest->memory, gpa), bytes, length);
	for (unsigned int i = 0; i < segments; i++) {
		pieces[i].gpa = gpa;
		pieces[i].length = (uint32_t)(i == segments - 1 ? length : length / segments);
		pieces[i].writable = false;
		gpa += pieces[i].length;
		length -= pieces[i].length;
	}
	head = guest_ring_add(&guest->tx, pieces, segments);
	if (head < 0)
		return false;
	guest->tx_slot_used[slot] = true;
	guest->tx_slot_of_head[head] = slot;
	guest_kick(guest, &guest->tx, 1);
	return true;
}

static inline struct vsock_header guest_header(const struct guest_stream *stream,
					       enum vsock_operation operation)
{
	return (struct vsock_header){
		.source_cid = GUEST_CID,
		.destination_cid = VSOCK_HOST_CID,
		.source_port = stream->guest_port,
		.destination_port = stream->host_port,
		.type = VSOCK_TYPE_STREAM,
		.operation = (uint16_t)operation,
		.buffer_bytes = stream->window,
		.forwarded_bytes = (uint32_t)stream->consumed,
	};
}

static inline bool guest_send_header(struct vsock_guest *guest, const struct vsock_header *header)
{
	uint8_t bytes[VSOCK_HEADER_BYTES];

	vsock_header_encode(header, bytes);
	return guest_send_raw(guest, bytes, sizeof(bytes), 1);
}

static inline bool guest_send(struct vsock_guest *guest, const struct guest_stream *stream,
			      enum vsock_operation operation, uint32_t flags)
{
	struct vsock_header header = guest_header(stream, operation);

	header.flags = flags;
	return guest_send_header(guest, &header);
}

/* What the device lets us send in this stream. */
static inline uint32_t guest_credit(const struct guest_stream *stream)
{
	return stream->device_window - ((uint32_t)stream->sent - stream->device_counted);
}

/* Sends @length bytes of the pattern, whatever the credit. */
static inline bool guest_send_data(struct vsock_guest *guest, struct guest_stream *stream,
				   uint32_t length)
{
	static uint8_t bytes[GUEST_TX_BYTES];
	struct vsock_header header = guest_header(stream, VSOCK_OPERATION_DATA);

	header.length = length;
	vsock_header_encode(&header, bytes);
	pattern_fill(bytes + VSOCK_HEADER_BYTES, length, stream->host_port, stream->sent);
	if (!guest_send_raw(guest, bytes, VSOCK_HEADER_BYTES + length, 1 + length % 3))
		return false;
	stream->sent += length;
	return true;
}

static inline struct guest_stream *guest_find(struct vsock_guest *guest,
					      const struct vsock_header *header)
{
	for (unsigned int i = 0; i < GUEST_STREAMS; i++) {
		struct guest_stream *stream = &guest->streams[i];

		if (stream->host_port == header->source_port &&
		    stream->guest_port == header->destination_port &&
		    header->source_cid == VSOCK_HOST_CID && header->destination_cid == GUEST_CID &&
		    header->type == VSOCK_TYPE_STREAM)
			return stream;
	}
	return NULL;
}

static inline void guest_receive(struct vsock_guest *guest, const uint8_t *bytes, uint32_t length)
{
	struct vsock_header header;
	struct guest_stream *stream;

	vsock_header_decode(&header, bytes);
	stream = guest_find(guest, &header);
	if (!stream) {
		if (header.operation == VSOCK_OPERATION_RESET)
			guest->stray_resets++;
		else
			guest->strays++;
		return;
	}
	if (length != VSOCK_HEADER_BYTES + header.length || header.operation > 7)
		abort();
	stream->packets[header.operation]++;
	stream->device_window = header.buffer_bytes;
	stream->device_counted = header.forwarded_bytes;
	if (header.operation == VSOCK_OPERATION_SHUTDOWN)
		stream->told |= header.flags;
	if (header.operation != VSOCK_OPERATION_DATA)
		return;
	stream->corrupt |= !pattern_matches(bytes + VSOCK_HEADER_BYTES, header.length,
					    stream->host_port, stream->received);
	stream->received += header.length;
	stream->overrun |= stream->received - stream->consumed > stream->window;
	if (!stream->hoards && header.length) {
		stream->consumed = stream->received;
		guest_send(guest, stream, VSOCK_OPERATION_CREDIT_UPDATE, 0);
	}
}

static inline void guest_collect(struct vsock_guest *guest)
{
	uint16_t head;
	uint32_t length;

	while (guest_ring_take(&guest->tx, &head, &length))
		guest->tx_slot_used[guest->tx_slot_of_head[head]] = false;
	while (guest_ring_take(&guest->rx, &head, &length)) {
		uint64_t gpa = guest->rx_of_head[head];

		guest_receive(guest, ring_memory_at(&guest->memory, gpa), length);
		guest->withheld[guest->withheld_count++] = gpa;
	}
	if (!guest->rx_starved)
		guest_offer_withheld(guest, GUEST_RING_SIZE);
}

/* One turn of the device's loop, then of the guest's interrupt handler if there was an interrupt.
 * Returns whether anything happened. */
static inline bool guest_turn(struct vsock_guest *guest, int timeout_ms)
{
	bool happened = loop_run_once(guest->loop, timeout_ms) > 0;

	if (fd_drain_event(guest->interrupt_fd) == 0)
		return happened;
	guest_collect(guest);
	return true;
}

/* Until nothing moves any more. */
static inline void guest_settle(struct vsock_guest *guest)
{
	while (guest_turn(guest, 0))
		;
}

#endif

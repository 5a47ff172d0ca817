/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that sends any sequence of vsock packets, offers or keeps back its buffers, breaks its
 * rings and resets the device, while the host's ends write, read, shut down and close. Whatever
 * happens, the bytes that come through are those that were sent, in order; what the device keeps is
 * bounded; and at the end no descriptor is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/vsock_guest.h"
#include "vmm/base/bytes.h"
#include "vmm/virtio/vsock_serve.h"

#define PORT       1024U
#define GUEST_PORT 5000U

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz {
	const uint8_t *next;
	size_t left;
	struct vsock_guest guest;
	bool rings_broken; /* the guest's own: it no longer looks at them */
	int peers[GUEST_STREAMS];
	uint64_t peer_sent[GUEST_STREAMS];
	uint64_t peer_received[GUEST_STREAMS];
	bool requested[GUEST_STREAMS];
	bool forged[GUEST_STREAMS]; /* data that is not the pattern's was sent as well */
	enum vsock_state states[GUEST_STREAMS];
};

static uint64_t take(struct fuzz *fuzz, unsigned int bytes)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < bytes; i++) {
		value = value << 8 | (fuzz->left ? *fuzz->next : 0);
		if (fuzz->left) {
			fuzz->next++;
			fuzz->left--;
		}
	}
	return value;
}

static void check(struct fuzz *fuzz)
{
	const struct vsock_device *device = fuzz->guest.device;

	CHECK(device->refusal_count <= VSOCK_REFUSALS);
	CHECK(device->rx.count <= VSOCK_RX_HELD);
	for (unsigned int i = 0; i < GUEST_STREAMS; i++) {
		const struct vsock_connection *connection = &device->ports[i].connection;

		CHECK(connection->state >= fuzz->states[i]);
		fuzz->states[i] = connection->state;
		CHECK(connection->consumed_bytes - connection->announced_bytes +
			      connection->backlog.count <=
		      LIMIT_VSOCK_BUFFER_BYTES);
		CHECK(!connection->backlog.count || connection->backlog.bytes);
		CHECK(connection->state != VSOCK_CLOSED || !connection->backlog.count);
		CHECK(!fuzz->guest.streams[i].corrupt);
	}
}

static void turn(struct fuzz *fuzz)
{
	if (fuzz->rings_broken)
		CHECK(loop_run_once(fuzz->guest.loop, 0) >= 0);
	else
		guest_turn(&fuzz->guest, 0);
}

static void peer_read(struct fuzz *fuzz, unsigned int index, size_t length)
{
	static uint8_t bytes[65536];
	ssize_t result = recv(fuzz->peers[index], bytes, length, MSG_DONTWAIT);

	if (result <= 0)
		return;
	CHECK(fuzz->forged[index] ||
	      pattern_matches(bytes, (size_t)result, PORT + index, fuzz->peer_received[index]));
	fuzz->peer_received[index] += (uint64_t)result;
}

static void peer_write(struct fuzz *fuzz, unsigned int index, size_t length)
{
	static uint8_t bytes[65536];
	ssize_t result;

	pattern_fill(bytes, length, PORT + index, fuzz->peer_sent[index]);
	result = send(fuzz->peers[index], bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (result > 0)
		fuzz->peer_sent[index] += (uint64_t)result;
}

/* A header that is right but for what the input changes, with some bytes after it. */
static void send_forged(struct fuzz *fuzz, unsigned int index)
{
	struct vsock_header header = guest_header(&fuzz->guest.streams[index],
						  (enum vsock_operation)(take(fuzz, 1) % 10));
	uint8_t bytes[VSOCK_HEADER_BYTES + 64] = {0};
	uint64_t changes = take(fuzz, 1);
	size_t payload = take(fuzz, 1) % 65;

	header.length = (uint32_t)payload;
	header.flags = (uint32_t)take(fuzz, 1);
	if (changes & 1)
		header.length = (uint32_t)take(fuzz, 4);
	if (changes & 2)
		header.source_cid = take(fuzz, 8);
	if (changes & 4)
		header.destination_cid = take(fuzz, 8);
	if (changes & 8)
		header.source_port = (uint32_t)take(fuzz, 1) + GUEST_PORT;
	if (changes & 16)
		header.destination_port = (uint32_t)take(fuzz, 1) + PORT;
	if (changes & 32)
		header.type = (uint16_t)take(fuzz, 1);
	if (changes & 64)
		header.buffer_bytes = (uint32_t)take(fuzz, 4);
	if (changes & 128)
		header.forwarded_bytes = (uint32_t)take(fuzz, 4);
	if (header.operation == VSOCK_OPERATION_DATA) {
		for (unsigned int i = 0; i < GUEST_STREAMS; i++)
			fuzz->forged[i] = true;
	}
	vsock_header_encode(&header, bytes);
	/* Short chains as well. */
	guest_send_raw(&fuzz->guest, bytes, take(fuzz, 1) == 7 ? 20 : VSOCK_HEADER_BYTES + payload,
		       1 + (unsigned int)payload % 3);
}

/* Overwrites a few bytes of a ring: descriptors, the available ring, or the used one. */
static void break_rings(struct fuzz *fuzz)
{
	struct guest_ring *ring = take(fuzz, 1) & 1 ? &fuzz->guest.rx : &fuzz->guest.tx;
	uint64_t offset = take(fuzz, 2) % (RING_BYTES - 8);
	uint64_t value = take(fuzz, 8);

	memcpy((uint8_t *)guest_ring_descriptors(ring) + offset, &value, sizeof(value));
	fuzz->rings_broken = true;
	for (unsigned int i = 0; i < GUEST_STREAMS; i++)
		fuzz->forged[i] = true;
	fd_signal_event(virtio_mmio_kick_fd(fuzz->guest.mmio, offset & 1));
}

/* Streams that were open are over; the others begin again. */
static void restart(struct fuzz *fuzz)
{
	guest_start(&fuzz->guest);
	for (unsigned int i = 0; i < GUEST_STREAMS; i++) {
		if (fuzz->states[i] == VSOCK_EXPECTED) {
			fuzz->requested[i] = false;
			fuzz->guest.streams[i].sent = 0;
		}
	}
	fuzz->rings_broken = false;
}

static void guest_step(struct fuzz *fuzz, unsigned int action, unsigned int index)
{
	struct guest_stream *stream = &fuzz->guest.streams[index];

	switch (action) {
	case 0:
		if (guest_send(&fuzz->guest, stream, VSOCK_OPERATION_REQUEST, 0))
			fuzz->requested[index] = true;
		break;
	case 1:
		if (fuzz->requested[index])
			guest_send_data(&fuzz->guest, stream, (uint32_t)take(fuzz, 2));
		break;
	case 2:
		guest_send(&fuzz->guest, stream, VSOCK_OPERATION_SHUTDOWN, (uint32_t)take(fuzz, 1));
		break;
	case 3:
		guest_send(&fuzz->guest, stream, VSOCK_OPERATION_RESET, 0);
		break;
	case 4:
		send_forged(fuzz, index);
		break;
	case 5:
		stream->hoards = !stream->hoards;
		break;
	case 6:
		fuzz->guest.rx_starved = !fuzz->guest.rx_starved;
		break;
	case 7:
		guest_offer_withheld(&fuzz->guest, 1 + (unsigned int)take(fuzz, 1) % 8);
		break;
	case 8:
		restart(fuzz);
		break;
	default:
		break_rings(fuzz);
		break;
	}
}

static void host_step(struct fuzz *fuzz, unsigned int action, unsigned int index)
{
	switch (action) {
	case 10:
		peer_write(fuzz, index, take(fuzz, 2));
		break;
	case 11:
		peer_read(fuzz, index, take(fuzz, 2));
		break;
	case 12:
		shutdown(fuzz->peers[index], (int)take(fuzz, 1) % 3);
		break;
	default:
		fd_close(&fuzz->peers[index]);
		break;
	}
}

static void create(struct fuzz *fuzz)
{
	int pair[2];

	guest_create(&fuzz->guest, LOOP_BACKEND_EPOLL, take(fuzz, 1) & 1);
	for (unsigned int i = 0; i < GUEST_STREAMS; i++) {
		CHECK(fd_create_socket_pair(SOCK_STREAM, pair) == 0);
		fuzz->peers[i] = pair[0];
		CHECK(vsock_device_add_port(fuzz->guest.device, PORT + i, pair[1]) == 0);
		fuzz->guest.streams[i] = (struct guest_stream){.host_port = PORT + i,
							       .guest_port = GUEST_PORT + i,
							       .window = 1U << take(fuzz, 1) % 20};
	}
	guest_start(&fuzz->guest);
}

static int lowest_free_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz fuzz;
	int first_fd;

	if (size > 2048)
		return -1;
	memset(&fuzz, 0, sizeof(fuzz));
	fuzz.next = data;
	fuzz.left = size;
	first_fd = lowest_free_descriptor();
	create(&fuzz);
	while (fuzz.left) {
		uint64_t choice = take(&fuzz, 1);
		unsigned int action = (unsigned int)choice >> 4;

		if (action < 10 && !(fuzz.rings_broken && action < 8))
			guest_step(&fuzz, action, choice % GUEST_STREAMS);
		else if (action < 14)
			host_step(&fuzz, action, choice % GUEST_STREAMS);
		else
			turn(&fuzz);
		check(&fuzz);
	}
	for (unsigned int i = 0; i < 4; i++)
		turn(&fuzz);
	check(&fuzz);
	CHECK(vsock_device_finish(fuzz.guest.device, 0) <= 0);
	guest_destroy(&fuzz.guest);
	for (unsigned int i = 0; i < GUEST_STREAMS; i++)
		fd_close(&fuzz.peers[i]);
	CHECK(lowest_free_descriptor() == first_fd);
	return 0;
}

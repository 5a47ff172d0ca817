/* SPDX-License-Identifier: Apache-2.0 */
/* The vsock device: connections, data and credit. */
#include "vmm/virtio/vsock.h"

#include <sys/resource.h>

#include "tests/unit/vsock_fixture.h"

static void greet(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	assert_int_equal(peer_write(f, 0, 10), 10); /* before the guest connects */
	connect_stream(f, 0);
	guest_settle(&f->guest);
	assert_int_equal(stream->received, 10);
	assert_true(guest_send_data(&f->guest, stream, 5));
	guest_settle(&f->guest);
	assert_int_equal(peer_read(f, 0, 100), 5);
	assert_int_equal(peer_write(f, 0, 9000), 9000);
	guest_settle(&f->guest);
	assert_int_equal(stream->received, 9010);
	assert_false(stream->corrupt);
	assert_int_equal(f->guest.strays, 0);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 0);
	assert_int_equal(stream->packets[VSOCK_OPERATION_SHUTDOWN], 0);
}

static void refused_packets(void **state)
{
	struct fixture *f = *state;
	struct vsock_guest *guest = &f->guest;
	struct guest_stream nobody = {.host_port = 77, .guest_port = 9};
	struct guest_stream *stream = &guest->streams[0];
	struct vsock_header header;
	uint8_t bytes[VSOCK_HEADER_BYTES];

	guest_send(guest, &nobody, VSOCK_OPERATION_REQUEST, 0);
	guest_settle(guest);
	assert_int_equal(guest->stray_resets, 1);
	guest_send(guest, &nobody, VSOCK_OPERATION_RESET, 0);
	guest_settle(guest);
	assert_int_equal(guest->stray_resets, 1); /* never answered */

	header = guest_header(&nobody, VSOCK_OPERATION_DATA);
	header.destination_cid = 4; /* another machine */
	guest_send_header(guest, &header);
	header.destination_cid = VSOCK_HOST_CID;
	header.source_cid = 4;
	guest_send_header(guest, &header);
	header = guest_header(stream, VSOCK_OPERATION_REQUEST);
	header.source_cid = 4;
	guest_send_header(guest, &header);
	header.source_cid = GUEST_CID;
	header.destination_cid = 4;
	guest_send_header(guest, &header);
	header.destination_cid = VSOCK_HOST_CID;
	header.type = 2; /* SEQPACKET */
	guest_send_header(guest, &header);
	guest_settle(guest);
	assert_int_equal(guest->stray_resets, 6);
	header.operation = VSOCK_OPERATION_RESET;
	guest_send_header(guest, &header);
	guest_settle(guest);
	assert_int_equal(guest->stray_resets, 6);

	vsock_header_encode(&header, bytes);
	guest_send_raw(guest, bytes, sizeof(bytes) - 1, 1);
	guest_settle(guest);
	assert_int_equal(guest->stray_resets, 6); /* no packet, no answer */
	guest_send_data(guest, stream, 10);       /* not connected yet */
	guest_settle(guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	stream->sent = 0;
	connect_stream(f, 0); /* none of it used the port up */
	assert_int_equal(guest->strays, 0);
}

static void one_connection_a_port(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];
	struct guest_stream second = *stream;

	connect_stream(f, 0);
	second.guest_port++;
	second.host_port = stream->host_port;
	guest_send(&f->guest, &second, VSOCK_OPERATION_REQUEST, 0);
	guest_settle(&f->guest);
	assert_int_equal(f->guest.stray_resets, 1);
	guest_send_data(&f->guest, stream, 7); /* the first one is unharmed */
	assert_int_equal(peer_drain(f, 0), -EAGAIN);
	assert_int_equal(f->peer_received[0], 7);
	guest_send(&f->guest, stream, VSOCK_OPERATION_RESET, 0);
	assert_int_equal(peer_drain(f, 0), 0);
	guest_send(&f->guest, stream, VSOCK_OPERATION_REQUEST, 0);
	guest_settle(&f->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESPONSE], 1);
}

static void repeated_request(void **state)
{
	struct fixture *f = *state;

	connect_stream(f, 0);
	guest_send(&f->guest, &f->guest.streams[0], VSOCK_OPERATION_REQUEST, 0);
	assert_int_equal(peer_drain(f, 0), 0);
	assert_int_equal(f->guest.streams[0].packets[VSOCK_OPERATION_RESET], 1);
}

/* Both directions at once; sizes are odd, the guest's window is small. */
static void transfer(struct fixture *f, unsigned int first, unsigned int count, uint64_t total,
		     uint32_t window)
{
	uint64_t last = UINT64_MAX;
	uint64_t moved = 0;

	for (unsigned int i = first; i < first + count; i++) {
		f->guest.streams[i].window = window;
		connect_stream(f, i);
	}
	while (moved < 2 * count * total) {
		/* Two turns of a second in which nothing moved: something got lost. */
		if (moved == last)
			assert_true(guest_turn(&f->guest, 1000));
		last = moved;
		moved = 0;
		for (unsigned int i = first; i < first + count; i++) {
			struct guest_stream *stream = &f->guest.streams[i];
			uint64_t length = bytes_minimum(total - stream->sent, guest_credit(stream));

			length = bytes_minimum(length, 30011 + stream->sent % 35000);
			if (length)
				guest_send_data(&f->guest, stream, (uint32_t)length);
			peer_write(f, i, total - f->peer_sent[i]);
			peer_read(f, i, 50021);
			assert_false(stream->corrupt);
			assert_false(stream->overrun);
			moved += stream->received + f->peer_received[i];
		}
		guest_turn(&f->guest, 0);
	}
	for (unsigned int i = first; i < first + count; i++) {
		assert_int_equal(f->peer_received[i], total);
		assert_int_equal(f->guest.streams[i].received, total);
		assert_int_equal(f->guest.streams[i].packets[VSOCK_OPERATION_RESET], 0);
	}
}

static long peak_memory_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static void bulk(void **state)
{
	struct fixture *f = *state;
	long before;

	transfer(f, 0, 1, 4 << 20, 20011);
	before = peak_memory_kib();
	transfer(f, 1, 1, 100 << 20, 20011);
	assert_in_range(peak_memory_kib() - before, 0, 2048);
}

static void several_streams(void **state)
{
	transfer(*state, 0, GUEST_STREAMS, 3 << 20, 65536);
}

/* A stream whose peer floods it does not keep the others waiting. */
static void fairness(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *quiet = &f->guest.streams[3];

	for (unsigned int i = 0; i < GUEST_STREAMS; i++) {
		f->guest.streams[i].window = 1 << 20;
		connect_stream(f, i);
	}
	for (unsigned int round = 1; round <= 50; round++) {
		for (unsigned int i = 0; i < 3; i++) {
			while (peer_write(f, i, 65536))
				;
		}
		assert_int_equal(peer_write(f, 3, 1), 1);
		for (unsigned int turn = 0; turn < 3 && quiet->received < round; turn++)
			guest_turn(&f->guest, 0);
		assert_int_equal(quiet->received, round);
	}
	for (unsigned int i = 0; i < 3; i++)
		assert_in_range(f->guest.streams[i].received, 1 << 20, UINT32_MAX);
}

/* A reader that takes a little at a time, while the guest refills its window in pieces. */
static void slow_reader(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];
	uint64_t last = UINT64_MAX;

	connect_stream(f, 0);
	while (f->peer_received[0] < 8 << 20) {
		uint32_t length =
			(uint32_t)bytes_minimum(guest_credit(stream), 1 + stream->sent * 7 % 20011);

		assert_int_not_equal(f->peer_received[0], last);
		last = f->peer_received[0];
		if (length)
			assert_true(guest_send_data(&f->guest, stream, length));
		guest_settle(&f->guest);
		if (guest_credit(stream) < 20011)
			peer_read(f, 0, 1 + stream->sent * 3 % 9001);
		else
			last = UINT64_MAX;
	}
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 0);
}

/* When buffers are scarce, each stream gets its share of them. */
static void scarce_buffers(void **state)
{
	struct fixture *f = *state;
	struct vsock_guest *guest = &f->guest;

	for (unsigned int i = 0; i < GUEST_STREAMS; i++) {
		connect_stream(f, i);
		guest->streams[i].packets[VSOCK_OPERATION_DATA] = 0;
	}
	guest->rx_starved = true;
	for (unsigned int i = 0; i < GUEST_STREAMS; i++) {
		while (guest->rx.free_count < GUEST_RING_SIZE) {
			peer_write(f, 1, 4000);
			guest_settle(guest);
		}
	}
	for (unsigned int i = 0; i < GUEST_STREAMS; i++) {
		guest->streams[i].packets[VSOCK_OPERATION_DATA] = 0;
		while (peer_write(f, i, 65536))
			;
	}
	for (unsigned int i = 0; i < 5 * GUEST_STREAMS; i++) {
		guest_offer_withheld(guest, 1);
		guest_settle(guest);
	}
	for (unsigned int i = 0; i < GUEST_STREAMS; i++)
		assert_in_range(guest->streams[i].packets[VSOCK_OPERATION_DATA], 4, 6);
}

/* Without EVENT_IDX a flag keeps the guest from kicks for buffers that nobody waits for. */
static void unwanted_kicks(void **state)
{
	struct fixture *f = *state;

	connect_stream(f, 0);
	assert_int_equal(guest_ring_used(&f->guest.rx)->flags, VRING_USED_F_NO_NOTIFY);
	assert_int_equal(guest_ring_used(&f->guest.tx)->flags, 0);
}

static void credit_violation(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];
	uint64_t granted;

	connect_stream(f, 0);
	fill_window(f, 0);
	granted = stream->sent;
	guest_send_data(&f->guest, stream, 1);
	guest_settle(&f->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	guest_send_data(&f->guest, stream, 1);
	assert_int_equal(peer_drain(f, 0), 0);
	assert_int_equal(f->peer_received[0], granted);
	assert_int_equal(f->guest.strays, 0);
}

static void bad_packets_of_a_connection(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];
	struct vsock_header header;

	connect_stream(f, 0);
	guest_send(&f->guest, stream, VSOCK_OPERATION_SHUTDOWN, VSOCK_SHUTDOWN_SEND);
	guest_send_data(&f->guest, stream, 1); /* after its end */
	assert_int_equal(peer_drain(f, 0), 0);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	connect_stream(f, 1);
	stream = &f->guest.streams[1];
	guest_send(&f->guest, stream, 99, 0);
	assert_int_equal(peer_drain(f, 1), 0);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	connect_stream(f, 2);
	stream = &f->guest.streams[2];
	header = guest_header(stream, VSOCK_OPERATION_DATA);
	header.length = 1; /* longer than its chain */
	guest_send_header(&f->guest, &header);
	assert_int_equal(peer_drain(f, 2), 0);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
}

static void credit_on_request(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	stream->window = 0;
	connect_stream(f, 0);
	guest_send(&f->guest, stream, VSOCK_OPERATION_CREDIT_REQUEST, 0);
	guest_settle(&f->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_CREDIT_UPDATE], 1);
	assert_int_equal(peer_write(f, 0, 2000), 2000);
	guest_settle(&f->guest);
	assert_int_equal(peer_write(f, 0, 2000), 2000);
	guest_settle(&f->guest);
	assert_int_equal(stream->received, 0);
	assert_int_equal(stream->packets[VSOCK_OPERATION_CREDIT_REQUEST], 1);
	stream->hoards = true;
	stream->window = 1500;
	guest_send(&f->guest, stream, VSOCK_OPERATION_CREDIT_UPDATE, 0);
	guest_settle(&f->guest);
	assert_int_equal(stream->received, 1500);
	stream->window = 1000; /* shrinks below what is out: no more */
	guest_send(&f->guest, stream, VSOCK_OPERATION_CREDIT_UPDATE, 0);
	guest_settle(&f->guest);
	assert_int_equal(stream->received, 1500);
	stream->window = 4000;
	guest_send(&f->guest, stream, VSOCK_OPERATION_CREDIT_UPDATE, 0);
	guest_settle(&f->guest);
	assert_int_equal(stream->received, 4000);
	assert_false(stream->corrupt);
}

/* Without buffers from the guest nothing is lost, and the device takes in no more than it can
 * answer. */
static void starvation(void **state)
{
	struct fixture *f = *state;
	struct vsock_guest *guest = &f->guest;
	struct guest_stream nobody = {.host_port = 77, .guest_port = 9};
	struct guest_stream *stream = &guest->streams[0];
	unsigned int sent = 0;

	guest->rx_starved = true;
	guest_start(guest);
	guest_send(guest, stream, VSOCK_OPERATION_REQUEST, 0);
	assert_int_equal(peer_write(f, 0, 5000), 5000);
	guest_send_data(guest, stream, 60000);
	guest_settle(guest);
	while (sent < 1000 && guest_send(guest, &nobody, VSOCK_OPERATION_REQUEST, 0)) {
		sent++;
		guest_settle(guest);
	}
	assert_in_range(sent, 64, 64 + GUEST_TX_SLOTS);
	shutdown(f->peers[0], SHUT_WR);
	guest_settle(guest);
	assert_int_equal(guest->stray_resets, 0);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESPONSE], 0);

	guest_offer_withheld(guest, 5); /* a few at first */
	guest_settle(guest);
	assert_in_range(guest->stray_resets, 1, 5);
	guest->rx_starved = false;
	guest_offer_withheld(guest, GUEST_RING_SIZE);
	guest_settle(guest);
	assert_int_equal(guest->stray_resets, sent);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESPONSE], 1);
	assert_int_equal(stream->received, 5000);
	assert_int_equal(stream->told, VSOCK_SHUTDOWN_SEND);
	assert_int_equal(peer_drain(f, 0), -EAGAIN);
	assert_int_equal(f->peer_received[0], 60000);
}

static void ports(void **state)
{
	struct fixture *f = *state;
	int pair[2];
	int result = 0;
	unsigned int added = GUEST_STREAMS;

	assert_int_equal(vsock_device_add_port(f->guest.device, 9, f->guest.interrupt_fd),
			 -ENOTSOCK);
	assert_int_equal(fd_create_socket_pair(SOCK_SEQPACKET, pair), 0);
	assert_int_equal(vsock_device_add_port(f->guest.device, 9, pair[0]), -EINVAL);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
	while (result == 0) {
		assert_int_equal(fd_create_socket_pair(SOCK_STREAM, pair), 0);
		assert_int_equal(vsock_device_add_port(f->guest.device, PORT, pair[0]), -EEXIST);
		result = vsock_device_add_port(f->guest.device, PORT + added, pair[0]);
		if (result == 0)
			added++;
		else
			fd_close(&pair[0]);
		fd_close(&pair[1]);
	}
	assert_int_equal(result, -ENOSPC);
	assert_int_equal(added, LIMIT_VSOCK_PORTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH_BACK_ENDS(greet),
		cmocka_unit_test_setup_teardown(greet, setup_uring_flags, teardown),
		ON_BOTH_BACK_ENDS(refused_packets),
		ON_BOTH_BACK_ENDS(one_connection_a_port),
		ON_BOTH_BACK_ENDS(repeated_request),
		ON_BOTH_BACK_ENDS(bulk),
		ON_BOTH_BACK_ENDS(several_streams),
		cmocka_unit_test_setup_teardown(several_streams, setup_uring_flags, teardown),
		cmocka_unit_test_setup_teardown(several_streams, setup_epoll_flags, teardown),
		ON_BOTH_BACK_ENDS(fairness),
		ON_BOTH_BACK_ENDS(slow_reader),
		ON_BOTH_BACK_ENDS(scarce_buffers),
		cmocka_unit_test_setup_teardown(unwanted_kicks, setup_epoll_flags, teardown),
		ON_BOTH_BACK_ENDS(credit_violation),
		ON_BOTH_BACK_ENDS(bad_packets_of_a_connection),
		ON_BOTH_BACK_ENDS(credit_on_request),
		ON_BOTH_BACK_ENDS(starvation),
		cmocka_unit_test_setup_teardown(starvation, setup_uring_flags, teardown),
		ON_BOTH_BACK_ENDS(ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

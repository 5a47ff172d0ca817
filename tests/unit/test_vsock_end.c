/* SPDX-License-Identifier: Apache-2.0 */
/* The vsock device: how connections end, in order or not, and how the device does. */
#include "vmm/virtio/vsock.h"

#include <pthread.h>
#include <unistd.h>

#include "tests/unit/vsock_fixture.h"

static void guest_half_closes_first(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	connect_stream(f, 0);
	guest_send_data(&f->guest, stream, 1000);
	guest_send(&f->guest, stream, VSOCK_OPERATION_SHUTDOWN, VSOCK_SHUTDOWN_SEND);
	assert_int_equal(peer_drain(f, 0), 0);
	assert_int_equal(f->peer_received[0], 1000);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 0);
	assert_int_equal(peer_write(f, 0, 3000), 3000); /* the other way still works */
	guest_settle(&f->guest);
	assert_int_equal(stream->received, 3000);
	shutdown(f->peers[0], SHUT_WR);
	guest_settle(&f->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	guest_send(&f->guest, stream, VSOCK_OPERATION_SHUTDOWN, VSOCK_SHUTDOWN_BOTH);
	guest_settle(&f->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
}

static void host_half_closes_first(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	connect_stream(f, 0);
	assert_int_equal(peer_write(f, 0, 1000), 1000);
	shutdown(f->peers[0], SHUT_WR);
	guest_settle(&f->guest);
	assert_int_equal(stream->received, 1000);
	assert_int_equal(stream->told, VSOCK_SHUTDOWN_SEND);
	assert_int_equal(stream->packets[VSOCK_OPERATION_SHUTDOWN], 1);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 0);
	guest_send_data(&f->guest, stream, 4000);
	assert_int_equal(peer_drain(f, 0), -EAGAIN);
	assert_int_equal(f->peer_received[0], 4000);
	guest_send(&f->guest, stream, VSOCK_OPERATION_SHUTDOWN, VSOCK_SHUTDOWN_SEND);
	assert_int_equal(peer_drain(f, 0), 0);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
}

static void close_with_unread_data(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	connect_stream(f, 0);
	fill_window(f, 0);
	guest_send(&f->guest, stream, VSOCK_OPERATION_SHUTDOWN, VSOCK_SHUTDOWN_BOTH);
	guest_settle(&f->guest);
	/* The guest is answered at once, and nothing that it sent is lost. */
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	assert_int_equal(send(f->peers[0], "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(peer_drain(f, 0), 0);
	assert_int_equal(f->peer_received[0], stream->sent);
}

static void reset_with_unread_data(void **state)
{
	struct fixture *f = *state;

	connect_stream(f, 0);
	fill_window(f, 0);
	guest_send(&f->guest, &f->guest.streams[0], VSOCK_OPERATION_RESET, 0);
	guest_settle(&f->guest);
	assert_int_equal(send(f->peers[0], "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(peer_drain(f, 0), 0);
	assert_int_equal(f->peer_received[0], f->guest.streams[0].sent);
	assert_int_equal(f->guest.streams[0].packets[VSOCK_OPERATION_RESET], 0);
}

/* A reset ends the connection whatever its length field says, and is not answered. */
static void reset_with_a_wrong_length(void **state)
{
	struct fixture *f = *state;
	struct vsock_header header = guest_header(&f->guest.streams[0], VSOCK_OPERATION_RESET);

	connect_stream(f, 0);
	header.length = UINT32_MAX;
	guest_send_header(&f->guest, &header);
	assert_int_equal(peer_drain(f, 0), 0);
	assert_int_equal(f->guest.streams[0].packets[VSOCK_OPERATION_RESET], 0);
}

/* The end of file is told with the very last buffer. */
static void end_of_file_with_few_buffers(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	f->guest.rx_starved = true;
	guest_start(&f->guest);
	guest_offer_withheld(&f->guest, 3);
	connect_stream(f, 0);
	assert_int_equal(peer_write(f, 0, 10), 10);
	guest_settle(&f->guest);
	assert_int_equal(stream->received, 10);
	shutdown(f->peers[0], SHUT_WR);
	guest_settle(&f->guest);
	assert_int_equal(stream->told, VSOCK_SHUTDOWN_SEND);
}

static void half_close_with_unread_data(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	connect_stream(f, 0);
	fill_window(f, 0);
	guest_send(&f->guest, stream, VSOCK_OPERATION_SHUTDOWN, VSOCK_SHUTDOWN_SEND);
	guest_settle(&f->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 0);
	assert_int_equal(peer_drain(f, 0), 0);
	assert_int_equal(f->peer_received[0], stream->sent);
}

static void guest_stops_reading(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	connect_stream(f, 0);
	guest_send(&f->guest, stream, VSOCK_OPERATION_SHUTDOWN, VSOCK_SHUTDOWN_RECEIVE);
	guest_settle(&f->guest);
	assert_int_equal(send(f->peers[0], "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	guest_send_data(&f->guest, stream, 100); /* the other way still works */
	assert_int_equal(peer_drain(f, 0), -EAGAIN);
	assert_int_equal(f->peer_received[0], 100);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 0);
	assert_int_equal(stream->received, 0);
	guest_send(&f->guest, stream, VSOCK_OPERATION_SHUTDOWN, VSOCK_SHUTDOWN_SEND);
	assert_int_equal(peer_drain(f, 0), 0);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
}

/* The guest learns that the reader left without writing to it, and what it still sends is taken
 * and dropped. */
static void reader_leaves(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	connect_stream(f, 0);
	shutdown(f->peers[0], SHUT_RD);
	guest_settle(&f->guest);
	assert_int_equal(stream->told, VSOCK_SHUTDOWN_RECEIVE);
	for (unsigned int i = 0; i < 20; i++) {
		assert_true(guest_send_data(&f->guest, stream, 65536));
		guest_settle(&f->guest);
	}
	assert_int_equal(guest_credit(stream) > WINDOW / 2, 1);
	assert_int_equal(peer_write(f, 0, 500), 500);
	guest_settle(&f->guest);
	assert_int_equal(stream->received, 500);
	guest_send(&f->guest, stream, VSOCK_OPERATION_SHUTDOWN, VSOCK_SHUTDOWN_SEND);
	guest_settle(&f->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 0);
	shutdown(f->peers[0], SHUT_WR);
	guest_settle(&f->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
}

static void reader_leaves_with_full_window(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	connect_stream(f, 0);
	fill_window(f, 0);
	shutdown(f->peers[0], SHUT_RD);
	while (peer_read(f, 0, SIZE_MAX) > 0)
		;
	guest_settle(&f->guest);
	assert_int_equal(stream->told, VSOCK_SHUTDOWN_RECEIVE);
	assert_int_equal(guest_credit(stream), WINDOW);
}

static void host_closes(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	connect_stream(f, 0);
	fill_window(f, 0);
	assert_int_equal(peer_write(f, 0, 30000), 30000);
	fd_close(&f->peers[0]);
	guest_settle(&f->guest);
	assert_int_equal(stream->received, 30000); /* before the end */
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	assert_false(stream->corrupt);
}

static void host_is_gone_before_the_guest_comes(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	assert_int_equal(peer_write(f, 0, 100), 100);
	fd_close(&f->peers[0]);
	guest_settle(&f->guest);
	connect_stream(f, 0);
	assert_int_equal(stream->received, 100);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
}

static void guest_resets_the_device(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	connect_stream(f, 0);
	connect_stream(f, 1);
	fill_window(f, 1);
	guest_set(&f->guest, 0x70, 0);
	assert_int_equal(peer_drain(f, 0), 0);
	guest_start(&f->guest);
	assert_int_equal(peer_drain(f, 1), 0);
	assert_int_equal(f->peer_received[1], f->guest.streams[1].sent);
	guest_send(&f->guest, stream, VSOCK_OPERATION_REQUEST, 0);
	guest_settle(&f->guest);
	assert_int_equal(stream->packets[VSOCK_OPERATION_RESET], 1);
	connect_stream(f, 2); /* not used before, so it works now */
	assert_int_equal(peer_write(f, 2, 100), 100);
	guest_settle(&f->guest);
	assert_int_equal(f->guest.streams[2].received, 100);
}

static void broken_ring(void **state)
{
	struct fixture *f = *state;

	connect_stream(f, 0);
	guest_ring_available(&f->guest.tx)->idx = (uint16_t)(f->guest.tx.available_index + 1000);
	fd_signal_event(virtio_mmio_kick_fd(f->guest.mmio, 1));
	guest_settle(&f->guest);
	assert_int_equal(guest_get(&f->guest, 0x70), 15 | 64);
	assert_int_equal(peer_drain(f, 0), 0);
	guest_start(&f->guest);
	connect_stream(f, 1);
}

/* The device finds the receive ring broken when a peer writes, not at a kick. */
static void broken_ring_found_by_itself(void **state)
{
	struct fixture *f = *state;
	unsigned int i;

	connect_stream(f, 0);
	for (i = 0; i < GUEST_RING_SIZE; i++)
		guest_ring_descriptors(&f->guest.rx)[i].addr = 1;
	for (i = 0; i < 100 && guest_get(&f->guest, 0x70) == 15; i++) {
		peer_write(f, 0, 65536);
		guest_turn(&f->guest, 0);
	}
	assert_int_equal(guest_get(&f->guest, 0x70), 15 | 64);
}

/* A receive buffer that cannot hold a header and a byte. */
static void tiny_receive_buffer(void **state)
{
	struct fixture *f = *state;
	struct ring_segment tiny = {f->guest.rx_gpa, VSOCK_HEADER_BYTES, true};

	f->guest.rx_starved = true;
	guest_start(&f->guest);
	guest_ring_add(&f->guest.rx, &tiny, 1);
	guest_send(&f->guest, &f->guest.streams[0], VSOCK_OPERATION_REQUEST, 0);
	guest_settle(&f->guest);
	assert_int_equal(guest_get(&f->guest, 0x70), 15 | 64);
}

/* The guest's processor at its worst: the device comes and goes while the loop serves it. */
static void *restart_again_and_again(void *opaque)
{
	struct vsock_guest *guest = opaque;
	struct guest_stream nobody = {.host_port = 77, .guest_port = 9};

	for (unsigned int i = 0; i < 300; i++) {
		guest_start(guest);
		guest_send(guest, &guest->streams[i % GUEST_STREAMS], VSOCK_OPERATION_REQUEST, 0);
		for (unsigned int packet = 0; packet < i % 40; packet++)
			guest_send(guest, &nobody, VSOCK_OPERATION_REQUEST, 0);
		if (i % 3 == 0)
			usleep(100);
	}
	return NULL;
}

static void resets_on_another_thread(void **state)
{
	struct fixture *f = *state;
	pthread_t processor;

	assert_int_equal(pthread_create(&processor, NULL, restart_again_and_again, &f->guest), 0);
	while (pthread_tryjoin_np(processor, NULL) != 0) {
		for (unsigned int i = 0; i < GUEST_STREAMS; i++) {
			peer_write(f, i, 1000);
			peer_read(f, i, 1000);
		}
		assert_true(loop_run_once(f->guest.loop, 1) >= 0);
	}
	f->guest.stray_resets = 0;
	guest_start(&f->guest);
	guest_send(&f->guest, &(struct guest_stream){.host_port = 77}, VSOCK_OPERATION_REQUEST, 0);
	guest_settle(&f->guest);
	assert_int_equal(f->guest.stray_resets, 1); /* it still works */
}

static void finishing(void **state)
{
	struct fixture *f = *state;
	struct guest_stream *stream = &f->guest.streams[0];

	connect_stream(f, 0);
	connect_stream(f, 1);
	assert_int_equal(vsock_device_finish(f->guest.device, 0), 0);
	/* Sent, and not even looked at by the device. */
	guest_send_data(&f->guest, stream, 100);
	assert_int_equal(vsock_device_finish(f->guest.device, 0), 0);
	assert_int_equal(peer_read(f, 0, 100), 100);
	fill_window(f, 1);
	assert_int_equal(vsock_device_finish(f->guest.device, 20), -ETIMEDOUT);
	while (peer_read(f, 1, SIZE_MAX) > 0)
		;
	assert_int_equal(vsock_device_finish(f->guest.device, 1000), 0);
	while (peer_read(f, 1, SIZE_MAX) > 0)
		;
	assert_int_equal(f->peer_received[1], f->guest.streams[1].sent);
}

static void destroyed_with_open_connections(void **state)
{
	struct fixture *f = *state;
	struct vsock_guest *guest = &f->guest;

	connect_stream(f, 0);
	fill_window(f, 0);
	assert_int_equal(peer_write(f, 1, 10), 10); /* never read by anyone */
	virtio_mmio_destroy(guest->mmio);
	vsock_device_destroy(guest->device);
	guest->mmio = NULL;
	guest->device = NULL;
	while (peer_read(f, 0, SIZE_MAX) > 0)
		;
	assert_int_equal(peer_read(f, 0, 1), 0);
	assert_int_equal(peer_read(f, 1, 1), 0); /* end of file, not ECONNRESET */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH_BACK_ENDS(guest_half_closes_first),
		ON_BOTH_BACK_ENDS(host_half_closes_first),
		ON_BOTH_BACK_ENDS(close_with_unread_data),
		ON_BOTH_BACK_ENDS(reset_with_unread_data),
		ON_BOTH_BACK_ENDS(reset_with_a_wrong_length),
		ON_BOTH_BACK_ENDS(end_of_file_with_few_buffers),
		ON_BOTH_BACK_ENDS(half_close_with_unread_data),
		ON_BOTH_BACK_ENDS(guest_stops_reading),
		ON_BOTH_BACK_ENDS(reader_leaves),
		ON_BOTH_BACK_ENDS(reader_leaves_with_full_window),
		ON_BOTH_BACK_ENDS(host_closes),
		ON_BOTH_BACK_ENDS(host_is_gone_before_the_guest_comes),
		ON_BOTH_BACK_ENDS(guest_resets_the_device),
		ON_BOTH_BACK_ENDS(broken_ring),
		ON_BOTH_BACK_ENDS(broken_ring_found_by_itself),
		ON_BOTH_BACK_ENDS(tiny_receive_buffer),
		ON_BOTH_BACK_ENDS(resets_on_another_thread),
		ON_BOTH_BACK_ENDS(finishing),
		ON_BOTH_BACK_ENDS(destroyed_with_open_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks by packets: forged addresses, lies about lengths and credit, floods. */
#include "tests/hostile/guest_vsock.h"

static void connect_port(struct vsock_link *link, uint32_t port, uint32_t buffer_bytes)
{
	vsock_send(link,
		   &(struct vsock_packet){
			   .port = port, .operation = VSOCK_REQUEST, .buffer_bytes = buffer_bytes},
		   0);
	need(vsock_wait(link, port)->operation == VSOCK_RESPONSE, "a connection is refused");
}

/* Takes what has come in; returns how many of it are resets. */
static unsigned int drain(struct vsock_link *link)
{
	const struct vsock_packet *packet;
	unsigned int resets = 0;

	while ((packet = vsock_poll(link)))
		resets += packet->operation == VSOCK_RESET;
	return resets;
}

static uint32_t some_port(void)
{
	return random_below(4) ? VSOCK_SINK_PORT + random_below(6) : (uint32_t)random_64();
}

/* Any header, any length of payload, connections open or not. */
static void attack_forged(void)
{
	static const uint64_t cids[] = {0, 0, 0, 0, 1, 2, 3, 4, 0xffffffff, ~0UL};
	uint64_t device = find_device(ID_VSOCK);
	struct vsock_link link;

	vsock_start(&link, device);
	for (unsigned int i = 0; i < 700; i++) {
		uint32_t bytes = random_below(3) ? random_below(2000) : 0;
		struct vsock_packet packet = {
			.source_cid = cids[random_below(ARRAY_COUNT(cids))],
			.destination_cid = cids[random_below(ARRAY_COUNT(cids))],
			.guest_port = random_below(3) ? 0 : random_below(3) + 5000,
			.port = some_port(),
			.length = random_below(4) ? bytes : (uint32_t)random_64(),
			.type = (uint16_t)(random_below(8) ? 1 : random_64()),
			.operation = (uint16_t)(random_below(8) ? random_below(9) : random_64()),
			.flags = random_below(2) ? random_below(4) : (uint32_t)random_64(),
			.buffer_bytes = (uint32_t)random_64(),
			.forwarded_bytes = (uint32_t)random_64(),
		};

		vsock_post(&link, &packet, bytes);
		vsock_poll(&link);
		while (link.rings[1].seen != link.rings[1].shown)
			if (!saw_used(&link.rings[1], 60))
				vsock_poll(&link);
	}
	drain(&link);
	behave(device);
}

/* Packets that each need an answer, and no buffer to answer into: the device must stop taking them
 * and go on, without a loss, when buffers come. */
static void attack_no_buffers(void)
{
	const struct vsock_packet packet = {.port = 77, .operation = VSOCK_DATA};
	uint64_t device = find_device(ID_VSOCK);
	unsigned int sent = 0, answers = 0;
	struct patience patience;
	struct vsock_link link;

	vsock_start_mute(&link, device);
	do {
		vsock_post(&link, &packet, 0);
		sent++;
	} while (saw_used(&link.rings[1], 30000) && sent < 1000);
	if (sent < 16 || sent == 1000)
		fail_number("unanswered packets that are taken:", sent);
	for (unsigned int i = 0; i < 300; i++)
		kick_ring(&link.rings[1]);
	need(!saw_used(&link.rings[1], 100), "a kick makes room for more resets");
	for (uint16_t i = 0; i < VSOCK_RX_BUFFERS; i++)
		vsock_give(&link, i);
	kick_ring(&link.rings[0]);
	patience = patience_begin();
	while (answers < sent && patience_left(&patience))
		answers += drain(&link);
	if (answers != sent)
		fail_number("resets got lost; there came", answers);
	wait_used(&link.rings[1]);
	/* Resets are never answered, or two ends would not stop. */
	for (unsigned int i = 0; i < 200; i++)
		vsock_send(&link, &(struct vsock_packet){.port = 77, .operation = VSOCK_RESET}, 0);
	need(drain(&link) == 0, "a reset is answered by a reset");
	behave(device);
}

/* More data than the credit allows, to a port where nobody reads. */
static void attack_credit(void)
{
	const uint32_t bytes = 32768;
	uint64_t device = find_device(ID_VSOCK);
	const struct vsock_packet *packet;
	struct patience patience;
	struct vsock_link link;
	unsigned int sent = 0;
	bool reset = false;

	vsock_start(&link, device);
	connect_port(&link, VSOCK_STUCK_PORT, 65536);
	patience = patience_begin();
	while (!reset && sent < 100 && patience_left(&patience)) {
		vsock_send(&link,
			   &(struct vsock_packet){.port = VSOCK_STUCK_PORT,
						  .operation = VSOCK_DATA,
						  .length = bytes},
			   bytes);
		sent++;
		while ((packet = vsock_poll(&link)))
			reset |= packet->operation == VSOCK_RESET;
	}
	/* The socket of the host holds some itself; the credit is 256 KiB. */
	if (!reset || sent < 8)
		fail_number("data beyond the credit; packets sent:", sent);
	behave(device);
}

/* The guest claims to have room for everything, to have read what was never sent, or nothing. */
static void attack_credit_lies(void)
{
	uint64_t device = find_device(ID_VSOCK);
	struct vsock_link link;

	vsock_start(&link, device);
	connect_port(&link, VSOCK_FLOOD_PORT, 0xffffffff);
	connect_port(&link, VSOCK_FLOOD_PORT + 1, 1);
	for (unsigned int i = 0; i < 300; i++) {
		struct vsock_packet packet = {
			.port = VSOCK_FLOOD_PORT + random_below(2),
			.operation = (uint16_t)(VSOCK_CREDIT_UPDATE + random_below(2)),
			.buffer_bytes = random_below(2) ? 0xffffffff : random_below(100000),
			.forwarded_bytes = (uint32_t)random_64(),
		};

		vsock_post(&link, &packet, 0);
		vsock_poll(&link);
		saw_used(&link.rings[1], 60);
	}
	behave(device);
}

/* Requests for what is open, answers to what was never asked, ends of what never began. */
static void attack_half_open(void)
{
	static const uint16_t operations[] = {
		VSOCK_RESPONSE, VSOCK_SHUTDOWN, VSOCK_DATA, VSOCK_RESET, VSOCK_CREDIT_UPDATE, 0, 8,
		0xffff};
	uint64_t device = find_device(ID_VSOCK);
	struct vsock_link link;
	unsigned int resets;

	vsock_start(&link, device);
	for (unsigned int i = 0; i < ARRAY_COUNT(operations); i++) {
		vsock_send(
			&link,
			&(struct vsock_packet){.port = VSOCK_SINK_PORT, .operation = operations[i]},
			0);
		resets = drain(&link);
		need(resets == (operations[i] != VSOCK_RESET), "a stray packet is not refused");
	}
	connect_port(&link, VSOCK_SINK_PORT, 65536);
	for (uint32_t i = 1; i <= 100; i++) {
		vsock_send(&link,
			   &(struct vsock_packet){.port = VSOCK_SINK_PORT,
						  .guest_port = 6000 + i,
						  .operation = VSOCK_REQUEST},
			   0);
		need(vsock_wait(&link, VSOCK_SINK_PORT)->operation == VSOCK_RESET,
		     "a second connection to a port");
	}
	vsock_send(&link,
		   &(struct vsock_packet){.port = VSOCK_SINK_PORT, .operation = VSOCK_REQUEST}, 0);
	need(vsock_wait(&link, VSOCK_SINK_PORT)->operation == VSOCK_RESET, "a request twice");
	vsock_send(&link,
		   &(struct vsock_packet){.port = VSOCK_SINK_PORT, .operation = VSOCK_REQUEST}, 0);
	need(vsock_wait(&link, VSOCK_SINK_PORT)->operation == VSOCK_RESET,
	     "a port serves a second time");
	vsock_send(&link,
		   &(struct vsock_packet){.port = VSOCK_GONE_PORT, .operation = VSOCK_REQUEST}, 0);
	need(vsock_wait(&link, VSOCK_GONE_PORT)->operation == VSOCK_RESPONSE ||
		     link.packet.operation == VSOCK_RESET,
	     "a port whose other end is gone");
	behave(device);
}

/* Lengths that are none: beyond the chain, beyond every packet, and a chain without a header. */
static void attack_lengths(void)
{
	static const struct {
		uint32_t length, bytes;
	} lies[] = {{1, 0}, {100, 99}, {0xffffffff, 16}, {65537, 65537}, {1000000, 1000000}};
	uint64_t device = find_device(ID_VSOCK);
	struct vsock_link link;

	for (uint32_t i = 0; i < ARRAY_COUNT(lies) && i < 3; i++) {
		vsock_start(&link, device);
		connect_port(&link, VSOCK_FLOOD_PORT + i, 0);
		vsock_send(&link,
			   &(struct vsock_packet){.port = VSOCK_FLOOD_PORT + i,
						  .operation = VSOCK_DATA,
						  .length = lies[i].length},
			   lies[i].bytes);
		while (vsock_wait(&link, VSOCK_FLOOD_PORT + i)->operation != VSOCK_RESET)
			;
	}
	for (uint32_t i = 3; i < ARRAY_COUNT(lies); i++) {
		vsock_start(&link, device);
		vsock_send(&link,
			   &(struct vsock_packet){
				   .port = 9, .operation = VSOCK_DATA, .length = lies[i].length},
			   lies[i].bytes);
		need(vsock_wait(&link, 9)->operation == VSOCK_RESET, "a packet too long");
	}
	for (uint32_t length = 0; length < VSOCK_HEADER; length += 43) {
		vsock_start(&link, device);
		set_descriptor(&link.rings[1], 0, BUFFERS, length, 0, 0);
		show_chain(&link.rings[1], 0);
		kick_ring(&link.rings[1]);
		wait_used(&link.rings[1]);
		need(drain(&link) == 0, "a packet without a header is answered");
	}
	/* Receive buffers that can hold no packet. */
	for (uint32_t length = 0; length <= VSOCK_HEADER; length += VSOCK_HEADER) {
		vsock_start_mute(&link, device);
		set_descriptor(&link.rings[0], 0, BUFFERS, length, WRITE, 0);
		show_chain(&link.rings[0], 0);
		vsock_post(&link, &(struct vsock_packet){.port = 9, .operation = VSOCK_DATA}, 0);
		wait_needs_reset(device);
	}
	behave(device);
}

/* The device is reset while data flows both ways. */
static void attack_reset_in_flight(void)
{
	uint64_t device = find_device(ID_VSOCK);
	struct vsock_link link;

	for (uint32_t round = 0; round < 3; round++) {
		vsock_start(&link, device);
		connect_port(&link, VSOCK_FLOOD_PORT + round, 0xffffffff);
		for (unsigned int i = 0; i < 40; i++) {
			vsock_post(&link,
				   &(struct vsock_packet){.port = VSOCK_FLOOD_PORT + round,
							  .operation = VSOCK_DATA,
							  .length = 4096},
				   4096);
			vsock_poll(&link);
			saw_used(&link.rings[1], 60);
		}
		reg_write(device, VIRTIO_MMIO_STATUS, 0);
		kick_ring(&link.rings[0]);
		kick_ring(&link.rings[1]);
	}
	behave(device);
}

const struct attack vsock_attacks[] = {
	{"vsock-forged", attack_forged},
	{"vsock-no-buffers", attack_no_buffers},
	{"vsock-credit", attack_credit},
	{"vsock-credit-lies", attack_credit_lies},
	{"vsock-half-open", attack_half_open},
	{"vsock-lengths", attack_lengths},
	{"vsock-reset-in-flight", attack_reset_in_flight},
	{0},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks by requests that are no request: block, network, random numbers, balloon. */
#include <linux/virtio_blk.h>

#include "tests/hostile/guest_virtio.h"

#define DATA   (BUFFERS + 0x600000)
#define STATUS (BUFFERS + 0x5ff000)
#define MIB    0x100000U

/* One request of the disk: its header in @header_bytes, @bytes of data, a status byte or none.
 * Returns the status, or -1 when it was not written. */
static int request_blk(struct ring *ring, uint32_t type, uint64_t sector, uint32_t header_bytes,
		       uint32_t bytes, bool has_status)
{
	struct virtio_blk_outhdr *header = (void *)(BUFFERS + 0x5fe000);
	volatile uint8_t *status = (void *)STATUS;
	bool writes = type != VIRTIO_BLK_T_OUT;

	*header = (struct virtio_blk_outhdr){.type = type, .sector = sector};
	*status = 0xee;
	set_descriptor(ring, 0, (uint64_t)header, header_bytes, bytes || has_status ? NEXT : 0, 1);
	if (bytes)
		set_descriptor(ring, 1, DATA, bytes,
			       (uint16_t)((writes ? WRITE : 0) | (has_status ? NEXT : 0)), 2);
	set_descriptor(ring, bytes ? 2 : 1, STATUS, 1, WRITE, 0);
	show_chain(ring, 0);
	kick_ring(ring);
	wait_used(ring);
	return *status == 0xee ? -1 : *status;
}

static void attack_blk(void)
{
	static const uint64_t sectors[] = {2048, 2047,     1UL << 22, 1UL << 31, 1UL << 32,
					   ~0UL, ~0UL - 1, 1UL << 63, 1UL << 54, 1UL << 55};
	static const uint32_t lengths[] = {1, 511, 513, 1023, 4095};
	static const uint32_t writes[] = {VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_DISCARD,
					  VIRTIO_BLK_T_WRITE_ZEROES, VIRTIO_BLK_T_SECURE_ERASE};
	uint64_t device = find_device(ID_BLK);
	struct ring ring;

	start_device(&ring, device, FEATURE_INDIRECT);
	for (unsigned int i = 0; i < ARRAY_COUNT(sectors); i++)
		if (request_blk(&ring, VIRTIO_BLK_T_IN, sectors[i], 16, 1024, true) != 1)
			fail_number("a read beyond the disk does not fail: sector", sectors[i]);
	for (unsigned int i = 0; i < ARRAY_COUNT(lengths); i++)
		if (request_blk(&ring, VIRTIO_BLK_T_IN, 0, 16, lengths[i], true) != 1)
			fail_number("a read of half a sector does not fail: bytes", lengths[i]);
	memset((void *)DATA, 0xaa, 512);
	for (unsigned int i = 0; i < ARRAY_COUNT(writes); i++)
		if (request_blk(&ring, writes[i], 0, 16, 512, true) != 1)
			fail_number("a change of the disk does not fail: type", writes[i]);
	need(request_blk(&ring, 0xffffffff, 0, 16, 512, true) == 2, "an unknown request");
	need(request_blk(&ring, VIRTIO_BLK_T_FLUSH, ~0UL, 16, 0, true) == 0, "a flush fails");
	need(request_blk(&ring, VIRTIO_BLK_T_IN, 0, 15, 512, true) == 1, "half a header");
	need(request_blk(&ring, VIRTIO_BLK_T_IN, 0, 0, 512, true) == 1, "no header");
	need(request_blk(&ring, VIRTIO_BLK_T_IN, 0, 16, 0, true) == 0, "a read of nothing fails");
	/* Without a status byte the last byte of the data is it. */
	need(request_blk(&ring, VIRTIO_BLK_T_IN, 0, 16, 512, false) == -1, "no status byte");
	need(request_blk(&ring, VIRTIO_BLK_T_IN, 0, 16, 0, false) == -1, "no writable part");
	need(request_blk(&ring, VIRTIO_BLK_T_GET_ID, 0, 16, 3, true) == 0, "a short id");
	/* The whole disk at once, and then more at once than there is. */
	need(request_blk(&ring, VIRTIO_BLK_T_IN, 0, 16, MIB, true) == 0, "the whole disk");
	need(request_blk(&ring, VIRTIO_BLK_T_IN, 0, 16, MIB + 512, true) == 1, "more than all");
	behave(device);
}

/* The queue is full of large reads when the device is reset: after that it does not touch the
 * buffers any more. The test sees to it that the image is not in the page cache. */
static void attack_blk_in_flight(void)
{
	uint64_t device = find_device(ID_BLK);
	struct ring ring;

	for (unsigned int round = 0; round < 30; round++) {
		struct virtio_blk_outhdr *header = (void *)BUFFERS;

		start_device(&ring, device, FEATURE_INDIRECT);
		*header = (struct virtio_blk_outhdr){.type = VIRTIO_BLK_T_IN};
		for (uint16_t i = 0; i < 5; i++) {
			uint16_t first = (uint16_t)(i * 3);

			set_descriptor(&ring, first, BUFFERS, 16, NEXT, (uint16_t)(first + 1));
			set_descriptor(&ring, (uint16_t)(first + 1), DATA, MIB, NEXT | WRITE,
				       (uint16_t)(first + 2));
			set_descriptor(&ring, (uint16_t)(first + 2), STATUS, 1, WRITE, 0);
			show_chain(&ring, first);
		}
		kick_ring(&ring);
		pause_guest(random_below(20));
		reg_write(device, VIRTIO_MMIO_STATUS, 0);
		for (uint64_t page = 0; page < MIB; page += 4096)
			write_64(DATA + page, 0xfeed);
		pause_guest(200);
		for (uint64_t page = 0; page < MIB; page += 4096)
			need(read_64(DATA + page) == 0xfeed, "a read goes on after the reset");
	}
	behave(device);
}

/* Frames of any size, none included; the test reads the card's counters afterwards. */
static void attack_net(void)
{
	static const uint32_t sizes[] = {0,    1,    11,    12,    13,    14,  60,
					 1514, 9000, 65535, 65536, 65548, MIB, 8 * MIB};
	uint64_t device = find_device(ID_NET);
	struct ring rings[2];

	start_device(rings, device, FEATURE_INDIRECT);
	for (unsigned int i = 0; i < ARRAY_COUNT(sizes); i++) {
		set_descriptor(&rings[1], 0, DATA, sizes[i], 0, 0);
		show_chain(&rings[1], 0);
		kick_ring(&rings[1]);
		need(wait_used(&rings[1]) == 0, "a sent frame has a length");
		/* A receive buffer stays the device's for ever. */
		set_descriptor(&rings[0], 0, DATA, sizes[i], WRITE, 0);
		show_chain(&rings[0], 0);
		kick_ring(&rings[0]);
	}
	need(rings[0].used->idx == 0, "a frame came in");
	behave(device);
}

static void attack_rng(void)
{
	uint64_t device = find_device(ID_RNG);
	struct ring ring;
	uint32_t length;

	start_device(&ring, device, FEATURE_INDIRECT);
	for (uint32_t size = 1; size <= 4 * MIB; size *= 4) {
		write_64(DATA + size, 0);
		set_descriptor(&ring, 0, DATA, size, WRITE, 0);
		show_chain(&ring, 0);
		kick_ring(&ring);
		length = wait_used(&ring);
		if (length == 0 || length > size || length > 65536)
			fail_number("random bytes given:", length);
		need(read_64(DATA + size) == 0, "random bytes beyond the buffer");
	}
	/* Nothing to write to; the whole queue at once, a MiB each. */
	set_descriptor(&ring, 0, DATA, 64, 0, 0);
	show_chain(&ring, 0);
	kick_ring(&ring);
	need(wait_used(&ring) == 0, "random bytes in a buffer to be read");
	for (unsigned int round = 0; round < 5; round++) {
		set_descriptor(&ring, 0, DATA, MIB, WRITE, 0);
		for (unsigned int i = 0; i < 16; i++)
			show_chain(&ring, 0);
		kick_ring(&ring);
		for (unsigned int i = 0; i < 16; i++)
			need(wait_used(&ring) <= 65536, "too many random bytes");
	}
	behave(device);
}

static void inflate(struct ring *ring, uint32_t bytes)
{
	set_descriptor(ring, 0, DATA, bytes, 0, 0);
	show_chain(ring, 0);
	kick_ring(ring);
	wait_used(ring);
}

/* Page numbers that are nobody's, in arrays of any length. */
static void attack_balloon(void)
{
	static const uint32_t pages[] = {0xffffffff,
					 0xfffffffe,
					 LAYOUT_DEVICES >> 12,
					 RAM_BYTES >> 12,
					 (RAM_BYTES >> 12) + 1,
					 0xfee00,
					 0x100000,
					 0x80000000};
	static const uint32_t lengths[] = {0, 1, 3, 5, 4096, MIB, 4 * MIB};
	uint64_t device = find_device(ID_BALLOON);
	struct ring rings[3];

	start_device(rings, device, FEATURE_INDIRECT | 1UL << 5);
	for (unsigned int i = 0; i < ARRAY_COUNT(pages); i++)
		write_32(DATA + i * 4UL, pages[i]);
	for (unsigned int queue = 0; queue < 2; queue++)
		inflate(&rings[queue], sizeof(pages));
	memset((void *)DATA, 0xff, 8192);
	for (unsigned int i = 0; i < ARRAY_COUNT(lengths); i++)
		inflate(&rings[i % 2], lengths[i]);
	/* Neighbours up to and over the end of RAM: the run as a whole is not in it. */
	for (uint32_t i = 0; i < 64; i++)
		write_32(DATA + i * 4UL, (uint32_t)(RAM_BYTES >> 12) - 4 + i);
	inflate(&rings[0], 256);
	/* The last numbers that there are. */
	for (uint32_t i = 0; i < 32; i++)
		write_32(DATA + i * 4UL, 0xffffffe0 + i);
	inflate(&rings[0], 128);
	behave(device);
}

/* Free page reports: part of pages, huge ones over and over, and pages of the ring itself. */
static void attack_reports(void)
{
	const uint64_t page = DATA + 0x10000;
	uint64_t device = find_device(ID_BALLOON);
	struct ring rings[3];
	struct ring *ring = &rings[2];

	start_device(rings, device, FEATURE_INDIRECT | 1UL << 5);
	write_64(page, 1);
	write_64(page + 8, 1);
	set_descriptor(ring, 0, page + 4, 4095, WRITE, 0);
	show_chain(ring, 0);
	kick_ring(ring);
	wait_used(ring);
	need(read_64(page) == 1 && read_64(page + 8) == 1, "half a page was taken");
	set_descriptor(ring, 0, page, 4096, WRITE, 0);
	show_chain(ring, 0);
	kick_ring(ring);
	wait_used(ring);
	need(read_64(page) == 0, "a reported page keeps what was in it");
	for (unsigned int i = 0; i < 16; i++)
		set_descriptor(ring, (uint16_t)i, page, 8 * MIB, WRITE | (i < 15 ? NEXT : 0),
			       (uint16_t)(i + 1));
	for (unsigned int round = 0; round < 5; round++) {
		for (unsigned int i = 0; i < 16; i++)
			show_chain(ring, 0);
		kick_ring(ring);
		for (unsigned int i = 0; i < 16; i++)
			wait_used(ring);
	}
	for (unsigned int part = 0; part < 3; part++) {
		start_device(rings, device, FEATURE_INDIRECT | 1UL << 5);
		set_descriptor(ring, 0,
			       part == 0   ? (uint64_t)ring->descriptors
			       : part == 1 ? (uint64_t)ring->available
					   : (uint64_t)ring->used,
			       4096, WRITE, 0);
		for (unsigned int i = 0; i < 3; i++) {
			show_chain(ring, 0);
			kick_ring(ring);
		}
		pause_guest(100);
	}
	behave(device);
}

const struct attack device_attacks[] = {
	{"blk", attack_blk},
	{"blk-in-flight", attack_blk_in_flight},
	{"net", attack_net},
	{"rng", attack_rng},
	{"balloon", attack_balloon},
	{"reports", attack_reports},
	{0},
};

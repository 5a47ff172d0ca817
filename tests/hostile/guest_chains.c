/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on the rings: descriptors, indices, kicks and resets. */
#include "tests/hostile/guest_virtio.h"

#define DATA  (BUFFERS + 0x400000)
#define TABLE (BUFFERS + 0x500000)
#define MIB   0x100000U

const struct target targets[TARGET_COUNT] = {
	{ID_RNG, 0},     {ID_NET, 1}, {ID_VSOCK, 1}, {ID_BALLOON, 0},
	{ID_BALLOON, 2}, {ID_BLK, 0}, {ID_FS, 1},
};
#define FEATURES (FEATURE_INDIRECT | 1UL << 5 /* the balloon's reporting queue */)

static void set_entry(unsigned int index, uint64_t address, uint32_t length, uint16_t flags,
		      uint16_t next)
{
	volatile struct vring_desc *entry = (volatile struct vring_desc *)TABLE + index;

	entry->addr = address;
	entry->len = length;
	entry->flags = flags;
	entry->next = next;
}

/* A table of @count entries of @length bytes each, one after the other. */
static void set_table(unsigned int count, uint32_t length)
{
	for (unsigned int i = 0; i < count; i++)
		set_entry(i, DATA, length, i + 1 < count ? NEXT : 0, (uint16_t)(i + 1));
}

/* 300 times 15 MiB, each of which is inside RAM. */
_Static_assert(DATA + 15UL * MIB <= RAM_BYTES && 300UL * 15 * MIB > UINT32_MAX, "");

/* Chains that break the rules, from descriptor 0 on; each must be refused. */
enum broken {
	LOOP_OF_ONE,
	LOOP_OF_TWO,
	NEXT_OUT_OF_RANGE,
	HEAD_OUT_OF_RANGE,
	INDIRECT_IN_INDIRECT,
	INDIRECT_EMPTY,
	INDIRECT_HALF,
	INDIRECT_HUGE,
	INDIRECT_AND_NEXT,
	INDIRECT_IN_DEVICES,
	INDIRECT_LOOP,
	INDIRECT_NEXT_OUT_OF_RANGE,
	INDIRECT_TOO_MANY,
	READABLE_AFTER_WRITABLE,
	LENGTH_ALL_ONES,
	SUM_OVER_4_GIB,
	ADDRESS_IN_DEVICES,
	ADDRESS_AFTER_RAM,
	ADDRESS_OVER_RAM_END,
	ADDRESS_WRAPS,
	ADDRESS_ABOVE_4_GIB,
	JUMP_TOO_FAR,
	JUMP_BACK,
	JUMP_HALF_WAY,
	BROKEN_COUNT,
};

static void show_jump(struct ring *ring, int distance)
{
	set_descriptor(ring, 0, DATA, 16, 0, 0);
	ring->shown = (uint16_t)(ring->shown + distance);
	ring->available->idx = ring->shown;
}

/* Those that are told by a single descriptor. */
static void make_simple(struct ring *ring, enum broken kind)
{
	static const struct {
		uint64_t address;
		uint32_t length;
		uint16_t flags, next;
	} simple[BROKEN_COUNT] = {
		[LOOP_OF_ONE] = {DATA, 16, NEXT, 0},
		[LOOP_OF_TWO] = {DATA, 16, NEXT, 1},
		[NEXT_OUT_OF_RANGE] = {DATA, 16, NEXT, 16},
		[INDIRECT_IN_INDIRECT] = {TABLE, 32, INDIRECT, 0},
		[INDIRECT_EMPTY] = {TABLE, 0, INDIRECT, 0},
		[INDIRECT_HALF] = {TABLE, 24, INDIRECT, 0},
		[INDIRECT_HUGE] = {TABLE, 0xfffffff0, INDIRECT, 0},
		[INDIRECT_AND_NEXT] = {TABLE, 32, INDIRECT | NEXT, 1},
		[INDIRECT_IN_DEVICES] = {LAYOUT_DEVICES, 4096, INDIRECT, 0},
		[INDIRECT_LOOP] = {TABLE, 32, INDIRECT, 0},
		[INDIRECT_NEXT_OUT_OF_RANGE] = {TABLE, 32, INDIRECT, 0},
		[INDIRECT_TOO_MANY] = {TABLE, 16 * 301, INDIRECT, 0},
		[READABLE_AFTER_WRITABLE] = {DATA, 16, WRITE | NEXT, 1},
		[LENGTH_ALL_ONES] = {DATA, 0xffffffff, 0, 0},
		[SUM_OVER_4_GIB] = {TABLE, 16 * 300, INDIRECT, 0},
		[ADDRESS_IN_DEVICES] = {LAYOUT_DEVICES, 16, WRITE, 0},
		[ADDRESS_AFTER_RAM] = {RAM_BYTES, 1, WRITE, 0},
		[ADDRESS_OVER_RAM_END] = {RAM_BYTES - 8, 16, 0, 0},
		[ADDRESS_WRAPS] = {~0UL - 7, 16, WRITE, 0},
		[ADDRESS_ABOVE_4_GIB] = {DATA | 1UL << 32, 16, 0, 0},
	};

	set_descriptor(ring, 0, simple[kind].address, simple[kind].length, simple[kind].flags,
		       simple[kind].next);
	set_descriptor(ring, 1, DATA, 16, 0, 0);
}

static void make_broken(struct ring *ring, enum broken kind)
{
	uint16_t head = 0;

	make_simple(ring, kind);
	set_table(2, 16);
	if (kind == LOOP_OF_TWO)
		set_descriptor(ring, 1, DATA, 16, NEXT, 0);
	else if (kind == HEAD_OUT_OF_RANGE)
		head = 0xffff;
	else if (kind == INDIRECT_IN_INDIRECT)
		set_entry(0, TABLE, 32, INDIRECT, 0);
	else if (kind == INDIRECT_LOOP)
		set_entry(1, DATA, 0, NEXT, 0);
	else if (kind == INDIRECT_NEXT_OUT_OF_RANGE)
		set_entry(1, DATA, 16, NEXT, 2);
	else if (kind == INDIRECT_TOO_MANY)
		set_table(301, 1);
	else if (kind == SUM_OVER_4_GIB)
		set_table(300, 15U * MIB);
	if (kind == JUMP_TOO_FAR)
		show_jump(ring, ring->size + 1);
	else if (kind == JUMP_BACK)
		show_jump(ring, -1);
	else if (kind == JUMP_HALF_WAY)
		show_jump(ring, 0x8000);
	else
		show_chain(ring, head);
}

static void attack_broken_chains(void)
{
	struct ring rings[8];

	for (unsigned int i = 0; i < ARRAY_COUNT(targets); i++) {
		uint64_t device = find_device(targets[i].id);
		struct ring *ring = &rings[targets[i].queue];

		for (unsigned int kind = 0; kind < BROKEN_COUNT; kind++) {
			start_device(rings, device, FEATURES);
			make_broken(ring, kind);
			kick_ring(ring);
			wait_needs_reset(device);
			if (saw_used(ring, 1))
				fail_number("a broken chain is answered: kind", kind);
			kick_ring(ring);
		}
		behave(device);
	}
}

/* Chains that are odd and keep the rules: no device may call them broken. */
static void attack_odd_chains(void)
{
	struct ring rings[8];

	for (unsigned int i = 0; i < ARRAY_COUNT(targets); i++) {
		uint64_t device = find_device(targets[i].id);
		struct ring *ring = &rings[targets[i].queue];

		start_device(rings, device, FEATURES);
		memset((void *)DATA, 0, 0x1000);
		/* Empty buffers only; then as many descriptors as there are. */
		set_descriptor(ring, 0, ~0UL, 0, NEXT, 1);
		set_descriptor(ring, 1, LAYOUT_DEVICES, 0, 0, 0);
		show_chain(ring, 0);
		kick_ring(ring);
		wait_used(ring);
		for (uint16_t entry = 0; entry < 16; entry++)
			set_descriptor(ring, entry, DATA + entry * 64U, 4, entry < 15 ? NEXT : 0,
				       (uint16_t)(entry + 1));
		show_chain(ring, 0);
		kick_ring(ring);
		wait_used(ring);
		/* The largest table, whose entries are one and the same buffer. */
		set_table(300, 4);
		set_descriptor(ring, 3, TABLE, 16 * 300, INDIRECT, 0);
		show_chain(ring, 3);
		kick_ring(ring);
		wait_used(ring);
		/* The ring as its own buffer, to be read. */
		set_descriptor(ring, 0, (uint64_t)ring->descriptors, 256, NEXT, 1);
		set_descriptor(ring, 1, (uint64_t)ring->used, 64, 0, 0);
		show_chain(ring, 0);
		kick_ring(ring);
		wait_used(ring);
		/* One chain, sixteen times at once. */
		set_descriptor(ring, 0, DATA, 16, 0, 0);
		for (unsigned int times = 0; times < 16; times++)
			show_chain(ring, 0);
		kick_ring(ring);
		for (unsigned int times = 0; times < 16; times++)
			wait_used(ring);
		behave(device);
	}
}

/* The ring is the buffer that the device writes to: whatever comes of it, comes to the guest. */
static void attack_ring_as_buffer(void)
{
	struct ring rings[8];

	for (unsigned int i = 0; i < ARRAY_COUNT(targets); i++) {
		uint64_t device = find_device(targets[i].id);
		struct ring *ring = &rings[targets[i].queue];

		for (unsigned int part = 0; part < 3; part++) {
			uint64_t parts[3];

			start_device(rings, device, FEATURES);
			parts[0] = (uint64_t)ring->descriptors;
			parts[1] = (uint64_t)ring->available;
			parts[2] = (uint64_t)ring->used;
			set_descriptor(ring, 0, DATA, 64, NEXT, 1);
			set_descriptor(ring, 1, parts[part], 4096, WRITE, 0);
			for (unsigned int times = 0; times < 8; times++)
				show_chain(ring, 0);
			kick_ring(ring);
			pause_guest(100);
			kick_ring(ring);
			pause_guest(20);
		}
		behave(device);
	}
}

/* Random rings: every field from a small set of values that are sometimes right. */
static void attack_random_rings(void)
{
	static const uint64_t addresses[] = {DATA,  DATA,           DATA,           DATA + 0x8000,
					     TABLE, RAM_BYTES - 64, LAYOUT_DEVICES, ~0UL};
	static const uint32_t lengths[] = {0,  1,   4,    16,    40,       44,
					   64, 512, 4096, 65536, 0x100000, 0xffffffff};
	struct ring rings[8];

	for (unsigned int round = 0; round < 60; round++) {
		unsigned int target = random_below(ARRAY_COUNT(targets));
		uint64_t device = find_device(targets[target].id);
		/* A random page that the balloon takes may be of this program: not its first queue.
		 */
		uint32_t first = targets[target].id == ID_BALLOON;
		struct ring *ring = &rings[first + random_below(count_queues(device) - first)];

		start_device(rings, device, FEATURES | (random_below(2) ? FEATURE_EVENT_IDX : 0));
		for (unsigned int i = 0; i < 32; i++) {
			uint64_t address = addresses[random_below(ARRAY_COUNT(addresses))];
			uint32_t length = lengths[random_below(random_below(3) ? 9 : 12)];
			uint16_t flags =
				(uint16_t)(random_below(8) ? random_below(4) : random_below(65536));

			if (i < 16)
				set_descriptor(ring, (uint16_t)i, address, length, flags,
					       (uint16_t)random_below(18));
			else
				set_entry(i - 16, address, length, (uint16_t)(flags & ~INDIRECT),
					  (uint16_t)random_below(18));
		}
		for (unsigned int i = 0; i < 12; i++) {
			show_chain(ring, (uint16_t)random_below(random_below(8) ? 16 : 65536));
			if (random_below(2))
				kick_ring(ring);
		}
		kick_ring(ring);
		pause_guest(random_below(40));
	}
	behave_all();
}

/* Kicks without work, for queues that are and are not there, of devices that are and are not set
 * up; then one for each of many chains. */
static void attack_kick_storm(void)
{
	struct ring rings[8];

	for (unsigned int i = 0; i < ARRAY_COUNT(targets); i++) {
		uint64_t device = find_device(targets[i].id);
		struct ring *ring = &rings[targets[i].queue];

		reg_write(device, VIRTIO_MMIO_STATUS, 0);
		for (unsigned int kick = 0; kick < 300; kick++)
			reg_write(device, VIRTIO_MMIO_QUEUE_NOTIFY, kick % 16);
		start_device(rings, device, FEATURES);
		for (unsigned int kick = 0; kick < 1500; kick++)
			kick_ring(ring);
		set_descriptor(ring, 0, DATA, 16, 0, 0);
		for (unsigned int chain = 0; chain < 200; chain++) {
			show_chain(ring, 0);
			kick_ring(ring);
			kick_ring(ring);
			wait_used(ring);
		}
		behave(device);
	}
}

/* Resets with work in the queue, and kicks around them. */
static void attack_reset_storm(void)
{
	struct ring rings[8];

	for (unsigned int i = 0; i < ARRAY_COUNT(targets); i++) {
		uint64_t device = find_device(targets[i].id);
		struct ring *ring = &rings[targets[i].queue];

		for (unsigned int round = 0; round < 25; round++) {
			start_device(rings, device, FEATURES);
			set_descriptor(ring, 0, DATA, 16, NEXT, 1);
			set_descriptor(ring, 1, DATA + 0x1000, 65536, WRITE, 0);
			for (unsigned int chain = 0; chain < 16; chain++)
				show_chain(ring, 0);
			kick_ring(ring);
			pause_guest(random_below(8));
			reg_write(device, VIRTIO_MMIO_STATUS, 0);
			kick_ring(ring);
		}
		behave(device);
	}
}

const struct attack chain_attacks[] = {
	{"broken-chains", attack_broken_chains},
	{"odd-chains", attack_odd_chains},
	{"ring-as-buffer", attack_ring_as_buffer},
	{"random-rings", attack_random_rings},
	{"kick-storm", attack_kick_storm},
	{"reset-storm", attack_reset_storm},
	{0},
};

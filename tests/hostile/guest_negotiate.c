/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on what driver and device agree on, and on what is fixed from then on. */
#include "tests/hostile/guest_virtio.h"

#define DATA     (BUFFERS + 0x400000)
#define TABLE    (BUFFERS + 0x500000)
#define AGREED   (STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK)
#define FEATURES (FEATURE_INDIRECT | 1UL << 5)

/* Up to the driver's offer; whether the device takes it. */
static bool offer(uint64_t device, uint64_t features)
{
	attempt();
	reg_write(device, VIRTIO_MMIO_STATUS, 0);
	reg_write(device, VIRTIO_MMIO_STATUS, STATUS_ACKNOWLEDGE | STATUS_DRIVER);
	for (uint32_t half = 0; half < 2; half++) {
		reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES_SEL, half);
		reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES, (uint32_t)(features >> 32 * half));
	}
	reg_write(device, VIRTIO_MMIO_STATUS, AGREED);
	return reg_read(device, VIRTIO_MMIO_STATUS) == AGREED;
}

static uint64_t offered(uint64_t device)
{
	uint64_t features;

	reg_write(device, VIRTIO_MMIO_DEVICE_FEATURES_SEL, 1);
	features = (uint64_t)reg_read(device, VIRTIO_MMIO_DEVICE_FEATURES) << 32;
	reg_write(device, VIRTIO_MMIO_DEVICE_FEATURES_SEL, 0);
	return features | reg_read(device, VIRTIO_MMIO_DEVICE_FEATURES);
}

/* Features that a device does not have, or without which there is none; halves that do not exist.
 */
static void attack_features(void)
{
	for (unsigned int i = 0; i < TARGET_COUNT; i++) {
		const uint64_t device = find_device(targets[i].id);
		const uint64_t features = offered(device);

		for (unsigned int bit = 0; bit < 64; bit++) {
			if (features >> bit & 1)
				continue;
			if (offer(device, FEATURE_VERSION_1 | 1UL << bit))
				fail_number("a feature that was not offered is taken: bit", bit);
		}
		need(!offer(device, features & ~FEATURE_VERSION_1), "a device without version 1");
		need(!offer(device, 0) && !offer(device, ~0UL), "nothing, or all, is taken");
		for (uint32_t half = 2; half < 40; half += 3) {
			reg_write(device, VIRTIO_MMIO_DEVICE_FEATURES_SEL, half);
			need(reg_read(device, VIRTIO_MMIO_DEVICE_FEATURES) == 0,
			     "there are features beyond the 63rd");
			reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES_SEL, half);
			reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES, 0xffffffff);
		}
		behave(device);
	}
}

/* A table although none was agreed on. */
static void attack_lied_features(void)
{
	volatile struct vring_desc *entry = (volatile struct vring_desc *)TABLE;
	struct ring rings[8];

	entry->addr = DATA;
	entry->len = 16;
	entry->flags = 0;
	for (unsigned int i = 0; i < TARGET_COUNT; i++) {
		const uint64_t device = find_device(targets[i].id);
		struct ring *ring = &rings[targets[i].queue];

		start_device(rings, device, 1UL << 5);
		/* Too late: it is agreed. */
		reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES_SEL, 0);
		reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES, (uint32_t)FEATURE_INDIRECT);
		reg_write(device, VIRTIO_MMIO_STATUS, AGREED | STATUS_DRIVER_OK);
		set_descriptor(ring, 0, TABLE, 16, INDIRECT, 0);
		show_chain(ring, 0);
		kick_ring(ring);
		wait_needs_reset(device);
		behave(device);
	}
}

/* Queues that are moved, resized, closed and opened while they are in use: they stay as they were.
 */
static void attack_moved_rings(void)
{
	static const uint64_t places[] = {LAYOUT_DEVICES, ~0UL, 1, RAM_BYTES, RINGS + 0x8000, 0};
	struct ring rings[8];

	for (unsigned int i = 0; i < TARGET_COUNT; i++) {
		const uint64_t device = find_device(targets[i].id);
		struct ring *ring = &rings[targets[i].queue];

		start_device(rings, device, FEATURES);
		for (unsigned int place = 0; place < ARRAY_COUNT(places); place++) {
			reg_write(device, VIRTIO_MMIO_QUEUE_SEL, ring->index);
			reg_write(device, VIRTIO_MMIO_QUEUE_READY, 0);
			place_queue(device, ring->index, (uint32_t)(place * 7), places[place],
				    places[ARRAY_COUNT(places) - 1 - place], places[place]);
			need(reg_read(device, VIRTIO_MMIO_QUEUE_READY) == 1, "a queue is closed");
			set_descriptor(ring, 0, DATA, 16, 0, 0);
			show_chain(ring, 0);
			kick_ring(ring);
			wait_used(ring);
		}
		behave(device);
	}
}

/* Sizes that are no power of two, none, or too large, for each queue of each device. */
static void attack_queue_sizes(void)
{
	static const uint32_t ids[] = {ID_NET, ID_BLK, ID_RNG, ID_BALLOON, ID_VSOCK, ID_FS};
	static const uint32_t sizes[] = {0,    3,     5,     6,          7,          9,
					 12,   100,   255,   257,        1000,       1023,
					 1025, 0xfff, 65535, 0x10000010, 0x80000000, 0xffffffff};

	for (unsigned int which = 0; which < ARRAY_COUNT(ids); which++) {
		const uint64_t device = find_device(ids[which]);
		const uint32_t count = count_queues(device);

		for (unsigned int i = 0; i < ARRAY_COUNT(sizes); i++) {
			begin_device(device, FEATURE_INDIRECT);
			for (uint32_t queue = 0; queue < count; queue++)
				place_queue(device, queue, sizes[i], RINGS, RINGS + 0x100000,
					    RINGS + 0x200000);
			go_device(device);
			if (!(reg_read(device, VIRTIO_MMIO_STATUS) & STATUS_NEEDS_RESET))
				fail_number("a queue of an impossible size is taken:", sizes[i]);
			report.checks++;
		}
		behave(device);
	}
}

/* Frames of every size up to that of Ethernet's and a little beyond, sixteen at a time. */
static void attack_net_sizes(void)
{
	const uint64_t device = find_device(ID_NET);
	struct ring rings[2];

	start_device(rings, device, FEATURE_INDIRECT);
	memset((void *)DATA, 0, 2048);
	for (uint32_t size = 0; size < 1616; size += 16) {
		for (uint16_t i = 0; i < 16; i++) {
			set_descriptor(&rings[1], i, DATA, size + i, 0, 0);
			show_chain(&rings[1], i);
		}
		kick_ring(&rings[1]);
		for (unsigned int i = 0; i < 16; i++)
			need(wait_used(&rings[1]) == 0, "a sent frame has a length");
	}
	behave(device);
}

const struct attack negotiate_attacks[] = {
	{"features", attack_features},       {"lied-features", attack_lied_features},
	{"moved-rings", attack_moved_rings}, {"queue-sizes", attack_queue_sizes},
	{"net-sizes", attack_net_sizes},     {0},
};

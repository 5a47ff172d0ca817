/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/guest_virtio.h"

#define RING_BYTES    0x10000UL
#define RING_AVAIL    0x4000UL
#define RING_USED     0x8000UL
#define DEVICE_QUEUES 8UL

uint64_t find_device(uint32_t id)
{
	for (uint64_t i = 0; i < LIMIT_MMIO_DEVICES; i++) {
		uint64_t device = LAYOUT_DEVICES + i * LAYOUT_DEVICE_SIZE;

		if (reg_read(device, VIRTIO_MMIO_MAGIC_VALUE) == 0x74726976 &&
		    reg_read(device, VIRTIO_MMIO_DEVICE_ID) == id)
			return device;
	}
	fail_number("there is no device of type", id);
}

uint32_t count_queues(uint64_t device)
{
	uint32_t count = 0;

	for (; count < DEVICE_QUEUES; count++) {
		reg_write(device, VIRTIO_MMIO_QUEUE_SEL, count);
		if (reg_read(device, VIRTIO_MMIO_QUEUE_NUM_MAX) == 0)
			break;
	}
	return count;
}

static uint64_t offered_features(uint64_t device)
{
	uint64_t features;

	reg_write(device, VIRTIO_MMIO_DEVICE_FEATURES_SEL, 1);
	features = (uint64_t)reg_read(device, VIRTIO_MMIO_DEVICE_FEATURES) << 32;
	reg_write(device, VIRTIO_MMIO_DEVICE_FEATURES_SEL, 0);
	return features | reg_read(device, VIRTIO_MMIO_DEVICE_FEATURES);
}

void begin_device(uint64_t device, uint64_t features)
{
	const uint32_t agreed = STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK;

	reg_write(device, VIRTIO_MMIO_STATUS, 0);
	need(reg_read(device, VIRTIO_MMIO_STATUS) == 0, "a device does not take a reset");
	reg_write(device, VIRTIO_MMIO_STATUS, STATUS_ACKNOWLEDGE | STATUS_DRIVER);
	features = (features | FEATURE_VERSION_1) & offered_features(device);
	for (uint32_t half = 0; half < 2; half++) {
		reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES_SEL, half);
		reg_write(device, VIRTIO_MMIO_DRIVER_FEATURES, (uint32_t)(features >> 32 * half));
	}
	reg_write(device, VIRTIO_MMIO_STATUS, agreed);
	if (reg_read(device, VIRTIO_MMIO_STATUS) != agreed)
		fail_number("features are refused by device",
			    reg_read(device, VIRTIO_MMIO_DEVICE_ID));
}

void place_queue(uint64_t device, uint32_t index, uint32_t size, uint64_t descriptors,
		 uint64_t available, uint64_t used)
{
	attempt();
	reg_write(device, VIRTIO_MMIO_QUEUE_SEL, index);
	reg_write(device, VIRTIO_MMIO_QUEUE_NUM, size);
	reg_write(device, VIRTIO_MMIO_QUEUE_DESC_LOW, (uint32_t)descriptors);
	reg_write(device, VIRTIO_MMIO_QUEUE_DESC_HIGH, (uint32_t)(descriptors >> 32));
	reg_write(device, VIRTIO_MMIO_QUEUE_AVAIL_LOW, (uint32_t)available);
	reg_write(device, VIRTIO_MMIO_QUEUE_AVAIL_HIGH, (uint32_t)(available >> 32));
	reg_write(device, VIRTIO_MMIO_QUEUE_USED_LOW, (uint32_t)used);
	reg_write(device, VIRTIO_MMIO_QUEUE_USED_HIGH, (uint32_t)(used >> 32));
	reg_write(device, VIRTIO_MMIO_QUEUE_READY, 1);
}

void make_ring(struct ring *ring, uint64_t device, uint32_t index, uint16_t size)
{
	uint64_t number = (device - LAYOUT_DEVICES) / LAYOUT_DEVICE_SIZE * DEVICE_QUEUES + index;
	uint64_t base = RINGS + number * RING_BYTES;

	*ring = (struct ring){
		.device = device,
		.index = index,
		.size = size,
		.descriptors = (volatile struct vring_desc *)base,
		.available = (volatile struct vring_avail *)(base + RING_AVAIL),
		.used = (volatile struct vring_used *)(base + RING_USED),
	};
	memset((void *)base, 0, 16UL * size);
	memset((void *)(base + RING_AVAIL), 0, 2UL * size + 6);
	memset((void *)(base + RING_USED), 0, 8UL * size + 6);
	place_queue(device, index, size, base, base + RING_AVAIL, base + RING_USED);
}

void go_device(uint64_t device)
{
	reg_write(device, VIRTIO_MMIO_STATUS,
		  STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK | STATUS_DRIVER_OK);
}

void start_device(struct ring *rings, uint64_t device, uint64_t features)
{
	uint32_t count = count_queues(device);

	begin_device(device, features);
	for (uint32_t i = 0; i < count; i++)
		make_ring(&rings[i], device, i, 16);
	go_device(device);
	if (reg_read(device, VIRTIO_MMIO_STATUS) & STATUS_NEEDS_RESET)
		fail_number("a good set-up is refused by device",
			    reg_read(device, VIRTIO_MMIO_DEVICE_ID));
}

void set_descriptor(struct ring *ring, uint16_t index, uint64_t address, uint32_t length,
		    uint16_t flags, uint16_t next)
{
	ring->descriptors[index].addr = address;
	ring->descriptors[index].len = length;
	ring->descriptors[index].flags = flags;
	ring->descriptors[index].next = next;
}

void show_chain(struct ring *ring, uint16_t head)
{
	attempt();
	ring->available->ring[ring->shown & (ring->size - 1)] = head;
	ring->available->idx = ++ring->shown;
}

void kick_ring(const struct ring *ring)
{
	attempt();
	reg_write(ring->device, VIRTIO_MMIO_QUEUE_NOTIFY, ring->index);
}

static uint32_t take_used(struct ring *ring)
{
	return ring->used->ring[ring->seen++ & (ring->size - 1)].len;
}

uint32_t wait_used(struct ring *ring)
{
	struct patience patience = patience_begin();

	while (ring->used->idx == ring->seen) {
		if (!patience_left(&patience))
			fail_number("no answer from device",
				    reg_read(ring->device, VIRTIO_MMIO_DEVICE_ID));
		if (reg_read(ring->device, VIRTIO_MMIO_STATUS) & STATUS_NEEDS_RESET)
			fail_number("a good request broke device",
				    reg_read(ring->device, VIRTIO_MMIO_DEVICE_ID));
	}
	return take_used(ring);
}

bool saw_used(struct ring *ring, unsigned int pauses)
{
	for (unsigned int i = 0; i < pauses; i++) {
		pause_guest(1);
		if (ring->used->idx != ring->seen) {
			take_used(ring);
			return true;
		}
	}
	return false;
}

void wait_needs_reset(uint64_t device)
{
	struct patience patience = patience_begin();

	while (!(reg_read(device, VIRTIO_MMIO_STATUS) & STATUS_NEEDS_RESET)) {
		if (!patience_left(&patience))
			fail_number("NEEDS_RESET is not shown by device",
				    reg_read(device, VIRTIO_MMIO_DEVICE_ID));
	}
	report.checks++;
}

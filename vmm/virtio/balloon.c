/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/balloon.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/virtio_balloon.h>
#include <stdbool.h>
#include <stdlib.h>

#include "vmm/base/bytes.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/virtio/device_queue.h"

/* 5.5.2 numbers the reporting queue 4, but a queue whose feature is not offered does not exist, and
 * Linux numbers those that do without gaps (vm_find_vqs in drivers/virtio/virtio_mmio.c, 6.12). */
enum { QUEUE_INFLATE, QUEUE_DEFLATE, QUEUE_REPORTING, QUEUE_COUNT };
#define QUEUE_SIZE 128U

#define PAGE_BYTES (UINT64_C(1) << VIRTIO_BALLOON_PFN_SHIFT)

struct balloon_device {
	struct virtio_device_description description;
	struct virtio_balloon_config config;
	struct loop *loop;
	const struct guest_memory *memory;
	int memory_fd;
	bool punch_failed; /* said once */
	struct device_queue queues[QUEUE_COUNT];
};

/* Gives the whole pages of [offset, offset + length) of the memfd back to the host. */
static void punch(struct balloon_device *device, uint64_t offset, uint64_t length)
{
	uint64_t start = bytes_align_up(offset, PAGE_BYTES);
	uint64_t end = (offset + length) & ~(PAGE_BYTES - 1);

	if (start >= end)
		return;
	if (fallocate(device->memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start,
		      (off_t)(end - start)) == 0 ||
	    device->punch_failed)
		return;
	device->punch_failed = true;
	log_errno(-errno, "cannot give free guest memory back to the host");
}

/* Where in the memfd @host is; the caller got it from a descriptor chain. */
static uint64_t memory_offset(const struct balloon_device *device, const uint8_t *host)
{
	uint64_t before = 0;

	for (unsigned int i = 0; i < device->memory->count; i++) {
		const struct guest_memory_region *region = &device->memory->regions[i];

		if (host >= region->host && (uint64_t)(host - region->host) < region->size)
			return before + (uint64_t)(host - region->host);
		before += region->size;
	}
	log_fatal("a descriptor chain leads out of guest memory");
}

/* 5.5.6.7: the guest does not use the pages until it has the chain back, and then expects nothing
 * of what was in them. */
static uint32_t report(void *context, const struct descriptor_chain *chain)
{
	struct balloon_device *device = context;

	for (unsigned int i = 0; i < chain->writable_count; i++) {
		const struct iovec *segment = &chain->segments[chain->readable_count + i];

		punch(device, memory_offset(device, segment->iov_base), segment->iov_len);
	}
	return 0;
}

/* 5.5.6: an array of page numbers. Neighbours, which are the rule, are given back together. */
static uint32_t inflate(void *context, const struct descriptor_chain *chain)
{
	struct balloon_device *device = context;
	uint32_t numbers[LIMIT_BALLOON_PAGES];
	size_t count = descriptor_chain_read(chain, 0, numbers, sizeof(numbers)) / sizeof(*numbers);
	size_t next = 0;

	while (next < count) {
		uint64_t first = le32toh(numbers[next]);
		uint64_t length = 1;
		const uint8_t *host;

		while (next + length < count && le32toh(numbers[next + length]) == first + length)
			length++;
		next += length;
		host = guest_memory_at(device->memory, first * PAGE_BYTES, length * PAGE_BYTES);
		if (host)
			punch(device, memory_offset(device, host), length * PAGE_BYTES);
	}
	return 0;
}

/* 5.5.6: pages that leave the balloon are simply used again. */
static uint32_t deflate(void *context, const struct descriptor_chain *chain)
{
	(void)context;
	(void)chain;
	return 0;
}

/* The reporting queue is there only for a driver that took the feature. */
static int balloon_activate(void *opaque, const struct virtio_activation *activation)
{
	struct balloon_device *device = opaque;
	bool reporting = activation->features & (UINT64_C(1) << VIRTIO_BALLOON_F_REPORTING);
	unsigned int count = reporting ? QUEUE_COUNT : QUEUE_REPORTING;
	int result = 0;

	for (unsigned int i = 0; i < count && result == 0; i++)
		result = device_queue_start(&device->queues[i], device->loop, activation, i);
	return result;
}

static void balloon_reset(void *opaque)
{
	struct balloon_device *device = opaque;

	for (unsigned int i = 0; i < QUEUE_COUNT; i++)
		device_queue_stop(&device->queues[i]);
}

static int balloon_process_queue(void *opaque, unsigned int index)
{
	static device_queue_handler *const handlers[QUEUE_COUNT] = {inflate, deflate, report};
	struct balloon_device *device = opaque;

	if (!device->queues[index].ring.size)
		return 0;
	return device_queue_serve(&device->queues[index], handlers[index], device);
}

static const struct virtio_device_ops balloon_ops = {
	.activate = balloon_activate,
	.reset = balloon_reset,
	.process_queue = balloon_process_queue,
};

int balloon_device_create(struct balloon_device **device, struct loop *loop,
			  const struct guest_memory *memory, int memory_fd)
{
	struct balloon_device *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->loop = loop;
	made->memory = memory;
	made->memory_fd = memory_fd;
	made->description = (struct virtio_device_description){
		.ops = &balloon_ops,
		.device = made,
		.id = VIRTIO_DEVICE_BALLOON,
		.features = DEVICE_QUEUE_FEATURES | UINT64_C(1) << VIRTIO_BALLOON_F_DEFLATE_ON_OOM |
			    UINT64_C(1) << VIRTIO_BALLOON_F_REPORTING,
		.queue_count = QUEUE_COUNT,
		.queue_size = QUEUE_SIZE,
		.config = &made->config,
		.config_size = sizeof(made->config),
	};
	*device = made;
	return 0;
}

void balloon_device_destroy(struct balloon_device *device)
{
	free(device);
}

const struct virtio_device_description *
balloon_device_description(const struct balloon_device *device)
{
	return &device->description;
}

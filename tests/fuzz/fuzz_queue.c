/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of a virtqueue over a memory that the input fills. The device does what devices
 * do: takes chains until there are none, reads all, writes all, pushes, publishes. Whatever the
 * memory holds, segments must lie in it and the loop must end.
 *
 * Input: a header (struct settings), then the bytes of guest memory from address 0 on.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/virtio/queue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two regions side by side, and one that crosses 4 GiB. */
#define LOW_BYTES    8192U
#define NEXT_BYTES   4096U
#define HIGH_GPA     0xfffff000ULL
#define HIGH_BYTES   8192U
#define REGION_COUNT 3
#define ROUNDS       4

#define REQUIRE(truth) ((truth) ? (void)0 : abort())

struct settings {
	uint8_t features;  /* bit 0: EVENT_IDX, bit 1: INDIRECT, bit 2: publish each chain */
	uint8_t size_log2; /* of the queue; also sizes that are no power of two */
	uint16_t base;
	uint16_t descriptor;
	uint16_t available;
	uint16_t used;
	uint16_t written; /* what the device says it wrote */
};

struct fixture {
	struct guest_memory memory;
	struct virtqueue queue;
	struct descriptor_chain chain;
	bool publish_each;
	uint16_t written;
};

static void check_segment(const struct guest_memory *memory, const struct iovec *segment)
{
	for (unsigned int i = 0; i < memory->count; i++) {
		const uint8_t *start = memory->regions[i].host;
		const uint8_t *base = segment->iov_base;

		if (base >= start && base < start + memory->regions[i].size) {
			REQUIRE(segment->iov_len > 0);
			REQUIRE(segment->iov_len <=
				(size_t)(start + memory->regions[i].size - base));
			return;
		}
	}
	abort();
}

/* What the chain says of itself must be true. */
static void check_chain(const struct guest_memory *memory, const struct descriptor_chain *chain)
{
	uint64_t readable = 0, writable = 0;
	struct iovec vector[LIMIT_CHAIN_SEGMENTS];
	unsigned int count = (unsigned int)chain->readable_count + chain->writable_count;

	REQUIRE(count <= LIMIT_CHAIN_SEGMENTS);
	for (unsigned int i = 0; i < count; i++) {
		check_segment(memory, &chain->segments[i]);
		if (i < chain->readable_count)
			readable += chain->segments[i].iov_len;
		else
			writable += chain->segments[i].iov_len;
	}
	REQUIRE(readable == chain->readable_bytes && writable == chain->writable_bytes);
	REQUIRE(descriptor_chain_readable_iovec(chain, 0, readable, vector, LIMIT_CHAIN_SEGMENTS) ==
		chain->readable_count);
	REQUIRE(descriptor_chain_writable_iovec(chain, writable / 2, writable - writable / 2,
						vector,
						LIMIT_CHAIN_SEGMENTS) <= chain->writable_count);
}

/* Copies what can be read to what can be written: also over rings and tables, if they are there. */
static void serve(struct fixture *fixture)
{
	const struct descriptor_chain *chain = &fixture->chain;
	uint8_t buffer[512];
	size_t offset = 0;

	check_chain(&fixture->memory, chain);
	for (;;) {
		size_t count = descriptor_chain_read(chain, offset, buffer, sizeof(buffer));
		size_t room = chain->writable_bytes - offset;

		if (offset >= chain->writable_bytes)
			break;
		REQUIRE(descriptor_chain_write(chain, offset, buffer, count) ==
			(count < room ? count : room));
		if (count == 0)
			break;
		offset += count;
	}
	REQUIRE(virtqueue_push(&fixture->queue, chain->head, fixture->written) == 0);
	if (fixture->publish_each)
		virtqueue_publish(&fixture->queue);
}

/* Returns whether the ring is still in order. */
static bool drain(struct fixture *fixture)
{
	unsigned int taken = 0;
	int result;

	virtqueue_disable_kicks(&fixture->queue);
	while ((result = virtqueue_pop(&fixture->queue, &fixture->chain)) == 1) {
		REQUIRE(fixture->publish_each || ++taken <= fixture->queue.size);
		serve(fixture);
		if (fixture->publish_each && ++taken > 3U * LIMIT_QUEUE_SIZE)
			break;
	}
	virtqueue_publish(&fixture->queue);
	virtqueue_enable_kicks(&fixture->queue);
	return result >= 0;
}

static void run(struct fixture *fixture, const struct settings *settings)
{
	uint16_t size = (uint16_t)(settings->size_log2 & 0x80 ? settings->size_log2
							      : 1U << settings->size_log2 % 12);

	fixture->queue = (struct virtqueue){
		.event_idx = settings->features & 1,
		.indirect = settings->features & 2,
	};
	fixture->publish_each = settings->features & 4;
	fixture->written = settings->written;
	if (virtqueue_start(&fixture->queue, &fixture->memory, size, settings->descriptor,
			    settings->available, settings->used, settings->base))
		return;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		if (!drain(fixture))
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fixture fixture;
	struct guest_memory_region regions[REGION_COUNT] = {
		{.gpa = 0, .size = LOW_BYTES},
		{.gpa = LOW_BYTES, .size = NEXT_BYTES},
		{.gpa = HIGH_GPA, .size = HIGH_BYTES},
	};
	struct settings settings;

	if (size < sizeof(settings))
		return 0;
	memcpy(&settings, data, sizeof(settings));
	data += sizeof(settings);
	size -= sizeof(settings);
	fixture.memory.count = 0;
	for (unsigned int i = 0; i < REGION_COUNT; i++) {
		/* separate allocations, so that a step over the edge is seen */
		regions[i].host = calloc(1, regions[i].size);
		REQUIRE(regions[i].host && guest_memory_add(&fixture.memory, &regions[i]) == 0);
	}
	guest_memory_write(&fixture.memory, 0, data,
			   size < LOW_BYTES + NEXT_BYTES ? size : LOW_BYTES + NEXT_BYTES);
	run(&fixture, &settings);
	for (unsigned int i = 0; i < REGION_COUNT; i++)
		free(regions[i].host);
	return 0;
}

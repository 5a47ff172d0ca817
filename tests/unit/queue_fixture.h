/* SPDX-License-Identifier: Apache-2.0 */
/* Guest memory and a queue in it, for the tests of the device side. After cmocka.h. */
#ifndef MVAGENT_TESTS_QUEUE_FIXTURE_H
#define MVAGENT_TESTS_QUEUE_FIXTURE_H

#include <stdint.h>
#include <sys/mman.h>

#include "tests/unit/ring_driver.h"
#include "vmm/virtio/queue.h"

#define MEMORY_BYTES (1U << 20)
#define DATA_GPA     0x80000U /* buffers; the rings are below */

static uint8_t *host;
static struct guest_memory memory;
static struct descriptor_chain chain;

static inline int make_memory(void **state)
{
	struct guest_memory_region region = {.gpa = 0, .size = MEMORY_BYTES};

	(void)state;
	host = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (host == MAP_FAILED)
		return -1;
	region.host = host;
	return guest_memory_add(&memory, &region);
}

static inline int free_memory(void **state)
{
	(void)state;
	return munmap(host, MEMORY_BYTES);
}

/* A small generator of our own, so that a failure can be repeated. */
static uint64_t random_state = 1;

static inline uint32_t random_below(uint32_t limit)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(random_state >> 33) % limit;
}

static inline void start_queue(struct virtqueue *queue, struct ring_driver *driver, uint16_t size,
			       uint16_t base, bool event_idx)
{
	ring_driver_init(driver, host, 0x1000, size, base, event_idx);
	*queue = (struct virtqueue){.event_idx = event_idx, .indirect = true};
	assert_int_equal(virtqueue_start(queue, &memory, size, driver->descriptor_gpa,
					 driver->available_gpa, driver->used_gpa, base),
			 0);
}

static inline void show_one(struct ring_driver *driver, uint16_t head)
{
	*ring_word(driver, driver->available_gpa, 2U + driver->available_index % driver->size) =
		head;
	driver->available_index++;
	ring_show(driver);
}

#endif

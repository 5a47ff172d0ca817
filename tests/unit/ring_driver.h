/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver side of a split virtqueue, for tests: what a guest kernel does, in the fewest lines.
 * Written from virtio 1.2, 2.7 alone, so that it does not share a mistake with the device side.
 */
#ifndef MVAGENT_TESTS_RING_DRIVER_H
#define MVAGENT_TESTS_RING_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RING_NEXT     1U
#define RING_WRITE    2U
#define RING_INDIRECT 4U

struct ring_descriptor {
	uint64_t address;
	uint32_t length;
	uint16_t flags;
	uint16_t next;
};

struct ring_buffer {
	uint64_t gpa;
	uint32_t length;
	bool writable;
};

struct ring_driver {
	uint8_t *host; /* guest memory from gpa 0 */
	uint16_t size;
	bool event_idx;
	uint64_t descriptor_gpa, available_gpa, used_gpa;
	uint16_t available_index, used_index;
	uint16_t kicked_index; /* available index at the last look at the device's wish */
	uint16_t free_count;
	bool in_use[1024];
};

static inline struct ring_descriptor *ring_descriptors(struct ring_driver *driver)
{
	return (struct ring_descriptor *)(driver->host + driver->descriptor_gpa);
}

/* Word @index of the available or used ring: 0 flags, 1 idx, then the entries. */
static inline uint16_t *ring_word(struct ring_driver *driver, uint64_t gpa, unsigned int index)
{
	return (uint16_t *)(driver->host + gpa) + index;
}

static inline uint16_t *ring_used_event(struct ring_driver *driver)
{
	return ring_word(driver, driver->available_gpa, 2U + driver->size);
}

static inline uint16_t *ring_available_event(struct ring_driver *driver)
{
	return ring_word(driver, driver->used_gpa, 2U + 4U * driver->size);
}

/* Lays the three parts out from @gpa (16-aligned) on, with both indices at @base. Returns the first
 * gpa after them, 16-aligned. */
static inline uint64_t ring_driver_init(struct ring_driver *driver, uint8_t *host, uint64_t gpa,
					uint16_t size, uint16_t base, bool event_idx)
{
	uint64_t end;

	memset(driver, 0, sizeof(*driver));
	driver->host = host;
	driver->size = size;
	driver->event_idx = event_idx;
	driver->descriptor_gpa = gpa;
	driver->available_gpa = gpa + 16ULL * size;
	driver->used_gpa = (driver->available_gpa + 6 + 2ULL * size + 3) & ~3ULL;
	end = (driver->used_gpa + 6 + 8ULL * size + 15) & ~15ULL;
	memset(host + gpa, 0, end - gpa);
	driver->available_index = driver->used_index = driver->kicked_index = base;
	driver->free_count = size;
	*ring_word(driver, driver->available_gpa, 1) = base;
	*ring_word(driver, driver->used_gpa, 1) = base;
	*ring_used_event(driver) = base;
	*ring_available_event(driver) = base;
	return end;
}

static inline uint16_t ring_take_descriptor(struct ring_driver *driver)
{
	for (uint16_t i = 0; i < driver->size; i++) {
		if (!driver->in_use[i]) {
			driver->in_use[i] = true;
			driver->free_count--;
			return i;
		}
	}
	return UINT16_MAX;
}

/* Puts a chain into the available ring, not yet shown. @indirect_gpa: where to put the table, or 0
 * for a direct chain. Returns the head, or -1 when there are too few descriptors. */
static inline int ring_add(struct ring_driver *driver, const struct ring_buffer *buffers,
			   unsigned int count, uint64_t indirect_gpa)
{
	struct ring_descriptor *table = ring_descriptors(driver);
	uint16_t index[1024];

	if (count == 0 || driver->free_count < (indirect_gpa ? 1 : count))
		return -1;
	for (unsigned int i = 0; i < count; i++)
		index[i] = indirect_gpa ? (uint16_t)i : ring_take_descriptor(driver);
	if (indirect_gpa) {
		uint16_t head = ring_take_descriptor(driver);

		table[head] = (struct ring_descriptor){indirect_gpa, 16 * count, RING_INDIRECT, 0};
		table = (struct ring_descriptor *)(driver->host + indirect_gpa);
		*ring_word(driver, driver->available_gpa,
			   2U + driver->available_index % driver->size) = head;
	} else {
		*ring_word(driver, driver->available_gpa,
			   2U + driver->available_index % driver->size) = index[0];
	}
	for (unsigned int i = 0; i < count; i++) {
		table[index[i]] = (struct ring_descriptor){
			.address = buffers[i].gpa,
			.length = buffers[i].length,
			.flags = (uint16_t)((buffers[i].writable ? RING_WRITE : 0) |
					    (i + 1 < count ? RING_NEXT : 0)),
			.next = i + 1 < count ? index[i + 1] : 0,
		};
	}
	return *ring_word(driver, driver->available_gpa,
			  2U + driver->available_index++ % driver->size);
}

/* Shows what was added; returns whether the device wants a kick (2.7.10). */
static inline bool ring_show(struct ring_driver *driver)
{
	uint16_t old = driver->kicked_index;
	uint16_t event;

	__atomic_store_n(ring_word(driver, driver->available_gpa, 1), driver->available_index,
			 __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	driver->kicked_index = driver->available_index;
	if (!driver->event_idx)
		return !(__atomic_load_n(ring_word(driver, driver->used_gpa, 0), __ATOMIC_RELAXED) &
			 1);
	event = __atomic_load_n(ring_available_event(driver), __ATOMIC_RELAXED);
	/* Kick when the entry numbered event is among those just shown. */
	return (uint16_t)(event - old) < (uint16_t)(driver->available_index - old);
}

static inline void ring_free_chain(struct ring_driver *driver, uint16_t head)
{
	struct ring_descriptor *table = ring_descriptors(driver);
	uint16_t index = head;

	for (;;) {
		driver->in_use[index] = false;
		driver->free_count++;
		if ((table[index].flags & RING_INDIRECT) || !(table[index].flags & RING_NEXT))
			return;
		index = table[index].next;
	}
}

/* Takes one used element; false when there is none. */
static inline bool ring_take_used(struct ring_driver *driver, uint16_t *head, uint32_t *written)
{
	const uint32_t *element;
	uint16_t shown = __atomic_load_n(ring_word(driver, driver->used_gpa, 1), __ATOMIC_ACQUIRE);

	if (shown == driver->used_index)
		return false;
	element = (const uint32_t *)(driver->host + driver->used_gpa + 4) +
		  2U * (driver->used_index % driver->size);
	*head = (uint16_t)element[0];
	*written = element[1];
	driver->used_index++;
	ring_free_chain(driver, *head);
	return true;
}

/* Asks for an interrupt at the next used element; returns whether there is one already. */
static inline bool ring_want_interrupt(struct ring_driver *driver)
{
	__atomic_store_n(ring_used_event(driver), driver->used_index, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(ring_word(driver, driver->used_gpa, 1), __ATOMIC_RELAXED) !=
	       driver->used_index;
}

#endif

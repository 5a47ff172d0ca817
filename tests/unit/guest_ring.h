/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest memory with a bump allocator and the driver side of split virtqueues in it (virtio 1.2,
 * 2.7), for tests of whole devices: makes buffers available, says whether the device wants a kick,
 * and collects used ones.
 */
#ifndef MVAGENT_TESTS_GUEST_RING_H
#define MVAGENT_TESTS_GUEST_RING_H

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/virtio/device.h"
#include "vmm/virtio/memory.h"

#define RING_MEMORY_GPA   UINT64_C(0x100000)
#define RING_MEMORY_BYTES (UINT64_C(8) << 20)
#define RING_ENTRIES_MAX  256U
#define RING_BYTES        0x4000U /* enough for the three parts of the largest ring */

/* Guest memory of one region, from a memfd. */
struct ring_memory {
	struct guest_memory guest;
	uint8_t *host;
	int fd;
	uint64_t next;
};

static inline void ring_memory_create(struct ring_memory *memory)
{
	struct guest_memory_region region = {.gpa = RING_MEMORY_GPA, .size = RING_MEMORY_BYTES};

	memset(memory, 0, sizeof(*memory));
	memory->fd = memfd_create("guest", MFD_CLOEXEC);
	if (memory->fd < 0 || ftruncate(memory->fd, (off_t)RING_MEMORY_BYTES) < 0)
		abort();
	region.host =
		mmap(NULL, RING_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
	if (region.host == MAP_FAILED || guest_memory_add(&memory->guest, &region) < 0)
		abort();
	memory->host = region.host;
	memory->next = RING_MEMORY_GPA;
}

static inline void ring_memory_destroy(struct ring_memory *memory)
{
	munmap(memory->host, RING_MEMORY_BYTES);
	fd_close(&memory->fd);
}

/* The gpa of @length fresh bytes, page-aligned. */
static inline uint64_t ring_memory_take(struct ring_memory *memory, uint64_t length)
{
	uint64_t gpa = memory->next;

	memory->next += (length + 4095) & ~UINT64_C(4095);
	if (memory->next > RING_MEMORY_GPA + RING_MEMORY_BYTES)
		abort();
	return gpa;
}

static inline void *ring_memory_at(const struct ring_memory *memory, uint64_t gpa)
{
	return memory->host + (gpa - RING_MEMORY_GPA);
}

struct ring_segment {
	uint64_t gpa;
	uint32_t length;
	bool writable;
};

struct guest_ring {
	struct ring_memory *memory;
	uint64_t gpa;
	uint16_t size;
	bool event_idx;
	uint16_t available_index;
	uint16_t used_index;
	uint16_t kicked_index; /* available index at the last question whether to kick */
	uint16_t free_count;
	uint16_t free_descriptors[RING_ENTRIES_MAX];
};

static inline struct vring_desc *guest_ring_descriptors(const struct guest_ring *ring)
{
	return ring_memory_at(ring->memory, ring->gpa);
}

static inline struct vring_avail *guest_ring_available(const struct guest_ring *ring)
{
	return ring_memory_at(ring->memory, ring->gpa + 0x2000);
}

static inline struct vring_used *guest_ring_used(const struct guest_ring *ring)
{
	return ring_memory_at(ring->memory, ring->gpa + 0x3000);
}

/* A fresh ring; @setup gets where its parts are. */
static inline void guest_ring_create(struct guest_ring *ring, struct ring_memory *memory,
				     uint16_t size, bool event_idx,
				     struct virtio_queue_setup *setup)
{
	memset(ring, 0, sizeof(*ring));
	ring->memory = memory;
	ring->size = size;
	ring->event_idx = event_idx;
	ring->gpa = ring_memory_take(memory, RING_BYTES);
	memset(ring_memory_at(memory, ring->gpa), 0, RING_BYTES);
	for (uint16_t i = 0; i < size; i++)
		ring->free_descriptors[ring->free_count++] = i;
	*setup = (struct virtio_queue_setup){
		.size = size,
		.ready = true,
		.descriptor_gpa = ring->gpa,
		.available_gpa = ring->gpa + 0x2000,
		.used_gpa = ring->gpa + 0x3000,
	};
}

/* Makes one chain available. Returns its head, or -1 when there are too few descriptors. */
static inline int guest_ring_add(struct guest_ring *ring, const struct ring_segment *segments,
				 unsigned int count)
{
	struct vring_desc *table = guest_ring_descriptors(ring);
	struct vring_avail *available = guest_ring_available(ring);
	uint16_t head = 0;
	uint16_t next = 0;

	if (count == 0 || ring->free_count < count)
		return -1;
	for (unsigned int i = count; i-- > 0;) {
		bool last = i == count - 1;
		struct vring_desc descriptor = {
			.addr = segments[i].gpa,
			.len = segments[i].length,
			.flags = (uint16_t)((segments[i].writable ? VRING_DESC_F_WRITE : 0) |
					    (last ? 0 : VRING_DESC_F_NEXT)),
			.next = next,
		};

		head = ring->free_descriptors[--ring->free_count];
		table[head] = descriptor;
		next = head;
	}
	available->ring[ring->available_index % ring->size] = head;
	ring->available_index++;
	__atomic_store_n(&available->idx, ring->available_index, __ATOMIC_RELEASE);
	return head;
}

/* Whether the device wants a kick for what was added since the last question. */
static inline bool guest_ring_wants_kick(struct guest_ring *ring)
{
	struct vring_used *used = guest_ring_used(ring);
	uint16_t old = ring->kicked_index;
	const uint16_t *event = (const uint16_t *)(const void *)&used->ring[ring->size];

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ring->kicked_index = ring->available_index;
	if (old == ring->available_index)
		return false;
	if (!ring->event_idx)
		return !(__atomic_load_n(&used->flags, __ATOMIC_RELAXED) & VRING_USED_F_NO_NOTIFY);
	return vring_need_event(__atomic_load_n(event, __ATOMIC_RELAXED), ring->available_index,
				old);
}

/* Takes one used chain back. When there is none, asks for an interrupt at the next one. */
static inline bool guest_ring_take(struct guest_ring *ring, uint16_t *head, uint32_t *written)
{
	struct vring_desc *table = guest_ring_descriptors(ring);
	struct vring_used *used = guest_ring_used(ring);
	const struct vring_used_elem *element;
	uint16_t index;

	if (__atomic_load_n(&used->idx, __ATOMIC_ACQUIRE) == ring->used_index) {
		guest_ring_available(ring)->ring[ring->size] = ring->used_index;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (__atomic_load_n(&used->idx, __ATOMIC_ACQUIRE) == ring->used_index)
			return false;
	}
	element = &used->ring[ring->used_index++ % ring->size];
	*head = (uint16_t)element->id;
	*written = element->len;
	for (index = *head;; index = table[index].next) {
		ring->free_descriptors[ring->free_count++] = index;
		if (!(table[index].flags & VRING_DESC_F_NEXT))
			break;
	}
	return true;
}

#endif

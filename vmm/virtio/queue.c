/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/queue.h"

#include <assert.h>
#include <errno.h>
#include <linux/virtio_ring.h>
#include <stddef.h>
#include <string.h>

#include "vmm/base/bytes.h"

/* The layouts of 2.7.5, 2.7.6 and 2.7.8, as the uapi header has them. Fields are little-endian. */
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ring fields are used as they are");
static_assert(sizeof(struct vring_desc) == 16, "2.7.5");
static_assert(offsetof(struct vring_avail, ring) == 4, "2.7.6");
static_assert(offsetof(struct vring_used, ring) == 4, "2.7.8");
static_assert(sizeof(struct vring_used_elem) == 8, "2.7.8");
static_assert((LIMIT_QUEUE_SIZE & (LIMIT_QUEUE_SIZE - 1)) == 0 && LIMIT_QUEUE_SIZE <= 32768,
	      "2.7: a power of two, at most 32768");

/* Sizes of the three parts (2.7), the event fields at their ends included (2.7.6, 2.7.8). */
static uint64_t descriptor_table_bytes(uint16_t size)
{
	return sizeof(struct vring_desc) * (uint64_t)size;
}

static uint64_t available_ring_bytes(uint16_t size)
{
	return 4 + sizeof(__virtio16) * (uint64_t)size + 2;
}

static uint64_t used_ring_bytes(uint16_t size)
{
	return 4 + sizeof(struct vring_used_elem) * (uint64_t)size + 2;
}

/*
 * The three parts are looked up again at each use instead of keeping pointers: that is one compare
 * or two for each part and batch, and it makes a stale pointer impossible.
 */
static struct vring_avail *available_ring(const struct virtqueue *queue)
{
	if (!queue->size)
		return NULL;
	return guest_memory_at(queue->memory, queue->available_gpa,
			       available_ring_bytes(queue->size));
}

static struct vring_used *used_ring(const struct virtqueue *queue)
{
	if (!queue->size)
		return NULL;
	return guest_memory_at(queue->memory, queue->used_gpa, used_ring_bytes(queue->size));
}

/* used_event follows the available ring (2.7.6): the driver's wish for an interrupt. */
static uint16_t *used_event(const struct virtqueue *queue, struct vring_avail *available)
{
	return &available->ring[queue->size];
}

/* avail_event follows the used ring (2.7.8): our wish for a kick. */
static uint16_t *avail_event(const struct virtqueue *queue, struct vring_used *used)
{
	return (uint16_t *)&used->ring[queue->size];
}

int virtqueue_start(struct virtqueue *queue, const struct guest_memory *memory, uint16_t size,
		    uint64_t descriptor_gpa, uint64_t available_gpa, uint64_t used_gpa,
		    uint16_t base)
{
	queue->size = 0;
	if (size == 0 || size > LIMIT_QUEUE_SIZE || (size & (size - 1)))
		return -EINVAL;
	/* 2.7: alignments of the three parts */
	if (descriptor_gpa % 16 || available_gpa % 2 || used_gpa % 4)
		return -EINVAL;
	if (!guest_memory_at(memory, descriptor_gpa, descriptor_table_bytes(size)) ||
	    !guest_memory_at(memory, available_gpa, available_ring_bytes(size)) ||
	    !guest_memory_at(memory, used_gpa, used_ring_bytes(size)))
		return -EINVAL;
	queue->memory = memory;
	queue->descriptor_gpa = descriptor_gpa;
	queue->available_gpa = available_gpa;
	queue->used_gpa = used_gpa;
	queue->next_available = base;
	queue->next_used = base;
	queue->signalled_used = base;
	queue->signalled_valid = false;
	queue->unpublished = 0;
	queue->size = size;
	return 0;
}

/* How far the walk of one chain has come. */
struct walk {
	const struct virtqueue *queue;
	struct descriptor_chain *chain;
	unsigned int steps; /* descriptors that describe buffers, empty ones included */
	uint64_t bytes;     /* of the whole chain */
};

/* The single fetch of a descriptor: the guest may rewrite it meanwhile, so all checks are on the
 * copy. The barrier keeps the compiler from reading the original a second time. */
static struct vring_desc fetch_descriptor(const void *table, uint32_t index)
{
	struct vring_desc copy;

	memcpy(&copy, (const uint8_t *)table + sizeof(copy) * (size_t)index, sizeof(copy));
	__asm__ volatile("" : : : "memory");
	return copy;
}

/* Adds one buffer to the chain. */
static int take_buffer(struct walk *walk, const struct vring_desc *descriptor)
{
	struct descriptor_chain *chain = walk->chain;
	bool writable = descriptor->flags & VRING_DESC_F_WRITE;
	unsigned int count = (unsigned int)chain->readable_count + chain->writable_count;
	void *host;

	if (++walk->steps > LIMIT_CHAIN_SEGMENTS)
		return -EPROTO;
	/* 2.7.4.2: device-readable buffers come before device-writable ones. */
	if (!writable && chain->writable_count)
		return -EPROTO;
	/* 2.7.5.2: no chain of more than 2^32 bytes; and our sums are 32 bits wide. */
	walk->bytes += descriptor->len;
	if (walk->bytes > UINT32_MAX)
		return -EPROTO;
	/* 2.7.5 does not forbid an empty buffer; it has no bytes, so it is no segment. */
	if (descriptor->len == 0)
		return 0;
	host = guest_memory_at(walk->queue->memory, descriptor->addr, descriptor->len);
	if (!host)
		return -EPROTO;
	chain->segments[count] = (struct iovec){.iov_base = host, .iov_len = descriptor->len};
	if (writable) {
		chain->writable_count++;
		chain->writable_bytes += descriptor->len;
	} else {
		chain->readable_count++;
		chain->readable_bytes += descriptor->len;
	}
	return 0;
}

/* Walks the table that an INDIRECT descriptor refers to (2.7.5.3). The WRITE flag of the referring
 * descriptor is ignored, as 2.7.5.3.2 demands. */
static int take_indirect(struct walk *walk, const struct vring_desc *reference)
{
	const uint32_t count = reference->len / (uint32_t)sizeof(struct vring_desc);
	const void *table;
	uint32_t index = 0;

	/* 2.7.5.3.1: only when negotiated, and nothing follows the reference. */
	if (!walk->queue->indirect || (reference->flags & VRING_DESC_F_NEXT))
		return -EPROTO;
	if (count == 0 || reference->len % sizeof(struct vring_desc))
		return -EPROTO;
	table = guest_memory_at(walk->queue->memory, reference->addr, reference->len);
	if (!table)
		return -EPROTO;
	for (;;) {
		const struct vring_desc descriptor = fetch_descriptor(table, index);
		int error;

		/* 2.7.5.3.1: no table within a table. */
		if (descriptor.flags & VRING_DESC_F_INDIRECT)
			return -EPROTO;
		error = take_buffer(walk, &descriptor); /* bounds the walk: loops end here */
		if (error)
			return error;
		if (!(descriptor.flags & VRING_DESC_F_NEXT))
			return 0;
		index = descriptor.next;
		if (index >= count)
			return -EPROTO;
	}
}

/* Walks the chain that starts at @head. 2.7.5.3.2: normal descriptors may come before the one that
 * refers to a table. */
static int take_chain(struct walk *walk, uint16_t head)
{
	const struct virtqueue *queue = walk->queue;
	const void *table = guest_memory_at(queue->memory, queue->descriptor_gpa,
					    descriptor_table_bytes(queue->size));
	uint16_t index = head;

	if (!table)
		return -EPROTO;
	/* A chain that visits more descriptors than there are has a loop in it (2.7.5.2). */
	for (unsigned int visited = 0; visited < queue->size; visited++) {
		struct vring_desc descriptor;
		int error;

		if (index >= queue->size)
			return -EPROTO;
		descriptor = fetch_descriptor(table, index);
		if (descriptor.flags & VRING_DESC_F_INDIRECT)
			return take_indirect(walk, &descriptor);
		error = take_buffer(walk, &descriptor);
		if (error)
			return error;
		if (!(descriptor.flags & VRING_DESC_F_NEXT))
			return 0;
		index = descriptor.next;
	}
	return -EPROTO;
}

int virtqueue_pop(struct virtqueue *queue, struct descriptor_chain *chain)
{
	struct walk walk = {.queue = queue, .chain = chain};
	struct vring_avail *available = available_ring(queue);
	uint16_t index, shown;
	int error;

	if (!available)
		return -EPROTO;
	/* Acquire, paired with the driver's barrier between filling the ring and storing idx
	 * (2.7.13.3.1): what idx announces is read after idx. */
	index = __atomic_load_n(&available->idx, __ATOMIC_ACQUIRE);
	if (index == queue->next_available)
		return 0;
	/* Each chain that is out occupies at least one descriptor until the driver has seen it in
	 * the used ring, so idx is never more than the queue's size ahead of what we have shown.
	 * This also bounds the chains a device can be made to take before it publishes. */
	shown = (uint16_t)(queue->next_used - queue->unpublished);
	if ((uint16_t)(index - queue->next_available) > queue->size ||
	    (uint16_t)(index - shown) > queue->size)
		return -EPROTO;

	/* Relaxed is enough, it comes after the acquire; atomic, so that it is fetched once. */
	chain->head = __atomic_load_n(&available->ring[queue->next_available % queue->size],
				      __ATOMIC_RELAXED);
	chain->readable_count = 0;
	chain->writable_count = 0;
	chain->readable_bytes = 0;
	chain->writable_bytes = 0;
	error = take_chain(&walk, chain->head);
	if (error)
		return error;
	queue->next_available++;
	return 1;
}

int virtqueue_push(struct virtqueue *queue, uint16_t head, uint32_t written)
{
	struct vring_used *used = used_ring(queue);

	if (!used || head >= queue->size)
		return -EPROTO;
	/* Plain stores: the release in virtqueue_publish orders them before the index. */
	used->ring[queue->next_used % queue->size] =
		(struct vring_used_elem){.id = head, .len = written};
	queue->next_used++;
	queue->unpublished++;
	return 0;
}

bool virtqueue_publish(struct virtqueue *queue)
{
	struct vring_avail *available = available_ring(queue);
	struct vring_used *used = used_ring(queue);
	uint16_t previous = queue->signalled_used;
	bool previous_valid = queue->signalled_valid;
	uint16_t event;

	if (!available || !used || queue->unpublished == 0)
		return false;
	/* Release: the driver that sees the index sees the elements and the data in the buffers
	 * (2.7.8.2: idx is updated after the element). */
	__atomic_store_n(&used->idx, queue->next_used, __ATOMIC_RELEASE);
	queue->unpublished = 0;
	queue->signalled_used = queue->next_used;
	queue->signalled_valid = true;
	/* Full fence: our store of idx must be visible before we read the driver's wish, as the
	 * driver stores its wish before it looks at idx again. Either side weaker, and both could
	 * miss the other: a lost interrupt. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!queue->event_idx) /* 2.7.7.2, without the feature */
		return !(__atomic_load_n(&available->flags, __ATOMIC_RELAXED) &
			 VRING_AVAIL_F_NO_INTERRUPT);
	event = __atomic_load_n(used_event(queue, available), __ATOMIC_RELAXED);
	/* 2.7.7.2: interrupt when idx moves past used_event. Where it moved from is not known the
	 * first time, and an interrupt too many is harmless. */
	return !previous_valid || vring_need_event(event, queue->next_used, previous);
}

void virtqueue_disable_kicks(struct virtqueue *queue)
{
	struct vring_used *used = used_ring(queue);

	/* With EVENT_IDX the flags stay 0 (2.7.10.1), and avail_event, now in the past, keeps
	 * the driver quiet by itself. */
	if (used && !queue->event_idx)
		__atomic_store_n(&used->flags, (uint16_t)VRING_USED_F_NO_NOTIFY, __ATOMIC_RELAXED);
}

bool virtqueue_enable_kicks(struct virtqueue *queue)
{
	struct vring_avail *available = available_ring(queue);
	struct vring_used *used = used_ring(queue);

	if (!available || !used)
		return false;
	if (queue->event_idx)
		__atomic_store_n(avail_event(queue, used), queue->next_available, __ATOMIC_RELAXED);
	else
		__atomic_store_n(&used->flags, (uint16_t)0, __ATOMIC_RELAXED);
	/* Full fence: our wish must be visible before we look at idx for the last time, as the
	 * driver stores idx before it reads our wish (2.7.13.4.1). Otherwise a kick is lost. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&available->idx, __ATOMIC_RELAXED) != queue->next_available;
}

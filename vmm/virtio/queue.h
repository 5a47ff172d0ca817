/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device side of a split virtqueue (virtio 1.2, 2.7), with indirect descriptors (2.7.5.3) and
 * EVENT_IDX (2.7.7.2 and 2.7.8). Pure: guest memory and ring state in, a result out. No descriptor,
 * no log line, no global; so it can be fuzzed as it stands.
 *
 * Whatever the guest writes, the code here reads and writes only inside guest memory, ends after a
 * bounded number of steps, and answers -EPROTO for a ring that breaks the rules; the caller then
 * marks its device as broken (DEVICE_NEEDS_RESET or, behind vhost-user, stops the queue).
 */
#ifndef MVAGENT_VIRTIO_QUEUE_H
#define MVAGENT_VIRTIO_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "vmm/base/limits.h"
#include "vmm/virtio/memory.h"

struct virtqueue {
	const struct guest_memory *memory;
	uint64_t descriptor_gpa;
	uint64_t available_gpa;
	uint64_t used_gpa;
	uint16_t size;           /* entries; 0 while the queue is not set up */
	uint16_t next_available; /* the available index to look at next */
	uint16_t next_used;      /* the used index to write next */
	uint16_t signalled_used; /* used index at the last interrupt decision */
	bool signalled_valid;    /* whether signalled_used means anything yet */
	bool event_idx;          /* VIRTIO_F_EVENT_IDX was negotiated */
	bool indirect;           /* VIRTIO_F_INDIRECT_DESC was negotiated */
	uint16_t unpublished;    /* used entries written and not yet shown to the guest */
};

/* One request: the guest's buffers in order, device-readable ones first (2.7.4.2). The iovecs point
 * into guest memory and are good until the chain is pushed. */
struct descriptor_chain {
	uint16_t head; /* what virtqueue_push wants back */
	uint16_t readable_count;
	uint16_t writable_count;
	uint32_t readable_bytes; /* sums; a chain of 4 GiB or more is refused */
	uint32_t writable_bytes;
	struct iovec segments[LIMIT_CHAIN_SEGMENTS]; /* readable_count, then writable_count */
};

/* Takes a queue into use with next_available = next_used = @base. @size must be a power of two in
 * 1..LIMIT_QUEUE_SIZE, rings aligned as 2.7 says (16, 2, 4) and wholly in guest memory.
 * Returns 0 or -EINVAL, and then the queue's size is 0. */
int virtqueue_start(struct virtqueue *queue, const struct guest_memory *memory, uint16_t size,
		    uint64_t descriptor_gpa, uint64_t available_gpa, uint64_t used_gpa,
		    uint16_t base);

/* Takes the next chain that the guest has made available. Between two publications at most
 * queue->size chains come out, whatever the guest does.
 * 1: @chain is filled; 0: none is there; -EPROTO: the ring is broken (index jump, loop, bad
 * address, too many segments, readable after writable, indirect in indirect...). */
int virtqueue_pop(struct virtqueue *queue, struct descriptor_chain *chain);

/* Gives the chain @head back with @written bytes in its writable part. Not shown to the guest until
 * virtqueue_publish. Returns 0 or -EPROTO when the used ring is gone. */
int virtqueue_push(struct virtqueue *queue, uint16_t head, uint32_t written);

/* Shows all pushed chains to the guest at once (one store of the used index, release order).
 * Returns whether the guest wants an interrupt for them (2.7.7). */
bool virtqueue_publish(struct virtqueue *queue);

/* Asks the guest not to kick (2.7.10); a hint that it may ignore. */
void virtqueue_disable_kicks(struct virtqueue *queue);

/* Asks for kicks again, then looks once more. Returns whether chains came in meanwhile, in which
 * case the caller drains again instead of waiting. */
bool virtqueue_enable_kicks(struct virtqueue *queue);

/* Copies between the chain's readable (from) or writable (to) part, from byte @offset of that part,
 * and a buffer. Returns the count of bytes copied, which is less than @length when the part ends.
 */
size_t descriptor_chain_read(const struct descriptor_chain *chain, size_t offset, void *buffer,
			     size_t length);
size_t descriptor_chain_write(const struct descriptor_chain *chain, size_t offset,
			      const void *buffer, size_t length);

/* The iovecs of bytes [offset, offset + length) of the readable or writable part, in @vector.
 * Returns their count; 0 when the range is empty, is not wholly inside the part, or would need more
 * than @capacity of them. */
unsigned int descriptor_chain_readable_iovec(const struct descriptor_chain *chain, size_t offset,
					     size_t length, struct iovec *vector,
					     unsigned int capacity);
unsigned int descriptor_chain_writable_iovec(const struct descriptor_chain *chain, size_t offset,
					     size_t length, struct iovec *vector,
					     unsigned int capacity);

#endif

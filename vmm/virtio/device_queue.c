/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/device_queue.h"

#include <assert.h>
#include <errno.h>
#include <linux/virtio_ring.h>
#include <stdbool.h>

#include "vmm/base/fd.h"

#define FEATURE_INDIRECT  (UINT64_C(1) << VIRTIO_RING_F_INDIRECT_DESC)
#define FEATURE_EVENT_IDX (UINT64_C(1) << VIRTIO_RING_F_EVENT_IDX)
static_assert(DEVICE_QUEUE_FEATURES == (FEATURE_INDIRECT | FEATURE_EVENT_IDX), "virtio 1.2, 6");

int device_queue_start_ring(struct virtqueue *ring, const struct virtio_activation *activation,
			    unsigned int index)
{
	const struct virtio_queue_setup *setup = &activation->queues[index];

	ring->size = 0;
	if (!setup->ready)
		return -EINVAL;
	ring->event_idx = activation->features & FEATURE_EVENT_IDX;
	ring->indirect = activation->features & FEATURE_INDIRECT;
	return virtqueue_start(ring, activation->memory, setup->size, setup->descriptor_gpa,
			       setup->available_gpa, setup->used_gpa, 0);
}

int device_queue_start(struct device_queue *queue, struct loop *loop,
		       const struct virtio_activation *activation, unsigned int index)
{
	queue->loop = loop;
	queue->kick_fd = activation->kick_fds[index];
	queue->interrupt_fd = activation->interrupt_fd;
	return device_queue_start_ring(&queue->ring, activation, index);
}

void device_queue_stop(struct device_queue *queue)
{
	queue->ring.size = 0;
}

int device_queue_serve(struct device_queue *queue, device_queue_handler *handler, void *context)
{
	struct descriptor_chain chain;
	int result;

	virtqueue_disable_kicks(&queue->ring);
	/* Nothing is published meanwhile, so no more than the queue's size come (virtqueue_pop). */
	while ((result = virtqueue_pop(&queue->ring, &chain)) > 0) {
		result = virtqueue_push(&queue->ring, chain.head, handler(context, &chain));
		if (result < 0)
			break;
	}
	if (virtqueue_publish(&queue->ring))
		loop_signal(queue->loop, queue->interrupt_fd);
	if (result < 0)
		return result;
	if (virtqueue_enable_kicks(&queue->ring))
		fd_signal_event(queue->kick_fd);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtqueue together with its two notifications, and the drain that all simple devices share:
 * take every chain, publish once, interrupt if the guest wants that.
 */
#ifndef MVAGENT_VIRTIO_DEVICE_QUEUE_H
#define MVAGENT_VIRTIO_DEVICE_QUEUE_H

#include <stdint.h>

#include "vmm/loop/loop.h"
#include "vmm/virtio/device.h"
#include "vmm/virtio/queue.h"

/* Ring features that these devices offer (virtio 1.2, 6): INDIRECT_DESC and EVENT_IDX. */
#define DEVICE_QUEUE_FEATURES (UINT64_C(1) << 28 | UINT64_C(1) << 29)

/* Takes queue @index of the activation into use. 0, or -EINVAL when the driver did not make it
 * ready or its set-up is bad; @ring's size is then 0. */
int device_queue_start_ring(struct virtqueue *ring, const struct virtio_activation *activation,
			    unsigned int index);

struct device_queue {
	struct virtqueue ring;
	struct loop *loop;
	int kick_fd;      /* the transport's */
	int interrupt_fd; /* the transport's */
};

/* As device_queue_start_ring; interrupts are signalled on @loop. */
int device_queue_start(struct device_queue *queue, struct loop *loop,
		       const struct virtio_activation *activation, unsigned int index);
void device_queue_stop(struct device_queue *queue);

/* Serves one request. Returns the count of bytes written to the chain. */
typedef uint32_t device_queue_handler(void *context, const struct descriptor_chain *chain);

/* Serves what is available, at most a queue's size of chains; if there are more by then, kicks the
 * queue itself so that the loop's other work has its turn. 0, or -EPROTO for a broken ring. */
int device_queue_serve(struct device_queue *queue, device_queue_handler *handler, void *context);

#endif

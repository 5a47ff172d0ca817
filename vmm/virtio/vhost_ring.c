/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vhost_ring.h"

#include <errno.h>
#include <linux/virtio_ring.h>
#include <poll.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"

/* How often a ring is drained in a row before the loop gets to serve others. */
#define ROUNDS_MAX 16

void vhost_ring_init(struct vhost_ring *ring, struct vhost_ring_context *context,
		     unsigned int index)
{
	*ring = (struct vhost_ring){
		.context = context,
		.index = index,
		.kick_fd = -1,
		.call_fd = -1,
		.error_fd = -1,
	};
}

void vhost_ring_publish(struct vhost_ring *ring)
{
	struct vhost_ring_context *context = ring->context;

	if (!virtqueue_publish(&ring->queue) || ring->call_fd < 0)
		return;
	loop_signal(context->loop, ring->call_fd);
	context->counters.interrupts++;
}

static void break_ring(struct vhost_ring *ring)
{
	ring->state = VHOST_RING_BROKEN;
	if (ring->error_fd >= 0)
		fd_signal_event(ring->error_fd);
}

/* One round: takes chains until there are none. @known: the last round ended with chains left.
 * Returns whether another round is needed. */
static bool process_round(struct vhost_ring *ring, bool known)
{
	struct vhost_ring_context *context = ring->context;
	struct virtqueue *queue = &ring->queue;
	uint16_t before = queue->next_available;
	int error;

	virtqueue_disable_kicks(queue);
	error = context->ops->process_queue(context->device, ring->index, queue);
	vhost_ring_publish(ring);
	if (error) {
		break_ring(ring);
		return false;
	}
	if (!virtqueue_enable_kicks(queue))
		return false;
	if (queue->next_available == before && known) {
		/* The device has no room for what was there before this round (what came during
		 * it, the device may just not have seen). It goes on when it has finished a
		 * batch; kicks would tell nothing new. */
		virtqueue_disable_kicks(queue);
		ring->stalled = true;
		return false;
	}
	return true;
}

void vhost_ring_process(struct vhost_ring *ring)
{
	bool again = true;

	if (ring->state != VHOST_RING_STARTED || !ring->enabled || ring->processing ||
	    ring->context->suspended)
		return;
	ring->processing = true;
	ring->stalled = false;
	for (unsigned int round = 0; again && round < ROUNDS_MAX; round++)
		again = process_round(ring, round > 0);
	ring->processing = false;
	/* The guest keeps the ring busy. Others get their turn, then the kick comes back. */
	if (again)
		fd_signal_event(ring->kick_fd);
}

/*
 * The kick is never read: a watch reports every signal of an eventfd without that, and draining
 * would need O_NONBLOCK, which is a property of the description that the front end shares. The
 * counter of an eventfd does not overflow in the life of a machine.
 */
static void on_kick(struct loop_operation *operation, int result)
{
	struct vhost_ring *ring = CONTAINER_OF(operation, struct vhost_ring, watch);
	struct vhost_ring_context *context = ring->context;

	if (result < 0) {
		if (result != -ECANCELED)
			log_errno(result, "cannot wait for kicks of queue %u", ring->index);
		return;
	}
	context->counters.kicks++;
	/* A driver may leave it to the next kick of any ring to tell of what nobody waits for; the
	 * rings before this one are of higher priority (virtio 1.2, 5.11.2: FORGET is on the
	 * first). */
	for (unsigned int i = 0; i <= ring->index; i++)
		vhost_ring_process(&context->rings[i]);
}

/* Finds the ring in guest memory and takes it into use from @base on. 0 or -EINVAL. */
static int locate(struct vhost_ring *ring, uint16_t base)
{
	const struct vhost_ring_context *context = ring->context;
	const struct vhost_ring_setup *setup = &ring->setup;
	uint64_t descriptor, available, used;

	ring->queue.size = 0;
	if (setup->size > LIMIT_QUEUE_SIZE ||
	    guest_memory_user_to_gpa(context->memory, setup->descriptor, 1, &descriptor) ||
	    guest_memory_user_to_gpa(context->memory, setup->available, 1, &available) ||
	    guest_memory_user_to_gpa(context->memory, setup->used, 1, &used))
		return -EINVAL;
	ring->queue.event_idx = context->features & (1ULL << VIRTIO_RING_F_EVENT_IDX);
	ring->queue.indirect = context->features & (1ULL << VIRTIO_RING_F_INDIRECT_DESC);
	return virtqueue_start(&ring->queue, context->memory, (uint16_t)setup->size, descriptor,
			       available, used, base);
}

/* Ends the watch, and with it the loop's use of the kick descriptor. */
static void stop_watch(struct vhost_ring *ring)
{
	loop_end(ring->context->loop, &ring->watch);
	fd_close(&ring->kick_fd);
}

int vhost_ring_set_kick(struct vhost_ring *ring, int fd)
{
	int error = 0;

	stop_watch(ring);
	if (ring->state == VHOST_RING_STOPPED)
		error = locate(ring, ring->setup.base);
	if (!error)
		error = loop_watch(ring->context->loop, &ring->watch, fd, POLLIN, on_kick);
	if (error) {
		fd_close(&fd);
		if (ring->state == VHOST_RING_STARTED)
			break_ring(ring);
		return error;
	}
	ring->kick_fd = fd;
	if (ring->state == VHOST_RING_STOPPED)
		ring->state = VHOST_RING_STARTED;
	/* A kick may have come before the descriptor did. */
	vhost_ring_process(ring);
	return 0;
}

void vhost_ring_set_call(struct vhost_ring *ring, int fd)
{
	loop_flush_signals(ring->context->loop); /* the last use of the old one */
	fd_close(&ring->call_fd);
	ring->call_fd = fd;
}

void vhost_ring_set_error(struct vhost_ring *ring, int fd)
{
	fd_close(&ring->error_fd);
	ring->error_fd = fd;
}

void vhost_ring_set_enabled(struct vhost_ring *ring, bool enabled)
{
	ring->enabled = enabled;
	vhost_ring_process(ring);
}

/* Requests in flight have guest memory in the kernel's hands; also those of a broken ring. */
static void finish_requests(struct vhost_ring *ring)
{
	const struct vhost_ring_context *context = ring->context;

	if (context->ops->drain_queue)
		context->ops->drain_queue(context->device, ring->index, &ring->queue);
	vhost_ring_publish(ring);
}

void vhost_ring_quiesce(struct vhost_ring *ring)
{
	if (ring->state != VHOST_RING_STOPPED)
		finish_requests(ring);
}

void vhost_ring_relocate(struct vhost_ring *ring)
{
	if (ring->state != VHOST_RING_STARTED)
		return;
	if (locate(ring, ring->queue.next_available))
		break_ring(ring);
}

void vhost_ring_stop(struct vhost_ring *ring)
{
	if (ring->state == VHOST_RING_STOPPED)
		return;
	ring->state = VHOST_RING_STOPPED; /* from here on nothing is taken from it */
	stop_watch(ring);
	finish_requests(ring);
	ring->setup.base = ring->queue.next_available;
	ring->queue.size = 0;
	ring->stalled = false;
}

void vhost_ring_destroy(struct vhost_ring *ring)
{
	vhost_ring_stop(ring);
	vhost_ring_set_call(ring, -1);
	vhost_ring_set_error(ring, -1);
}

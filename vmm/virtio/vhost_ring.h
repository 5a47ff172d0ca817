/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ring of a vhost-user back end: from the kick that wakes the loop to the interrupt that tells
 * the guest. The states are those of the protocol: a ring is stopped until it is given a kick
 * descriptor and until GET_VRING_BASE takes it back; it is served while it is enabled.
 */
#ifndef MVAGENT_VIRTIO_VHOST_RING_H
#define MVAGENT_VIRTIO_VHOST_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/loop/loop.h"
#include "vmm/virtio/queue.h"
#include "vmm/virtio/vhost_backend.h"

/* What all rings of a back end share. */
struct vhost_ring_context {
	const struct vhost_backend_ops *ops;
	void *device;
	struct loop *loop;
	struct vhost_ring *rings; /* all of them */
	const struct guest_memory *memory;
	uint64_t features; /* accepted by the driver */
	bool suspended;    /* guest memory is being exchanged: nothing is taken from a ring */
	struct vhost_backend_counters counters;
};

/* As told by SET_VRING_NUM, BASE and ADDR; looked at when the ring starts. */
struct vhost_ring_setup {
	uint32_t size;
	uint16_t base;
	uint64_t descriptor; /* user addresses of the front end */
	uint64_t available;
	uint64_t used;
};

enum vhost_ring_state {
	VHOST_RING_STOPPED,
	VHOST_RING_STARTED,
	VHOST_RING_BROKEN, /* the guest broke the ring: nothing is served until it is set up anew */
};

struct vhost_ring {
	struct vhost_ring_context *context;
	unsigned int index;
	enum vhost_ring_state state;
	bool enabled;
	bool processing; /* the device is taking chains right now */
	bool stalled;    /* the device left chains for want of room */
	int kick_fd;
	int call_fd;
	int error_fd;
	struct loop_operation watch;
	struct virtqueue queue;
	struct vhost_ring_setup setup;
};

void vhost_ring_init(struct vhost_ring *ring, struct vhost_ring_context *context,
		     unsigned int index);

/* Starts the ring, or gives a started one another descriptor. @fd is taken over, also on failure.
 * 0, -EINVAL when the set-up is not usable, or -errno of the loop. */
int vhost_ring_set_kick(struct vhost_ring *ring, int fd);

/* The descriptors that interrupt the guest and report a broken ring; taken over, -1 for none. */
void vhost_ring_set_call(struct vhost_ring *ring, int fd);
void vhost_ring_set_error(struct vhost_ring *ring, int fd);

/* Whether a started ring is served. */
void vhost_ring_set_enabled(struct vhost_ring *ring, bool enabled);

/* Serves what is there, if the ring is to be served now. */
void vhost_ring_process(struct vhost_ring *ring);

/* Shows what was pushed to the guest, and interrupts it if it asked for that. */
void vhost_ring_publish(struct vhost_ring *ring);

/* Stops the ring: requests in flight are finished and shown to the guest. Runs the loop. */
void vhost_ring_stop(struct vhost_ring *ring);

/* Around an exchange of guest memory, with the context suspended: finishes what is in flight, and
 * afterwards finds the ring anew. Runs the loop. */
void vhost_ring_quiesce(struct vhost_ring *ring);
void vhost_ring_relocate(struct vhost_ring *ring);

/* Stops the ring and closes its descriptors. */
void vhost_ring_destroy(struct vhost_ring *ring);

#endif

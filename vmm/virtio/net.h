/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network card without a network (virtio 1.2, 5.1): its link is up, every frame that the guest
 * sends is counted and dropped, and no frame ever comes in. There is no host end to reach. The
 * first frame of each kind is told, so that a person can see what was tried.
 */
#ifndef MVAGENT_VIRTIO_NET_H
#define MVAGENT_VIRTIO_NET_H

#include <stdint.h>

#include "vmm/loop/loop.h"
#include "vmm/virtio/device.h"
#include "vmm/wire/frame.h"

struct net_device;

struct net_counters {
	uint64_t frames;
	uint64_t bytes;  /* of Ethernet frames, without the virtio header */
	uint64_t missed; /* frames of kinds that were not told: no room, or too many at once */
};

/* Told of the first frame of a kind, on whichever thread serves the queue; at most
 * FRAME_CLASSES * LIMIT_FRAMES_OF_A_CLASS times. */
typedef void net_frame_listener(void *context, const struct frame_summary *summary);

/* 0 or -ENOMEM. Interrupts are signalled on @loop. @listener may be NULL. */
int net_device_create(struct net_device **device, struct loop *loop, net_frame_listener *listener,
		      void *context);

/* NULL is ignored. */
void net_device_destroy(struct net_device *device);

/* For virtio_mmio_create; valid as long as the device. */
const struct virtio_device_description *net_device_description(const struct net_device *device);

/* What the guest sent so far; from any thread. */
struct net_counters net_device_counters(const struct net_device *device);

#endif

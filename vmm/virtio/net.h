/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network card without a network (virtio 1.2, 5.1): its link is up, every frame that the guest
 * sends is counted and dropped, and no frame ever comes in. There is no host end to reach.
 */
#ifndef MVAGENT_VIRTIO_NET_H
#define MVAGENT_VIRTIO_NET_H

#include <stdint.h>

#include "vmm/loop/loop.h"
#include "vmm/virtio/device.h"

struct net_device;

struct net_counters {
	uint64_t frames;
	uint64_t bytes; /* of Ethernet frames, without the virtio header */
};

/* 0 or -ENOMEM. Interrupts are signalled on @loop. */
int net_device_create(struct net_device **device, struct loop *loop);

/* NULL is ignored. */
void net_device_destroy(struct net_device *device);

/* For virtio_mmio_create; valid as long as the device. */
const struct virtio_device_description *net_device_description(const struct net_device *device);

/* What the guest sent so far; from any thread. */
struct net_counters net_device_counters(const struct net_device *device);

#endif

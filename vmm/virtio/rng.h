/* SPDX-License-Identifier: Apache-2.0 */
/* The entropy device (virtio 1.2, 5.4): fills the guest's buffers with the host's random bytes. */
#ifndef MVAGENT_VIRTIO_RNG_H
#define MVAGENT_VIRTIO_RNG_H

#include "vmm/loop/loop.h"
#include "vmm/virtio/device.h"

struct rng_device;

/* 0 or -ENOMEM. Interrupts are signalled on @loop. */
int rng_device_create(struct rng_device **device, struct loop *loop);

/* NULL is ignored. */
void rng_device_destroy(struct rng_device *device);

/* For virtio_mmio_create; valid as long as the device. */
const struct virtio_device_description *rng_device_description(const struct rng_device *device);

#endif

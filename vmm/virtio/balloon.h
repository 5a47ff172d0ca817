/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The balloon device (virtio 1.2, 5.5), for one thing: free page reporting (5.5.6.7), by which the
 * guest's free pages go back to the host. The device never asks the guest for memory; a driver that
 * inflates by itself is taken at its word.
 */
#ifndef MVAGENT_VIRTIO_BALLOON_H
#define MVAGENT_VIRTIO_BALLOON_H

#include <stdint.h>

#include "vmm/loop/loop.h"
#include "vmm/virtio/device.h"

struct balloon_device;

/* @memory_fd: the memfd behind @memory, whose regions follow each other in it from offset 0 on, in
 * the order in which they were added. Both stay the caller's. Interrupts are signalled on @loop.
 * 0 or -ENOMEM. */
int balloon_device_create(struct balloon_device **device, struct loop *loop,
			  const struct guest_memory *memory, int memory_fd);

/* NULL is ignored. */
void balloon_device_destroy(struct balloon_device *device);

/* For virtio_mmio_create; valid as long as the device. */
const struct virtio_device_description *
balloon_device_description(const struct balloon_device *device);

#endif

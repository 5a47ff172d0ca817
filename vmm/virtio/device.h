/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a virtio transport and a virtio device say to each other. A device knows its queues and its
 * loop; it never knows KVM, and the transport never knows what the device does.
 *
 * Threads: register writes arrive on vCPU threads, queues are served on the loop thread. The
 * transport holds its lock around every call below, so a device needs none, unless it is also
 * called from elsewhere, as vsock is by its descriptors. On a vCPU thread (activate, reset) a
 * device must not touch the loop.
 */
#ifndef MVAGENT_VIRTIO_DEVICE_H
#define MVAGENT_VIRTIO_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/virtio/memory.h"
#include "vmm/virtio/queue.h"

/* virtio 1.2, 5: device ids */
enum virtio_device_id {
	VIRTIO_DEVICE_NET = 1,
	VIRTIO_DEVICE_BLK = 2,
	VIRTIO_DEVICE_RNG = 4,
	VIRTIO_DEVICE_BALLOON = 5,
	VIRTIO_DEVICE_VSOCK = 19,
	VIRTIO_DEVICE_FS = 26,
};

/* What the driver wrote for one queue, unchecked until the device is activated. */
struct virtio_queue_setup {
	uint16_t size;
	bool ready;
	uint64_t descriptor_gpa;
	uint64_t available_gpa;
	uint64_t used_gpa;
};

/* Handed to a device at DRIVER_OK. Everything stays the transport's. */
struct virtio_activation {
	uint64_t features; /* those the driver accepted: a subset of those offered */
	const struct guest_memory *memory;
	const struct virtio_queue_setup *queues; /* queue_count entries */
	const int *kick_fds;                     /* eventfd per queue: guest to device */
	int interrupt_fd;                        /* eventfd: device to guest, all queues */
	/* eventfd: a queue that is served elsewhere is broken (DEVICE_NEEDS_RESET); -1 for devices
	 * with process_queue */
	int error_fd;
};

struct virtio_device_ops {
	/* DRIVER_OK (3.1.1 step 8). Returns 0, or a negative errno when the driver's set-up is not
	 * usable: the transport then sets DEVICE_NEEDS_RESET. */
	int (*activate)(void *device, const struct virtio_activation *activation);
	/* The driver wrote 0 to Status (2.4) after DRIVER_OK: stop using the queues, forget all;
	 * also what an activation that failed may have begun. Also called before the end. */
	void (*reset)(void *device);
	/* The driver kicked queue @index: serve all that is there. NULL for devices that take the
	 * kick fd themselves (vhost-user). Returns 0, or -EPROTO for a broken ring:
	 * DEVICE_NEEDS_RESET. */
	int (*process_queue)(void *device, unsigned int index);
};

/* What never changes about a device. */
struct virtio_device_description {
	const struct virtio_device_ops *ops;
	void *device; /* given back to the ops */
	enum virtio_device_id id;
	uint64_t features; /* offered; the transport adds VIRTIO_F_VERSION_1 */
	unsigned int queue_count;
	uint16_t queue_size; /* QueueNumMax of every queue */
	const void *config;  /* device configuration space (from 0x100), copied; never changes */
	uint32_t config_size;
};

#endif

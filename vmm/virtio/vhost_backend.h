/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The back end of vhost-user: what makes a device process out of request code. It answers the front
 * end's messages, maps guest memory, waits for kicks on the loop, and hands ready queues to the
 * device.
 */
#ifndef MVAGENT_VIRTIO_VHOST_BACKEND_H
#define MVAGENT_VIRTIO_VHOST_BACKEND_H

#include <stdint.h>

#include "vmm/loop/loop.h"
#include "vmm/virtio/queue.h"

struct vhost_backend;

struct vhost_backend_ops {
	/* Queue @index has (or may have) chains: pop until none is left, push what is done. What
	 * was pushed is published when this returns, and it is called again while more comes in. A
	 * device without room for more may leave chains in the queue: it is called again after the
	 * next vhost_backend_finish_batch of any queue. Returns 0 or -EPROTO: the ring is broken,
	 * the queue is stopped until set up anew. */
	int (*process_queue)(void *device, unsigned int index, struct virtqueue *queue);
	/* Queue @index is about to stop, or guest memory is about to go: finish what is in flight
	 * (loop_run_once) and push it. May be NULL for a device that has nothing in flight between
	 * two calls. */
	void (*drain_queue)(void *device, unsigned int index, struct virtqueue *queue);
	/* Features were accepted by the driver. May be NULL. */
	void (*set_features)(void *device, uint64_t features);
};

struct vhost_backend_description {
	const struct vhost_backend_ops *ops;
	void *device;
	uint64_t features; /* virtio features offered, device specific and ring ones */
	unsigned int queue_count;
	const void *config; /* device configuration space, or NULL; copied */
	uint32_t config_size;
};

/* Serves one front end on the connected @socket_fd (taken over, also on failure). The loop stops
 * with 0 when the front end hangs up and with -errno when it breaks the protocol. Uses 1 +
 * queue_count operations of the loop, which must outlive the back end. 0 or -errno. */
int vhost_backend_create(struct vhost_backend **backend,
			 const struct vhost_backend_description *description, struct loop *loop,
			 int socket_fd);
void vhost_backend_destroy(struct vhost_backend *backend);

/* Publishes what was pushed on queue @index and interrupts the guest if it asked for that: for
 * requests that finish outside process_queue. */
void vhost_backend_finish_batch(struct vhost_backend *backend, unsigned int index);

/* Counters since the start, for benchmarks and tests: kicks seen, chains are the device's to count,
 * interrupts sent. */
struct vhost_backend_counters {
	uint64_t kicks;
	uint64_t interrupts;
};
struct vhost_backend_counters vhost_backend_counters(const struct vhost_backend *backend);

/* Main's helper: listens on @path for one connection (--socket PATH, what QEMU wants) and unlinks
 * it once connected. Returns the connected fd or -errno, with the sentence printed. */
int vhost_backend_listen(const char *path);

#endif

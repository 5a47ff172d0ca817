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
	/* Queue @index has (or may have) chains: serve all of them, then
	 * vhost_backend_finish_batch. Returns 0 or -EPROTO: the ring is broken, the queue is
	 * stopped until set up anew. */
	int (*process_queue)(void *device, unsigned int index, struct virtqueue *queue);
	/* Queue @index is about to stop: finish what is in flight (loop_run_once) and push it. May
	 * be NULL. */
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

/* Serves one front end on the connected @socket_fd (taken over). The loop stops with 0 when the
 * front end hangs up and with -errno when it breaks the protocol. 0 or -errno. */
int vhost_backend_create(struct vhost_backend **backend,
			 const struct vhost_backend_description *description, struct loop *loop,
			 int socket_fd);
void vhost_backend_destroy(struct vhost_backend *backend);

/* Publishes what was pushed on queue @index and interrupts the guest if it asked for that. */
void vhost_backend_finish_batch(struct vhost_backend *backend, unsigned int index);

/* Guest memory as the front end described it last. */
const struct guest_memory *vhost_backend_memory(const struct vhost_backend *backend);

/* Counters since the start, for benchmarks and tests: kicks seen, chains are the device's to count,
 * interrupts sent. */
struct vhost_backend_counters {
	uint64_t kicks;
	uint64_t interrupts;
};
struct vhost_backend_counters vhost_backend_counters(const struct vhost_backend *backend);

/* Main's helper: the connected socket of a back end from its command line, either an inherited
 * descriptor number (--fd N) or a path to listen on for one connection (--socket PATH, what QEMU
 * wants; unlinked once connected). Returns the fd or -errno, with the sentence printed. */
int vhost_backend_listen(const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A toy vhost-user device for tests: it answers each request by copying what it can read into what
 * it can write. It does so at once, or later from a timer with few requests at a time, as a device
 * does whose I/O takes time.
 */
#ifndef MVAGENT_TESTS_VHOST_TOY_H
#define MVAGENT_TESTS_VHOST_TOY_H

#include <errno.h>
#include <linux/virtio_ring.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/virtio/vhost_backend.h"

#define TOY_QUEUES  2
#define TOY_SLOTS   4
#define TOY_FEATURE (1ULL << 5) /* a bit of the device type */
#define TOY_FEATURES \
	(TOY_FEATURE | (1ULL << VIRTIO_RING_F_INDIRECT_DESC) | (1ULL << VIRTIO_RING_F_EVENT_IDX))

struct toy_request {
	struct toy *toy;
	unsigned int queue_index;
	struct virtqueue *queue;
	bool busy;
	struct loop_operation timer;
	struct descriptor_chain chain;
};

struct toy {
	/* set by the test */
	int socket_fd;
	enum loop_backend loop_backend;
	bool deferred;
	bool flooded; /* the guest always has one chain more */
	const void *config;
	uint32_t config_size;
	/* results */
	int result;
	uint64_t features;
	uint64_t served;
	uint64_t drains;
	struct vhost_backend_counters counters;
	/* its own */
	pthread_t thread;
	struct loop *loop;
	struct vhost_backend *backend;
	struct toy_request requests[TOY_SLOTS];
};

static inline void toy_finish(struct toy *toy, struct virtqueue *queue,
			      const struct descriptor_chain *chain)
{
	static _Thread_local uint8_t buffer[65536];
	size_t length = descriptor_chain_read(chain, 0, buffer, sizeof(buffer));
	size_t written = descriptor_chain_write(chain, 0, buffer, length);

	toy->served++;
	if (virtqueue_push(queue, chain->head, (uint32_t)written) < 0)
		log_fatal("a chain could not be pushed");
}

static inline void toy_timer(struct loop_operation *operation, int result)
{
	struct toy_request *request = CONTAINER_OF(operation, struct toy_request, timer);

	if (result < 0)
		log_fatal("a timer failed");
	toy_finish(request->toy, request->queue, &request->chain);
	request->busy = false;
	vhost_backend_finish_batch(request->toy->backend, request->queue_index);
}

static inline struct toy_request *toy_free_request(struct toy *toy)
{
	for (unsigned int i = 0; i < TOY_SLOTS; i++) {
		if (!toy->requests[i].busy)
			return &toy->requests[i];
	}
	return NULL;
}

/* Plays the guest that breaks no rule and gives the device no rest. */
static inline void toy_flood(struct virtqueue *queue)
{
	uint16_t *index = guest_memory_at(queue->memory, queue->available_gpa + 2, sizeof(*index));

	*index = (uint16_t)(queue->next_available + 1);
}

/* While chains are taken, kicks are unwanted; with EVENT_IDX the flag is not used. */
static inline void toy_check_kicks(const struct virtqueue *queue)
{
	const uint16_t *flags = guest_memory_at(queue->memory, queue->used_gpa, sizeof(*flags));

	if (*flags != (queue->event_idx ? 0 : VRING_USED_F_NO_NOTIFY))
		log_fatal("kicks are asked for while chains are taken");
}

static inline int toy_process(void *device, unsigned int index, struct virtqueue *queue)
{
	struct toy *toy = device;
	struct toy_request *request;
	int result = 0;

	toy_check_kicks(queue);
	while ((request = toy_free_request(toy)) &&
	       (result = virtqueue_pop(queue, &request->chain)) == 1) {
		if (!toy->deferred) {
			toy_finish(toy, queue, &request->chain);
			continue;
		}
		request->toy = toy;
		request->queue_index = index;
		request->queue = queue;
		request->busy = true;
		if (loop_timer(toy->loop, &request->timer, 1 + toy->served % 2, toy_timer) < 0)
			log_fatal("a timer could not start");
	}
	if (__atomic_load_n(&toy->flooded, __ATOMIC_RELAXED))
		toy_flood(queue);
	return result < 0 ? result : 0;
}

static inline void toy_drain(void *device, unsigned int index, struct virtqueue *queue)
{
	struct toy *toy = device;

	(void)queue;
	toy->drains++;
	for (unsigned int i = 0; i < TOY_SLOTS; i++) {
		while (toy->requests[i].busy && toy->requests[i].queue_index == index) {
			if (loop_run_once(toy->loop, -1) < 0)
				log_fatal("the loop failed");
		}
	}
}

static inline void toy_set_features(void *device, uint64_t features)
{
	((struct toy *)device)->features = features;
}

static const struct vhost_backend_ops toy_ops = {
	.process_queue = toy_process,
	.drain_queue = toy_drain,
	.set_features = toy_set_features,
};

/* Serves until the front end hangs up. */
static inline void *toy_serve(void *argument)
{
	struct toy *toy = argument;
	const struct vhost_backend_description description = {
		.ops = &toy_ops,
		.device = toy,
		.features = TOY_FEATURES,
		.queue_count = TOY_QUEUES,
		.config = toy->config,
		.config_size = toy->config_size,
	};

	if (loop_create(&toy->loop, 64, toy->loop_backend) < 0 ||
	    vhost_backend_create(&toy->backend, &description, toy->loop, toy->socket_fd) < 0 ||
	    loop_enable(toy->loop) < 0)
		log_fatal("the toy device could not start");
	toy->result = loop_run(toy->loop);
	toy->counters = vhost_backend_counters(toy->backend);
	vhost_backend_destroy(toy->backend);
	loop_destroy(toy->loop);
	return NULL;
}

#endif

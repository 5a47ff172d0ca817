/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/rng.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "vmm/base/bytes.h"
#include "vmm/base/limits.h"
#include "vmm/virtio/device_queue.h"

#define QUEUE_SIZE 16U

struct rng_device {
	struct virtio_device_description description;
	struct loop *loop;
	struct device_queue queue;
};

/* 5.4.6: the device may fill only part of the buffer, but at least one byte; the bound keeps one
 * request from holding the loop. A signal or a short result ends the request early. */
static uint32_t fill(void *context, const struct descriptor_chain *chain)
{
	uint32_t written = 0;

	(void)context;
	for (unsigned int i = 0; i < chain->writable_count; i++) {
		const struct iovec *segment = &chain->segments[chain->readable_count + i];
		size_t length = bytes_minimum(segment->iov_len, LIMIT_RNG_REQUEST_BYTES - written);
		ssize_t result = getrandom(segment->iov_base, length, 0);

		if (result > 0)
			written += (uint32_t)result;
		if (result < (ssize_t)segment->iov_len)
			break;
	}
	return written;
}

static int rng_activate(void *opaque, const struct virtio_activation *activation)
{
	struct rng_device *device = opaque;

	return device_queue_start(&device->queue, device->loop, activation, 0);
}

static void rng_reset(void *opaque)
{
	struct rng_device *device = opaque;

	device_queue_stop(&device->queue);
}

static int rng_process_queue(void *opaque, unsigned int index)
{
	struct rng_device *device = opaque;

	(void)index;
	return device_queue_serve(&device->queue, fill, device);
}

static const struct virtio_device_ops rng_ops = {
	.activate = rng_activate,
	.reset = rng_reset,
	.process_queue = rng_process_queue,
};

int rng_device_create(struct rng_device **device, struct loop *loop)
{
	struct rng_device *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->loop = loop;
	made->description = (struct virtio_device_description){
		.ops = &rng_ops,
		.device = made,
		.id = VIRTIO_DEVICE_RNG,
		.features = DEVICE_QUEUE_FEATURES,
		.queue_count = 1,
		.queue_size = QUEUE_SIZE,
	};
	*device = made;
	return 0;
}

void rng_device_destroy(struct rng_device *device)
{
	free(device);
}

const struct virtio_device_description *rng_device_description(const struct rng_device *device)
{
	return &device->description;
}

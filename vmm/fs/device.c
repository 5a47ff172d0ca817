/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/device.h"

#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>

/* Answers are shown to the guest after each call: a request that is quick does not wait behind more
 * than these many that may be slow (fsync, large copies). */
#define CHAINS_A_CALL 32U

static int device_process_queue(void *opaque, unsigned int index, struct virtqueue *queue)
{
	struct fs_device *device = opaque;
	int result = 0;

	(void)index;
	for (unsigned int count = 0; !result && count < CHAINS_A_CALL; count++) {
		uint32_t written;

		result = virtqueue_pop(queue, &device->chain);
		if (result <= 0)
			break;
		written = fs_server_serve(device->server, &device->chain);
		result = virtqueue_push(queue, device->chain.head, written);
	}
	return result;
}

static const struct vhost_backend_ops device_ops = {
	.process_queue = device_process_queue,
};

struct vhost_backend_description fs_device_describe(struct fs_device *device,
						    struct fs_server *server)
{
	device->server = server;
	return (struct vhost_backend_description){
		.ops = &device_ops,
		.device = device,
		.features = 1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_RING_F_INDIRECT_DESC |
			    1ULL << VIRTIO_RING_F_EVENT_IDX,
		.queue_count = FS_DEVICE_QUEUES,
	};
}

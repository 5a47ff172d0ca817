/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/net.h"

#include <endian.h>
#include <errno.h>
#include <linux/virtio_net.h>
#include <stdlib.h>

#include "vmm/base/clock.h"
#include "vmm/virtio/device_queue.h"
#include "vmm/virtio/net_frame.h"

/* 5.1.2, without a control queue and multiqueue */
enum { QUEUE_RX, QUEUE_TX, QUEUE_COUNT };
#define QUEUE_SIZE 256U

/* 5.1.6: with VERSION_1 the header is always the long one. */
#define HEADER_BYTES sizeof(struct virtio_net_hdr_v1)

struct net_device {
	struct virtio_device_description description;
	struct virtio_net_config config;
	struct loop *loop;
	struct device_queue tx;
	struct net_counters counters;
	net_frame_listener *listener;
	void *context;
	struct net_frames_seen seen;
};

/* The bytes are copied once: the guest may change them meanwhile. */
static void look_at_frame(struct net_device *device, const struct descriptor_chain *chain)
{
	uint8_t bytes[NET_FRAME_BYTES];
	struct frame_summary summary;
	size_t length = descriptor_chain_read(chain, HEADER_BYTES, bytes, sizeof(bytes));

	net_frame_summarize(&summary, bytes, length);
	switch (net_frames_add(&device->seen, &summary, clock_monotonic_ns())) {
	case NET_FRAME_KNOWN:
		break;
	case NET_FRAME_NEW:
		device->listener(device->context, &summary);
		break;
	case NET_FRAME_MISSED:
		__atomic_fetch_add(&device->counters.missed, 1, __ATOMIC_RELAXED);
		break;
	}
}

static uint32_t drop_frame(void *context, const struct descriptor_chain *chain)
{
	struct net_device *device = context;

	if (chain->readable_bytes > HEADER_BYTES) {
		__atomic_fetch_add(&device->counters.frames, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&device->counters.bytes, chain->readable_bytes - HEADER_BYTES,
				   __ATOMIC_RELAXED);
		if (device->listener)
			look_at_frame(device, chain);
	}
	return 0;
}

/* The receive queue's buffers stay the guest's for ever, so nothing of it is needed but that the
 * driver need not kick: as long as nobody asks for kicks, EVENT_IDX gives one at the most. */
static int net_activate(void *opaque, const struct virtio_activation *activation)
{
	struct net_device *device = opaque;

	return device_queue_start(&device->tx, device->loop, activation, QUEUE_TX);
}

static void net_reset(void *opaque)
{
	struct net_device *device = opaque;

	device_queue_stop(&device->tx);
}

static int net_process_queue(void *opaque, unsigned int index)
{
	struct net_device *device = opaque;

	if (index != QUEUE_TX)
		return 0;
	return device_queue_serve(&device->tx, drop_frame, device);
}

static const struct virtio_device_ops net_ops = {
	.activate = net_activate,
	.reset = net_reset,
	.process_queue = net_process_queue,
};

int net_device_create(struct net_device **device, struct loop *loop, net_frame_listener *listener,
		      void *context)
{
	struct net_device *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->loop = loop;
	made->listener = listener;
	made->context = context;
	/* Locally administered, and the same in every run: it says nothing about the host. */
	made->config = (struct virtio_net_config){
		.mac = {0x02, 'm', 'v', 'a', 'g', 0x01},
		.status = htole16(VIRTIO_NET_S_LINK_UP),
	};
	made->description = (struct virtio_device_description){
		.ops = &net_ops,
		.device = made,
		.id = VIRTIO_DEVICE_NET,
		.features = DEVICE_QUEUE_FEATURES | UINT64_C(1) << VIRTIO_NET_F_MAC |
			    UINT64_C(1) << VIRTIO_NET_F_STATUS,
		.queue_count = QUEUE_COUNT,
		.queue_size = QUEUE_SIZE,
		.config = &made->config,
		.config_size = sizeof(made->config),
	};
	*device = made;
	return 0;
}

void net_device_destroy(struct net_device *device)
{
	free(device);
}

const struct virtio_device_description *net_device_description(const struct net_device *device)
{
	return &device->description;
}

struct net_counters net_device_counters(const struct net_device *device)
{
	return (struct net_counters){
		.frames = __atomic_load_n(&device->counters.frames, __ATOMIC_RELAXED),
		.bytes = __atomic_load_n(&device->counters.bytes, __ATOMIC_RELAXED),
		.missed = __atomic_load_n(&device->counters.missed, __ATOMIC_RELAXED),
	};
}

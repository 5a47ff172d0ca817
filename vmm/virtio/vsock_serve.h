/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the vsock device share: its state, and the work on its queues. */
#ifndef MVAGENT_VIRTIO_VSOCK_SERVE_H
#define MVAGENT_VIRTIO_VSOCK_SERVE_H

#include <linux/virtio_vsock.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/loop/loop.h"
#include "vmm/virtio/device.h"
#include "vmm/virtio/vsock.h"
#include "vmm/virtio/vsock_connection.h"
#include "vmm/virtio/vsock_packet.h"
#include "vmm/virtio/vsock_rx.h"

/* Resets owed to sockets that have no connection here. When there is no room for one more, packets
 * of the guest wait in its queue until it gives us buffers for these. */
#define VSOCK_REFUSALS 64U

/* Ports that were added, and behind them connections to the lender's port. */
#define VSOCK_SLOTS (LIMIT_VSOCK_PORTS + LIMIT_RELAY_CONNECTIONS)

struct vsock_port {
	struct vsock_device *device;
	struct vsock_connection connection;
	struct loop_operation watch;
	uint32_t serial; /* of the question for a descriptor */
	bool asked;      /* it was sent */
};

struct vsock_device {
	/* Guards all below: the transport calls from vCPU threads, the ports from the loop. */
	pthread_mutex_t lock;
	struct virtio_device_description description;
	struct virtio_vsock_config config;
	struct loop *loop;
	int wake_fd; /* has the loop's thread look at the device once more */
	struct loop_operation wake_watch;

	bool active;
	bool broken; /* a ring broke the rules; waits for the reset */
	int interrupt_fd;
	int kick_fd; /* of the transmit queue: how the transport hears of a broken ring */
	struct vsock_rx rx;
	struct virtqueue tx;
	unsigned int refusal_count;
	struct vsock_header refusals[VSOCK_REFUSALS];
	unsigned int turn;   /* the port that is served first */
	unsigned int in_use; /* ports from here on are not */
	struct vsock_port ports[VSOCK_SLOTS];

	int lender_fd; /* -1: there is none */
	uint32_t lender_port;
	struct loop_operation lender_watch;
	bool behind; /* some connection was not asked for yet: the socket was full */
};

/* All of these with the device's lock held. */

/* The connection of @host_port, or NULL. */
struct vsock_connection *vsock_find_connection(struct vsock_device *device, uint32_t host_port);

/* All the work there is: packets of the guest, packets for it, descriptors to close. On the loop's
 * thread. Returns 0, or -EPROTO when a ring is broken, from then on until the reset. */
int vsock_serve(struct vsock_device *device);

/* The same when the transport does not ask: it learns of a broken ring when it next does. */
void vsock_serve_by_itself(struct vsock_device *device);

/* The callback of every port's watch; takes the lock itself. */
loop_callback vsock_port_polled;

/* The guest is gone, or its queues are: what it sent before still goes to the ports. */
void vsock_forget_guest(struct vsock_device *device);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vsock.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "vmm/base/bytes.h"
#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/virtio/device_queue.h"
#include "vmm/virtio/vsock_serve.h"

/* virtio 1.2, 5.10.2 */
enum { QUEUE_RX, QUEUE_TX, QUEUE_EVENT, QUEUE_COUNT };
#define QUEUE_SIZE 128U

void vsock_serve_by_itself(struct vsock_device *device)
{
	if (vsock_serve(device) < 0)
		fd_signal_event(device->kick_fd);
}

void vsock_port_polled(struct loop_operation *operation, int result)
{
	struct vsock_port *port = CONTAINER_OF(operation, struct vsock_port, watch);
	struct vsock_device *device = port->device;

	pthread_mutex_lock(&device->lock);
	if (result >= 0) {
		vsock_connection_poll(&port->connection, (uint32_t)result);
	} else if (result != -ECANCELED) {
		log_errno(result, "cannot watch the descriptor of vsock port %u",
			  port->connection.host_port);
		vsock_connection_abandon(&port->connection);
	}
	vsock_serve_by_itself(device);
	pthread_mutex_unlock(&device->lock);
}

static void woken(struct loop_operation *operation, int result)
{
	struct vsock_device *device = CONTAINER_OF(operation, struct vsock_device, wake_watch);

	if (result < 0) {
		if (result != -ECANCELED)
			log_errno(result, "cannot watch the vsock device's own eventfd");
		return;
	}
	pthread_mutex_lock(&device->lock);
	vsock_serve_by_itself(device);
	pthread_mutex_unlock(&device->lock);
}

/* The event queue is never used: its only event tells of a migration (5.10.6.7). */
static int vsock_activate(void *opaque, const struct virtio_activation *activation)
{
	struct vsock_device *device = opaque;
	int result;

	pthread_mutex_lock(&device->lock);
	device->interrupt_fd = activation->interrupt_fd;
	device->kick_fd = activation->kick_fds[QUEUE_TX];
	result = device_queue_start_ring(&device->rx.queue, activation, QUEUE_RX);
	if (result == 0)
		result = device_queue_start_ring(&device->tx, activation, QUEUE_TX);
	device->active = result == 0;
	pthread_mutex_unlock(&device->lock);
	return result;
}

/* On a vCPU's thread: the descriptors are left to the loop's. */
static void vsock_reset(void *opaque)
{
	struct vsock_device *device = opaque;

	pthread_mutex_lock(&device->lock);
	vsock_forget_guest(device);
	device->active = false;
	device->broken = false;
	pthread_mutex_unlock(&device->lock);
	fd_signal_event(device->wake_fd);
}

static int vsock_process_queue(void *opaque, unsigned int index)
{
	struct vsock_device *device = opaque;
	int result;

	if (index == QUEUE_EVENT)
		return 0;
	pthread_mutex_lock(&device->lock);
	result = vsock_serve(device);
	pthread_mutex_unlock(&device->lock);
	return result;
}

static const struct virtio_device_ops vsock_ops = {
	.activate = vsock_activate,
	.reset = vsock_reset,
	.process_queue = vsock_process_queue,
};

int vsock_device_create(struct vsock_device **device, struct loop *loop, uint32_t guest_cid)
{
	struct vsock_device *made = calloc(1, sizeof(*made));
	int result;

	if (!made)
		return -ENOMEM;
	pthread_mutex_init(&made->lock, NULL);
	made->loop = loop;
	made->rx.guest_cid = guest_cid;
	made->config.guest_cid = htole64(guest_cid);
	made->description = (struct virtio_device_description){
		.ops = &vsock_ops,
		.device = made,
		.id = VIRTIO_DEVICE_VSOCK,
		.features = DEVICE_QUEUE_FEATURES,
		.queue_count = QUEUE_COUNT,
		.queue_size = QUEUE_SIZE,
		.config = &made->config,
		.config_size = sizeof(made->config),
	};
	for (unsigned int i = 0; i < VSOCK_SLOTS; i++) {
		made->ports[i].device = made;
		made->ports[i].connection.fd = -1;
	}
	made->in_use = LIMIT_VSOCK_PORTS;
	made->lender_fd = -1;
	made->wake_fd = fd_create_event();
	result = made->wake_fd;
	if (result >= 0)
		result = loop_watch(loop, &made->wake_watch, made->wake_fd, POLLIN, woken);
	if (result < 0) {
		vsock_device_destroy(made);
		return result;
	}
	*device = made;
	return 0;
}

void vsock_device_destroy(struct vsock_device *device)
{
	if (!device)
		return;
	for (unsigned int i = 0; i < VSOCK_SLOTS; i++) {
		struct vsock_port *port = &device->ports[i];

		loop_end(device->loop, &port->watch);
		if (port->connection.fd >= 0)
			vsock_connection_hang_up(&port->connection);
		fd_close(&port->connection.fd);
	}
	loop_end(device->loop, &device->lender_watch);
	fd_close(&device->lender_fd);
	loop_end(device->loop, &device->wake_watch);
	fd_close(&device->wake_fd);
	pthread_mutex_destroy(&device->lock);
	free(device);
}

static struct vsock_port *unused_port(struct vsock_device *device)
{
	for (unsigned int i = 0; i < LIMIT_VSOCK_PORTS; i++) {
		if (device->ports[i].connection.state == VSOCK_UNUSED)
			return &device->ports[i];
	}
	return NULL;
}

int vsock_device_add_port(struct vsock_device *device, uint32_t port, int fd)
{
	struct vsock_port *added = unused_port(device);
	socklen_t length = sizeof(int);
	int type;
	int result;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) < 0)
		return -errno;
	if (type != SOCK_STREAM)
		return -EINVAL;
	if (vsock_find_connection(device, port))
		return -EEXIST;
	if (!added)
		return -ENOSPC;
	result = loop_watch(device->loop, &added->watch, fd, POLLIN | POLLOUT | POLLRDHUP,
			    vsock_port_polled);
	if (result < 0)
		return result;
	added->connection = (struct vsock_connection){
		.state = VSOCK_EXPECTED,
		.host_port = port,
		.fd = fd,
		.backlog.size = LIMIT_VSOCK_BUFFER_BYTES,
	};
	return 0;
}

const struct virtio_device_description *vsock_device_description(const struct vsock_device *device)
{
	return &device->description;
}

/* Serves the queues once; returns whether bytes of the guest are still on their way. */
static bool is_busy(struct vsock_device *device)
{
	bool busy = false;

	pthread_mutex_lock(&device->lock);
	vsock_serve_by_itself(device);
	for (unsigned int i = 0; i < device->in_use; i++)
		busy |= device->ports[i].connection.backlog.count > 0;
	pthread_mutex_unlock(&device->lock);
	return busy;
}

int vsock_device_finish(struct vsock_device *device, unsigned int milliseconds)
{
	struct patience patience = patience_begin(milliseconds);

	while (is_busy(device)) {
		int result, slice = patience_slice_ms(&patience);

		if (!slice)
			return -ETIMEDOUT;
		result = loop_run_once(device->loop, slice);
		if (result < 0)
			return result;
	}
	return 0;
}

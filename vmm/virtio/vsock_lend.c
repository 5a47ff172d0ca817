/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vsock_lend.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/wire/lend.h"

bool vsock_is_lent(const struct vsock_device *device, const struct vsock_header *header)
{
	return device->lender_fd >= 0 && header->destination_port == device->lender_port;
}

struct vsock_connection *vsock_find_lent(struct vsock_device *device, uint32_t guest_port)
{
	struct vsock_connection *found = NULL;

	for (unsigned int i = LIMIT_VSOCK_PORTS; i < device->in_use; i++) {
		struct vsock_connection *connection = &device->ports[i].connection;

		if (connection->state == VSOCK_UNUSED || connection->guest_port != guest_port)
			continue;
		found = connection;
		if (connection->state == VSOCK_ASKED || connection->state == VSOCK_OPEN)
			break;
	}
	return found;
}

/* It ends before it began, and the guest is told. */
static void refuse(struct vsock_connection *connection)
{
	connection->state = VSOCK_CLOSED;
	connection->owes_reset = true;
}

static void ask(struct vsock_device *device, struct vsock_port *port)
{
	const struct lend_message question = {.slot = (uint32_t)(port - device->ports),
					      .serial = port->serial};

	if (send(device->lender_fd, &question, sizeof(question), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		port->asked = true;
	else if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
		device->behind = true; /* what was asked before will be answered: see below */
	else
		refuse(&port->connection);
}

static struct vsock_port *find_place(struct vsock_device *device)
{
	for (unsigned int i = LIMIT_VSOCK_PORTS; i < VSOCK_SLOTS; i++) {
		if (device->ports[i].connection.state != VSOCK_UNUSED)
			continue;
		if (i >= device->in_use)
			device->in_use = i + 1;
		return &device->ports[i];
	}
	return NULL;
}

int vsock_lend_ask(struct vsock_device *device, const struct vsock_header *request)
{
	struct vsock_connection *same = vsock_find_lent(device, request->source_port);
	struct vsock_port *port;

	if (same && same->state == VSOCK_OPEN) {
		vsock_connection_reset(same);
		return 0;
	}
	if (same && same->state == VSOCK_ASKED) {
		refuse(same);
		return 0;
	}
	port = find_place(device);
	if (!port)
		return -ENOSPC;
	port->serial++;
	port->asked = false;
	port->connection = (struct vsock_connection){
		.state = VSOCK_ASKED,
		.host_port = device->lender_port,
		.guest_port = request->source_port,
		.guest_buffer_bytes = request->buffer_bytes,
		.guest_consumed_bytes = request->forwarded_bytes,
		.fd = -1,
		.backlog.size = LIMIT_RELAY_BUFFER_BYTES,
	};
	ask(device, port);
	return 0;
}

void vsock_lend_forget(struct vsock_connection *connection, const struct vsock_header *header)
{
	refuse(connection);
	if (header->operation == VSOCK_OPERATION_RESET)
		connection->owes_reset = false;
}

void vsock_lend_forget_guest(struct vsock_connection *connection)
{
	if (connection->state == VSOCK_ASKED)
		connection->state = VSOCK_CLOSED;
	vsock_connection_forget_guest(connection);
}

void vsock_lend_reuse(struct vsock_device *device)
{
	for (unsigned int i = LIMIT_VSOCK_PORTS; i < device->in_use; i++) {
		struct vsock_port *port = &device->ports[i];

		if (port->connection.state == VSOCK_CLOSED && port->connection.fd < 0 &&
		    !port->connection.owes_reset && loop_operation_idle(&port->watch))
			port->connection.state = VSOCK_UNUSED;
	}
	while (device->in_use > LIMIT_VSOCK_PORTS &&
	       device->ports[device->in_use - 1].connection.state == VSOCK_UNUSED)
		device->in_use--;
}

/* Takes over @fd if the answer is still wanted. */
static void take_answer(struct vsock_device *device, const struct lend_message *answer, int *fd)
{
	struct vsock_port *port;
	struct vsock_header request;

	if (answer->slot < LIMIT_VSOCK_PORTS || answer->slot >= device->in_use)
		return;
	port = &device->ports[answer->slot];
	if (port->connection.state != VSOCK_ASKED || port->serial != answer->serial)
		return;
	if (*fd < 0 || loop_watch(device->loop, &port->watch, *fd, POLLIN | POLLOUT | POLLRDHUP,
				  vsock_port_polled) < 0) {
		refuse(&port->connection);
		return;
	}
	port->connection.fd = fd_take(fd);
	request = (struct vsock_header){
		.source_port = port->connection.guest_port,
		.buffer_bytes = port->connection.guest_buffer_bytes,
		.forwarded_bytes = port->connection.guest_consumed_bytes,
	};
	vsock_connection_open(&port->connection, &request);
}

/* One answer. 1, 0 when there is none now, -errno. */
static int receive_answer(struct vsock_device *device)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct lend_message answer;
	struct iovec vector = {&answer, sizeof(answer)};
	struct msghdr message = {.msg_iov = &vector,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const struct cmsghdr *header;
	FD_CLEANUP int fd = -1;
	ssize_t length = recvmsg(device->lender_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (length < 0)
		return errno == EAGAIN ? 0 : errno == EINTR ? 1 : -errno;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	if (length != sizeof(answer))
		return -ECONNRESET;
	take_answer(device, &answer, &fd);
	return 1;
}

static void ask_again(struct vsock_device *device)
{
	device->behind = false;
	for (unsigned int i = LIMIT_VSOCK_PORTS; !device->behind && i < device->in_use; i++) {
		struct vsock_port *port = &device->ports[i];

		if (port->connection.state == VSOCK_ASKED && !port->asked)
			ask(device, port);
	}
}

/* The relay is gone: the run is about to end, and the guest's connections do before. */
static void refuse_all(struct vsock_device *device)
{
	for (unsigned int i = LIMIT_VSOCK_PORTS; i < device->in_use; i++) {
		if (device->ports[i].connection.state == VSOCK_ASKED)
			refuse(&device->ports[i].connection);
	}
}

static void lender_polled(struct loop_operation *operation, int result)
{
	struct vsock_device *device = CONTAINER_OF(operation, struct vsock_device, lender_watch);
	int received = 1;

	if (result == -ECANCELED)
		return;
	pthread_mutex_lock(&device->lock);
	while (received > 0)
		received = receive_answer(device);
	if (received < 0 || result < 0)
		refuse_all(device);
	else if (device->behind)
		ask_again(device);
	vsock_serve_by_itself(device);
	pthread_mutex_unlock(&device->lock);
}

int vsock_device_set_lender(struct vsock_device *device, uint32_t port, int lender_fd)
{
	int error;

	if (device->lender_fd >= 0 || vsock_find_connection(device, port))
		return -EEXIST;
	error = loop_watch(device->loop, &device->lender_watch, lender_fd, POLLIN, lender_polled);
	if (error)
		return error;
	device->lender_fd = lender_fd;
	device->lender_port = port;
	return 0;
}

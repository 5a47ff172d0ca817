/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vhost_frontend.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/virtio/vhost_message.h"

/* How long a conversation may take: all of the messages at start, of an activation, of a reset. A
 * processor of the guest waits so long for its write of a register, and others do when they want
 * the same device; a back end that takes longer is given up, and with it the machine. */
#define PATIENCE_MS 10000U

/* What may be offered to the driver of what the back end has: the bits of the device type (2.2:
 * 0 to 23) and those of the ring that the transport and this file know how to hand on. */
#define FEATURES_OFFERED \
	(0xffffffULL | (1ULL << VIRTIO_RING_F_INDIRECT_DESC) | (1ULL << VIRTIO_RING_F_EVENT_IDX))

struct vhost_frontend {
	struct virtio_device_description device;
	int socket_fd;
	int memory_fd;
	const struct guest_memory *memory;
	uint64_t protocol_features;
	unsigned int patience_ms;
	struct patience patience; /* of the conversation at hand */
	bool started[LIMIT_DEVICE_QUEUES];
	uint8_t config[VHOST_CONFIG_MAX_BYTES];
};

/* The end of a conversation that broke off, with its sentence. It cannot be taken up again, since a
 * late answer would be taken for that to something else; and whoever watches the socket is to know
 * that the device is lost. */
static int give_up(const struct vhost_frontend *frontend, int error, const char *what)
{
	unsigned int id = (unsigned int)frontend->device.id;

	if (error == -EPIPE)
		log_error("the device process of virtio device type %u is gone (%s)", id, what);
	else if (error == -ETIMEDOUT)
		log_error(
			"the device process of virtio device type %u does not answer within %u ms "
			"(%s)",
			id, frontend->patience_ms, what);
	else
		log_errno(error, "the device process of virtio device type %u: %s", id, what);
	shutdown(frontend->socket_fd, SHUT_RDWR);
	return error;
}

/* One error for one cause: gone, or silent. */
static int plain_error(int error)
{
	if (error == -ECONNRESET)
		return -EPIPE;
	if (error == -EAGAIN || error == -EWOULDBLOCK)
		return -ETIMEDOUT;
	return error;
}

static void begin_conversation(struct vhost_frontend *frontend)
{
	frontend->patience = patience_begin(frontend->patience_ms);
}

/* Waits until something can be sent (POLLOUT) or received, and sets what is left of the time for
 * the rest of it. 0 or -errno. */
static int limit_wait(struct vhost_frontend *frontend, short events)
{
	struct pollfd ready = {.fd = frontend->socket_fd, .events = events};
	const int fd = frontend->socket_fd;
	struct timeval timeout;
	int slice, count = 0;
	uint64_t left;

	while (count <= 0) {
		slice = patience_slice_ms(&frontend->patience);
		if (!slice)
			return -ETIMEDOUT;
		count = poll(&ready, 1, slice);
		if (count < 0 && errno != EINTR)
			return -errno;
	}
	left = frontend->patience.left_ns / 1000 + 1; /* zeros would be no limit */
	timeout = (struct timeval){.tv_sec = (time_t)(left / 1000000),
				   .tv_usec = (suseconds_t)(left % 1000000)};
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
		return -errno;
	return 0;
}

static int send_message(struct vhost_frontend *frontend, struct vhost_message *message)
{
	int error = limit_wait(frontend, POLLOUT);

	message->flags |= VHOST_FLAG_VERSION;
	return error ? error : plain_error(vhost_message_send(frontend->socket_fd, message));
}

/* Receives the reply to @request into @message. 0 or -errno. */
static int receive_reply(struct vhost_frontend *frontend, uint32_t request,
			 struct vhost_message *message)
{
	int received = limit_wait(frontend, POLLIN);

	if (received < 0)
		return received;
	received = vhost_message_receive(frontend->socket_fd, message);
	if (received == 0)
		return -EPIPE;
	if (received < 0)
		return plain_error(received);
	vhost_message_close_fds(message); /* no reply that we ask for has any */
	if (message->request != request || !(message->flags & VHOST_FLAG_REPLY))
		return -EPROTO;
	return 0;
}

/* Asks for something and expects a payload of @size bytes. */
static int ask(struct vhost_frontend *frontend, struct vhost_message *message, uint32_t size)
{
	uint32_t request = message->request;
	int error = send_message(frontend, message);

	if (!error)
		error = receive_reply(frontend, request, message);
	if (!error && message->size != size)
		error = -EPROTO;
	return error;
}

static int ask_value(struct vhost_frontend *frontend, enum vhost_request request, uint64_t *value)
{
	struct vhost_message message = {.request = request};
	int error = ask(frontend, &message, sizeof(*value));

	*value = error ? 0 : message.payload.value;
	return error;
}

/* Tells something; waits until it is done and asks how it went, where the back end can say. */
static int tell(struct vhost_frontend *frontend, struct vhost_message *message)
{
	uint32_t request = message->request;
	int error;

	if (!(frontend->protocol_features & VHOST_PROTOCOL_F_REPLY_ACK))
		return send_message(frontend, message);
	message->flags = VHOST_FLAG_NEED_REPLY;
	error = send_message(frontend, message);
	if (!error)
		error = receive_reply(frontend, request, message);
	if (!error && (message->size != sizeof(message->payload.value) || message->payload.value))
		error = -EPROTO;
	return error;
}

static int tell_value(struct vhost_frontend *frontend, enum vhost_request request, uint64_t value)
{
	struct vhost_message message = {
		.request = request,
		.size = sizeof(value),
		.payload.value = value,
	};

	return tell(frontend, &message);
}

static int tell_ring(struct vhost_frontend *frontend, enum vhost_request request,
		     unsigned int index, uint32_t value)
{
	struct vhost_message message = {
		.request = request,
		.size = sizeof(message.payload.vring_state),
		.payload.vring_state = {.index = index, .value = value},
	};

	return tell(frontend, &message);
}

static int tell_ring_fd(struct vhost_frontend *frontend, enum vhost_request request,
			unsigned int index, int fd)
{
	struct vhost_message message = {
		.request = request,
		.size = sizeof(message.payload.value),
		.payload.value = index,
		.fd_count = 1,
		.fds = {fd},
	};

	return tell(frontend, &message);
}

/* The back end's own virtio device configuration space. */
static int get_config(struct vhost_frontend *frontend, uint32_t size)
{
	struct vhost_message message = {
		.request = VHOST_GET_CONFIG,
		.size = VHOST_CONFIG_HEADER_BYTES + size,
		.payload.config.size = size,
	};
	int error;

	if (!(frontend->protocol_features & VHOST_PROTOCOL_F_CONFIG))
		return -EPROTO;
	error = ask(frontend, &message, VHOST_CONFIG_HEADER_BYTES + size);
	if (!error)
		memcpy(frontend->config, message.payload.config.bytes, size);
	return error;
}

/* Agrees on protocol features. */
static int negotiate_protocol(struct vhost_frontend *frontend)
{
	const uint64_t known =
		VHOST_PROTOCOL_F_MQ | VHOST_PROTOCOL_F_REPLY_ACK | VHOST_PROTOCOL_F_CONFIG;
	uint64_t offered, queues;
	int error = ask_value(frontend, VHOST_GET_PROTOCOL_FEATURES, &offered);

	if (!error)
		error = tell_value(frontend, VHOST_SET_PROTOCOL_FEATURES, offered & known);
	if (error)
		return error;
	frontend->protocol_features = offered & known;
	if (!(offered & VHOST_PROTOCOL_F_MQ))
		return 0;
	error = ask_value(frontend, VHOST_GET_QUEUE_NUM, &queues);
	if (!error && queues < frontend->device.queue_count)
		error = -EPROTO;
	return error;
}

/* From the first message to a device that can be offered to a driver. */
static int negotiate(struct vhost_frontend *frontend,
		     const struct vhost_frontend_description *description)
{
	const uint64_t needed = VHOST_F_PROTOCOL_FEATURES | (1ULL << VIRTIO_F_VERSION_1);
	struct vhost_message owner = {.request = VHOST_SET_OWNER};
	uint64_t features;
	int error = ask_value(frontend, VHOST_GET_FEATURES, &features);

	if (error)
		return give_up(frontend, error, "asked for its features");
	if ((features & needed) != needed)
		return give_up(frontend, -EPROTO,
			       "it lacks virtio 1 or vhost-user protocol features");
	frontend->device.features = features & FEATURES_OFFERED;
	error = negotiate_protocol(frontend);
	if (error)
		return give_up(frontend, error, "agreeing on protocol features and queues");
	error = tell(frontend, &owner);
	if (error)
		return give_up(frontend, error, "taking ownership");
	if (description->config)
		memcpy(frontend->config, description->config, description->config_size);
	else if (description->config_size)
		error = get_config(frontend, description->config_size);
	return error ? give_up(frontend, error, "asked for its configuration") : 0;
}

static int send_memory_table(struct vhost_frontend *frontend)
{
	const struct guest_memory *memory = frontend->memory;
	struct vhost_message message = {
		.request = VHOST_SET_MEM_TABLE,
		.payload.memory.count = memory->count,
		.fd_count = memory->count,
	};
	uint64_t offset = 0;

	for (unsigned int i = 0; i < memory->count; i++) {
		const struct vhost_memory_region region = {
			.gpa = memory->regions[i].gpa,
			.size = memory->regions[i].size,
			.user_address = (uintptr_t)memory->regions[i].host,
			.mmap_offset = offset,
		};

		memcpy(&message.payload.memory.regions[i], &region, sizeof(region));
		message.fds[i] = frontend->memory_fd;
		offset += region.size;
	}
	message.size = (uint32_t)(VHOST_MEMORY_HEADER_BYTES +
				  memory->count * sizeof(struct vhost_memory_region));
	return tell(frontend, &message);
}

/* The addresses of a ring as the back end knows them: ours. */
static int send_ring_address(struct vhost_frontend *frontend, unsigned int index,
			     const struct virtio_queue_setup *setup)
{
	struct vhost_message message = {
		.request = VHOST_SET_VRING_ADDR,
		.size = sizeof(message.payload.vring_address),
		.payload.vring_address.index = index,
	};

	message.payload.vring_address.descriptor =
		(uintptr_t)guest_memory_at(frontend->memory, setup->descriptor_gpa, 1);
	message.payload.vring_address.available =
		(uintptr_t)guest_memory_at(frontend->memory, setup->available_gpa, 1);
	message.payload.vring_address.used =
		(uintptr_t)guest_memory_at(frontend->memory, setup->used_gpa, 1);
	return tell(frontend, &message);
}

static int start_ring(struct vhost_frontend *frontend, const struct virtio_activation *activation,
		      unsigned int index)
{
	const struct virtio_queue_setup *setup = &activation->queues[index];
	int error;

	error = tell_ring(frontend, VHOST_SET_VRING_NUM, index, setup->size);
	if (!error)
		error = tell_ring(frontend, VHOST_SET_VRING_BASE, index, 0);
	if (!error)
		error = send_ring_address(frontend, index, setup);
	if (!error)
		error = tell_ring_fd(frontend, VHOST_SET_VRING_CALL, index,
				     activation->interrupt_fd);
	if (!error)
		error = tell_ring_fd(frontend, VHOST_SET_VRING_ERR, index, activation->error_fd);
	if (error)
		return error;
	frontend->started[index] = true; /* also when only half of the rest succeeds */
	error = tell_ring_fd(frontend, VHOST_SET_VRING_KICK, index, activation->kick_fds[index]);
	if (!error)
		error = tell_ring(frontend, VHOST_SET_VRING_ENABLE, index, 1);
	return error;
}

/* Whether the driver's set-up can be used; a back end should not have to find out. */
static bool setup_usable(const struct vhost_frontend *frontend,
			 const struct virtio_activation *activation)
{
	for (unsigned int i = 0; i < frontend->device.queue_count; i++) {
		const struct virtio_queue_setup *setup = &activation->queues[i];
		struct virtqueue trial;

		if (setup->ready &&
		    (setup->size > frontend->device.queue_size ||
		     virtqueue_start(&trial, frontend->memory, setup->size, setup->descriptor_gpa,
				     setup->available_gpa, setup->used_gpa, 0)))
			return false;
	}
	return true;
}

static int activate(void *device, const struct virtio_activation *activation)
{
	struct vhost_frontend *frontend = device;
	uint64_t features = (activation->features & frontend->device.features) |
			    (1ULL << VIRTIO_F_VERSION_1) | VHOST_F_PROTOCOL_FEATURES;
	int error;

	if (!setup_usable(frontend, activation))
		return -EINVAL;
	begin_conversation(frontend);
	error = tell_value(frontend, VHOST_SET_FEATURES, features);
	if (error)
		return give_up(frontend, error, "setting features");
	error = send_memory_table(frontend);
	if (error)
		return give_up(frontend, error, "handing over guest memory");
	for (unsigned int i = 0; i < frontend->device.queue_count && !error; i++) {
		if (activation->queues[i].ready)
			error = start_ring(frontend, activation, i);
	}
	if (error)
		return give_up(frontend, error, "starting a queue");
	/* Without acknowledgements, an answer to something later shows that all is done. */
	if (!(frontend->protocol_features & VHOST_PROTOCOL_F_REPLY_ACK))
		error = ask_value(frontend, VHOST_GET_FEATURES, &features);
	return error ? give_up(frontend, error, "waiting for its queues") : 0;
}

static int stop_ring(struct vhost_frontend *frontend, unsigned int index)
{
	struct vhost_message message = {
		.request = VHOST_GET_VRING_BASE,
		.size = sizeof(message.payload.vring_state),
		.payload.vring_state.index = index,
	};
	int error = ask(frontend, &message, sizeof(message.payload.vring_state));

	return error ? error : tell_ring(frontend, VHOST_SET_VRING_ENABLE, index, 0);
}

static void reset(void *device)
{
	struct vhost_frontend *frontend = device;
	int error = 0;

	begin_conversation(frontend);
	/* After the first failure there is nobody, or nobody sane, to talk to. */
	for (unsigned int i = 0; i < frontend->device.queue_count; i++) {
		if (frontend->started[i] && !error)
			error = stop_ring(frontend, i);
		frontend->started[i] = false;
	}
	if (error)
		give_up(frontend, error, "taking back a queue");
}

static const struct virtio_device_ops frontend_ops = {.activate = activate, .reset = reset};

static bool description_usable(const struct vhost_frontend_description *description)
{
	return description->queue_count && description->queue_count <= LIMIT_DEVICE_QUEUES &&
	       description->queue_size && description->queue_size <= LIMIT_QUEUE_SIZE &&
	       description->config_size <= VHOST_CONFIG_MAX_BYTES &&
	       description->memory->count <= VHOST_MESSAGE_MAX_REGIONS;
}

int vhost_frontend_create(struct vhost_frontend **frontend,
			  const struct vhost_frontend_description *description)
{
	int socket_fd = description->socket_fd;
	struct vhost_frontend *created = NULL;
	int error = -EINVAL;

	if (!description_usable(description))
		goto fail;
	error = -ENOMEM;
	created = calloc(1, sizeof(*created));
	if (!created)
		goto fail;
	created->device = (struct virtio_device_description){
		.ops = &frontend_ops,
		.device = created,
		.id = description->id,
		.queue_count = description->queue_count,
		.queue_size = description->queue_size,
		.config = created->config,
		.config_size = description->config_size,
	};
	created->socket_fd = socket_fd;
	created->memory_fd = description->memory_fd;
	created->memory = description->memory;
	created->patience_ms = description->patience_ms ? description->patience_ms : PATIENCE_MS;
	begin_conversation(created);
	error = negotiate(created, description);
	if (error)
		goto fail;
	*frontend = created;
	return 0;
fail:
	free(created);
	fd_close(&socket_fd);
	return error;
}

void vhost_frontend_destroy(struct vhost_frontend *frontend)
{
	if (!frontend)
		return;
	fd_close(&frontend->socket_fd);
	free(frontend);
}

const struct virtio_device_description *vhost_frontend_device(const struct vhost_frontend *frontend)
{
	return &frontend->device;
}

int vhost_frontend_socket(const struct vhost_frontend *frontend)
{
	return frontend->socket_fd;
}

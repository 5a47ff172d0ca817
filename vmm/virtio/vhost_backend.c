/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vhost_backend.h"

#include <errno.h>
#include <linux/virtio_config.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/virtio/vhost_memory.h"
#include "vmm/virtio/vhost_message.h"
#include "vmm/virtio/vhost_ring.h"

/* How long the front end may leave a reply unread. */
#define REPLY_TIMEOUT_SECONDS 10

/* What a request's handler returns besides -errno (refused). */
#define HANDLED   0
#define HAS_REPLY 1 /* the message has become the reply */

struct vhost_backend {
	struct vhost_ring_context context;
	uint64_t features; /* offered */
	uint64_t protocol_features;
	unsigned int queue_count;
	bool has_config;
	uint8_t config[VHOST_CONFIG_MAX_BYTES];
	int socket_fd;
	struct loop_operation socket_watch;
	bool receiving;
	struct vhost_memory memory;
	struct vhost_ring rings[LIMIT_DEVICE_QUEUES];
};

static uint64_t offered_protocol_features(const struct vhost_backend *backend)
{
	return VHOST_PROTOCOL_F_MQ | VHOST_PROTOCOL_F_REPLY_ACK |
	       VHOST_PROTOCOL_F_CONFIGURE_MEM_SLOTS |
	       (backend->has_config ? VHOST_PROTOCOL_F_CONFIG : 0);
}

static int reply_value(struct vhost_message *message, uint64_t value)
{
	message->payload.value = value;
	message->size = sizeof(message->payload.value);
	return HAS_REPLY;
}

static int set_features(struct vhost_backend *backend, uint64_t features)
{
	const struct vhost_ring_context *context = &backend->context;

	if (features & ~backend->features)
		return -EINVAL;
	backend->context.features = features & ~VHOST_F_PROTOCOL_FEATURES;
	if (context->ops->set_features)
		context->ops->set_features(context->device, context->features);
	/* Ring states: without the bit all rings are enabled; with it, they stay as
	 * SET_VRING_ENABLE left them, which at first is disabled. */
	if (features & VHOST_F_PROTOCOL_FEATURES)
		return HANDLED;
	for (unsigned int i = 0; i < backend->queue_count; i++)
		vhost_ring_set_enabled(&backend->rings[i], true);
	return HANDLED;
}

static int set_protocol_features(struct vhost_backend *backend, uint64_t features)
{
	if (features & ~offered_protocol_features(backend))
		return -EINVAL;
	backend->protocol_features = features;
	return HANDLED;
}

/* Before mappings go away: nothing may be in flight, and nothing new may begin. */
static void suspend_rings(struct vhost_backend *backend)
{
	backend->context.suspended = true;
	for (unsigned int i = 0; i < backend->queue_count; i++)
		vhost_ring_quiesce(&backend->rings[i]);
}

static void resume_rings(struct vhost_backend *backend)
{
	backend->context.suspended = false;
	for (unsigned int i = 0; i < backend->queue_count; i++) {
		vhost_ring_relocate(&backend->rings[i]);
		vhost_ring_process(&backend->rings[i]);
	}
}

static int set_memory_table(struct vhost_backend *backend, const struct vhost_message *message)
{
	struct vhost_memory table = {0};
	int error = 0;

	for (uint32_t i = 0; i < message->payload.memory.count && !error; i++) {
		struct vhost_memory_region region;

		memcpy(&region, &message->payload.memory.regions[i], sizeof(region));
		error = vhost_memory_add(&table, &region, message->fds[i]);
	}
	if (error) {
		vhost_memory_clear(&table);
		return error;
	}
	suspend_rings(backend);
	vhost_memory_clear(&backend->memory);
	backend->memory = table;
	resume_rings(backend);
	return HANDLED;
}

static int add_memory_region(struct vhost_backend *backend, const struct vhost_message *message)
{
	struct vhost_memory_region region;

	memcpy(&region, &message->payload.memory_region.region, sizeof(region));
	return vhost_memory_add(&backend->memory, &region, message->fds[0]);
}

static int remove_memory_region(struct vhost_backend *backend, const struct vhost_message *message)
{
	struct vhost_memory_region region;
	int result;

	memcpy(&region, &message->payload.memory_region.region, sizeof(region));
	suspend_rings(backend);
	result = vhost_memory_remove(&backend->memory, &region);
	resume_rings(backend);
	return result;
}

static int get_config(const struct vhost_backend *backend, struct vhost_message *message)
{
	uint32_t offset = message->payload.config.offset;
	uint32_t length = message->payload.config.size;

	/* A reply without payload says that it is not possible. */
	message->size = 0;
	if (backend->has_config && bytes_range_fits(offset, length, sizeof(backend->config))) {
		memcpy(message->payload.config.bytes, backend->config + offset, length);
		message->size = VHOST_CONFIG_HEADER_BYTES + length;
	}
	return HAS_REPLY;
}

static int set_ring_address(struct vhost_ring *ring, const struct vhost_message *message)
{
	if (ring->state != VHOST_RING_STOPPED)
		return -EBUSY;
	ring->setup.descriptor = message->payload.vring_address.descriptor;
	ring->setup.available = message->payload.vring_address.available;
	ring->setup.used = message->payload.vring_address.used;
	return HANDLED;
}

/* Takes the descriptor out of the message; -1 when none came. */
static int take_fd(struct vhost_message *message)
{
	return message->fd_count ? message->fds[--message->fd_count] : -1;
}

/* Requests about one ring. */
static int handle_ring(struct vhost_ring *ring, struct vhost_message *message)
{
	uint32_t value = message->payload.vring_state.value;

	/* A pipe or a socket could be full when the guest is to be told something. */
	if (message->fd_count && !fd_is_event(message->fds[0]))
		return -EINVAL;
	switch (message->request) {
	case VHOST_SET_VRING_NUM:
		if (ring->state != VHOST_RING_STOPPED)
			return -EBUSY;
		ring->setup.size = value;
		return value && value <= LIMIT_QUEUE_SIZE ? HANDLED : -EINVAL;
	case VHOST_SET_VRING_ADDR:
		return set_ring_address(ring, message);
	case VHOST_SET_VRING_BASE:
		if (ring->state != VHOST_RING_STOPPED)
			return -EBUSY;
		ring->setup.base = (uint16_t)value;
		return value <= UINT16_MAX ? HANDLED : -EINVAL;
	case VHOST_GET_VRING_BASE:
		vhost_ring_stop(ring);
		message->payload.vring_state.value = ring->setup.base;
		return HAS_REPLY;
	case VHOST_SET_VRING_KICK:
		/* Without a descriptor the ring would have to be polled; that is not offered. */
		return message->fd_count ? vhost_ring_set_kick(ring, take_fd(message))
					 : -EOPNOTSUPP;
	case VHOST_SET_VRING_CALL:
		vhost_ring_set_call(ring, take_fd(message));
		return HANDLED;
	case VHOST_SET_VRING_ERR:
		vhost_ring_set_error(ring, take_fd(message));
		return HANDLED;
	default: /* VHOST_SET_VRING_ENABLE */
		vhost_ring_set_enabled(ring, value != 0);
		return HANDLED;
	}
}

/* The ring that a request is about, or NULL. */
static struct vhost_ring *find_ring(struct vhost_backend *backend,
				    const struct vhost_message *message)
{
	uint64_t index = message->payload.vring_state.index; /* also that of vring_address */

	if (message->request == VHOST_SET_VRING_KICK || message->request == VHOST_SET_VRING_CALL ||
	    message->request == VHOST_SET_VRING_ERR)
		index = message->payload.value & VHOST_VRING_INDEX_MASK;
	return index < backend->queue_count ? &backend->rings[index] : NULL;
}

static int handle_ring_request(struct vhost_backend *backend, struct vhost_message *message)
{
	struct vhost_ring *ring = find_ring(backend, message);

	if (ring)
		return handle_ring(ring, message);
	/* GET_VRING_BASE cannot be refused: its reply has no room for that. */
	return message->request == VHOST_GET_VRING_BASE ? -EPROTO : -EINVAL;
}

/* Returns HANDLED, HAS_REPLY, or -errno: refused. */
static int handle(struct vhost_backend *backend, struct vhost_message *message)
{
	switch (message->request) {
	case VHOST_GET_FEATURES:
		return reply_value(message, backend->features);
	case VHOST_SET_FEATURES:
		return set_features(backend, message->payload.value);
	case VHOST_GET_PROTOCOL_FEATURES:
		return reply_value(message, offered_protocol_features(backend));
	case VHOST_SET_PROTOCOL_FEATURES:
		return set_protocol_features(backend, message->payload.value);
	case VHOST_SET_OWNER:
	case VHOST_RESET_OWNER: /* deprecated; the document recommends to ignore it */
		return HANDLED;
	case VHOST_GET_QUEUE_NUM:
		return reply_value(message, backend->queue_count);
	case VHOST_SET_MEM_TABLE:
		return set_memory_table(backend, message);
	case VHOST_GET_MAX_MEM_SLOTS:
		return reply_value(message, LIMIT_MEMORY_REGIONS);
	case VHOST_ADD_MEM_REG:
		return add_memory_region(backend, message);
	case VHOST_REM_MEM_REG:
		return remove_memory_region(backend, message);
	case VHOST_GET_CONFIG:
		return get_config(backend, message);
	case VHOST_SET_CONFIG:
		return -EROFS; /* no field of our devices can be written */
	case VHOST_SET_VRING_NUM:
	case VHOST_SET_VRING_ADDR:
	case VHOST_SET_VRING_BASE:
	case VHOST_GET_VRING_BASE:
	case VHOST_SET_VRING_KICK:
	case VHOST_SET_VRING_CALL:
	case VHOST_SET_VRING_ERR:
	case VHOST_SET_VRING_ENABLE:
		return handle_ring_request(backend, message);
	default:
		return -EOPNOTSUPP;
	}
}

/* Handles a message and answers it if it wants an answer. 0, or -errno when it cannot be answered
 * or makes no sense. */
static int answer(struct vhost_backend *backend, struct vhost_message *message)
{
	bool need_reply = (message->flags & VHOST_FLAG_NEED_REPLY) &&
			  (backend->protocol_features & VHOST_PROTOCOL_F_REPLY_ACK);
	int result = -EPROTO;

	if (vhost_message_valid(message))
		result = handle(backend, message);
	else
		need_reply = false;
	vhost_message_close_fds(message);
	if (result == -EPROTO)
		return log_errno(-EPROTO, "vhost-user request %u has the wrong form",
				 message->request);
	if (result < 0)
		log_warning("vhost-user request %u is refused: %s", message->request,
			    strerror(-result));
	if (result != HAS_REPLY && need_reply)
		result = reply_value(message, result < 0);
	if (result != HAS_REPLY)
		return 0;
	message->flags = VHOST_FLAG_VERSION | VHOST_FLAG_REPLY;
	return vhost_message_send(backend->socket_fd, message);
}

static bool is_readable(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return poll(&ready, 1, 0) > 0;
}

static void on_socket(struct loop_operation *operation, int result)
{
	struct vhost_backend *backend = CONTAINER_OF(operation, struct vhost_backend, socket_watch);
	struct vhost_message message;
	int error = 0;

	if (result == -ECANCELED)
		return;
	/* A request that waits for I/O runs the loop; the one below goes on with what came. */
	if (backend->receiving)
		return;
	if (result < 0)
		error = log_errno(result, "cannot wait for the vhost-user front end");
	backend->receiving = true;
	while (!error && is_readable(backend->socket_fd)) {
		int received = vhost_message_receive(backend->socket_fd, &message);

		if (received == 0 || received == -ECONNRESET) {
			loop_stop(backend->context.loop, 0); /* it hung up */
			break;
		}
		error = received < 0 ? log_errno(received, "cannot receive a vhost-user message")
				     : answer(backend, &message);
	}
	backend->receiving = false;
	if (error == -EPIPE || error == -ECONNRESET)
		error = 0; /* it hung up before it had its answer */
	else if (!error)
		return;
	loop_stop(backend->context.loop, error);
}

static void take_description(struct vhost_backend *backend,
			     const struct vhost_backend_description *description)
{
	backend->features =
		description->features | (1ULL << VIRTIO_F_VERSION_1) | VHOST_F_PROTOCOL_FEATURES;
	backend->queue_count = description->queue_count;
	backend->has_config = description->config != NULL;
	if (description->config)
		memcpy(backend->config, description->config, description->config_size);
	for (unsigned int i = 0; i < LIMIT_DEVICE_QUEUES; i++)
		vhost_ring_init(&backend->rings[i], &backend->context, i);
}

int vhost_backend_create(struct vhost_backend **backend,
			 const struct vhost_backend_description *description, struct loop *loop,
			 int socket_fd)
{
	const struct timeval timeout = {.tv_sec = REPLY_TIMEOUT_SECONDS};
	struct vhost_backend *created = NULL;
	int error = -EINVAL;

	if (description->queue_count == 0 || description->queue_count > LIMIT_DEVICE_QUEUES ||
	    description->config_size > VHOST_CONFIG_MAX_BYTES)
		goto fail;
	error = -ENOMEM;
	created = calloc(1, sizeof(*created));
	if (!created)
		goto fail;
	created->context = (struct vhost_ring_context){
		.ops = description->ops,
		.device = description->device,
		.loop = loop,
		.rings = created->rings,
		.memory = &created->memory.memory,
	};
	take_description(created, description);
	error = setsockopt(socket_fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0
			? -errno
			: 0;
	if (!error)
		error = loop_watch(loop, &created->socket_watch, socket_fd, POLLIN, on_socket);
	if (error)
		goto fail;
	created->socket_fd = socket_fd;
	*backend = created;
	return 0;
fail:
	free(created);
	fd_close(&socket_fd);
	return error;
}

void vhost_backend_destroy(struct vhost_backend *backend)
{
	if (!backend)
		return;
	backend->receiving = true; /* no further request is taken */
	for (unsigned int i = 0; i < backend->queue_count; i++)
		vhost_ring_destroy(&backend->rings[i]);
	loop_end(backend->context.loop, &backend->socket_watch);
	vhost_memory_clear(&backend->memory);
	fd_close(&backend->socket_fd);
	free(backend);
}

void vhost_backend_finish_batch(struct vhost_backend *backend, unsigned int index)
{
	vhost_ring_publish(&backend->rings[index]);
	/* Room may be shared: a request of one queue may have kept another waiting. */
	for (unsigned int i = 0; i < backend->queue_count; i++) {
		if (backend->rings[i].stalled)
			vhost_ring_process(&backend->rings[i]);
	}
}

struct vhost_backend_counters vhost_backend_counters(const struct vhost_backend *backend)
{
	return backend->context.counters;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vhost_message.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "vmm/base/clock.h"
#include "vmm/base/fd.h"

/* How long a peer may take between the first and the last byte of a message. */
#define MESSAGE_TIMEOUT_MS 10000

#define PAYLOAD_MAX_BYTES   sizeof(((struct vhost_message *)NULL)->payload)
#define VRING_ADDRESS_BYTES 40U
#define MEMORY_REGION_BYTES 40U /* ADD_MEM_REG: padding and one region */

/* The structure is the wire format: header, then payload, without a gap. */
static_assert(offsetof(struct vhost_message, payload) == VHOST_HEADER_BYTES, "header");
static_assert(sizeof(struct vhost_memory_region) == 32, "a memory region");
static_assert(sizeof(((struct vhost_message *)NULL)->payload.vring_address) == VRING_ADDRESS_BYTES,
	      "a vring address description");
static_assert(sizeof(((struct vhost_message *)NULL)->payload.memory_region) == MEMORY_REGION_BYTES,
	      "a single memory region description");

/* Takes the descriptors out of the control data of @header. Returns -EPROTO when some got lost. */
static int take_fds(struct msghdr *header, struct vhost_message *message)
{
	for (struct cmsghdr *control = CMSG_FIRSTHDR(header); control;
	     control = CMSG_NXTHDR(header, control)) {
		unsigned int count;

		if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
			continue;
		count = (unsigned int)((control->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (unsigned int i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
			if (message->fd_count == VHOST_MESSAGE_MAX_FDS) {
				fd_close(&fd);
				header->msg_flags |= MSG_CTRUNC;
				continue;
			}
			message->fds[message->fd_count++] = fd;
		}
	}
	return header->msg_flags & MSG_CTRUNC ? -EPROTO : 0;
}

/* Receives up to @length bytes and the descriptors that come with them. Returns the count, 0 at end
 * of file, or -errno. */
static ssize_t receive_some(int socket_fd, void *buffer, size_t length,
			    struct vhost_message *message)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * VHOST_MESSAGE_MAX_FDS)];
	} control;
	struct iovec vector = {.iov_base = buffer, .iov_len = length};
	struct msghdr header = {
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t count;
	int error;

	do {
		count = recvmsg(socket_fd, &header, MSG_CMSG_CLOEXEC);
	} while (count < 0 && errno == EINTR);
	if (count < 0)
		return -errno;
	error = take_fds(&header, message);
	return error ? error : count;
}

/* How long the rest of a message may take: as long as the socket waits for its beginning, if that
 * has a limit. */
static uint64_t rest_timeout_ms(int socket_fd)
{
	struct timeval timeout = {0};
	socklen_t length = sizeof(timeout);

	if (getsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, &length) < 0 ||
	    (!timeout.tv_sec && !timeout.tv_usec))
		return MESSAGE_TIMEOUT_MS;
	return (uint64_t)timeout.tv_sec * 1000 + (uint64_t)timeout.tv_usec / 1000 + 1;
}

/* Receives the rest of a message that has begun, also from a non-blocking socket. Descriptors come
 * with the first byte of what was sent, but nothing is lost if they come later. */
static int receive_rest(int socket_fd, void *buffer, size_t length, struct vhost_message *message)
{
	const uint64_t timeout = rest_timeout_ms(socket_fd);
	const uint64_t end = clock_monotonic_ns() + timeout * CLOCK_NS_PER_MS;
	char *next = buffer;

	while (length) {
		struct pollfd ready = {.fd = socket_fd, .events = POLLIN};
		ssize_t count;

		/* Byte by byte would be for ever. */
		if (clock_monotonic_ns() > end || poll(&ready, 1, (int)timeout) == 0)
			return -ETIMEDOUT;
		count = receive_some(socket_fd, next, length, message);
		if (count == -EAGAIN)
			continue;
		if (count <= 0)
			return count ? (int)count : -EPROTO;
		next += count;
		length -= (size_t)count;
	}
	return 0;
}

int vhost_message_receive(int socket_fd, struct vhost_message *message)
{
	ssize_t count;
	int error;

	message->fd_count = 0;
	count = receive_some(socket_fd, message, VHOST_HEADER_BYTES, message);
	if (count == 0)
		return 0;
	error = count < 0 ? (int)count : 0;
	if (!error)
		error = receive_rest(socket_fd, (char *)message + count,
				     VHOST_HEADER_BYTES - (size_t)count, message);
	if (!error && ((message->flags & VHOST_FLAG_VERSION_MASK) != VHOST_FLAG_VERSION ||
		       message->size > PAYLOAD_MAX_BYTES))
		error = -EPROTO;
	if (!error)
		error = receive_rest(socket_fd, &message->payload, message->size, message);
	if (error)
		vhost_message_close_fds(message);
	return error ? error : 1;
}

int vhost_message_send(int socket_fd, const struct vhost_message *message)
{
	static_assert(VHOST_MESSAGE_MAX_FDS <= FD_SEND_MAX, "all descriptors of a message go");

	return fd_send(socket_fd, message, VHOST_HEADER_BYTES + message->size, message->fds,
		       message->fd_count);
}

static bool memory_table_valid(const struct vhost_message *message)
{
	uint32_t count = message->payload.memory.count;

	return message->size >= VHOST_MEMORY_HEADER_BYTES && count <= VHOST_MESSAGE_MAX_REGIONS &&
	       message->size >=
		       VHOST_MEMORY_HEADER_BYTES + count * sizeof(struct vhost_memory_region) &&
	       message->fd_count == count;
}

/* GET_CONFIG and SET_CONFIG carry as many bytes as they say; some front ends leave them out of the
 * question. */
static bool config_valid(const struct vhost_message *message)
{
	uint32_t length = message->payload.config.size;

	if (message->fd_count || message->size < VHOST_CONFIG_HEADER_BYTES ||
	    length > VHOST_CONFIG_MAX_BYTES)
		return false;
	return message->size == VHOST_CONFIG_HEADER_BYTES + length ||
	       (message->request == VHOST_GET_CONFIG && message->size == VHOST_CONFIG_HEADER_BYTES);
}

/* A descriptor comes along unless the flag says that none does. */
static bool vring_fd_valid(const struct vhost_message *message)
{
	if (message->size != sizeof(uint64_t))
		return false;
	return message->fd_count == (message->payload.value & VHOST_VRING_NO_FD ? 0 : 1);
}

bool vhost_message_valid(const struct vhost_message *message)
{
	const bool no_fds = message->fd_count == 0;

	switch (message->request) {
	case VHOST_GET_FEATURES:
	case VHOST_SET_OWNER:
	case VHOST_RESET_OWNER:
	case VHOST_GET_PROTOCOL_FEATURES:
	case VHOST_GET_QUEUE_NUM:
	case VHOST_GET_MAX_MEM_SLOTS:
		return no_fds && message->size == 0;
	case VHOST_SET_FEATURES:
	case VHOST_SET_PROTOCOL_FEATURES:
	case VHOST_SET_VRING_NUM:
	case VHOST_SET_VRING_BASE:
	case VHOST_GET_VRING_BASE:
	case VHOST_SET_VRING_ENABLE:
		return no_fds && message->size == sizeof(uint64_t);
	case VHOST_SET_VRING_ADDR:
		return no_fds && message->size == VRING_ADDRESS_BYTES;
	case VHOST_SET_VRING_KICK:
	case VHOST_SET_VRING_CALL:
	case VHOST_SET_VRING_ERR:
		return vring_fd_valid(message);
	case VHOST_SET_MEM_TABLE:
		return memory_table_valid(message);
	case VHOST_ADD_MEM_REG:
		return message->fd_count == 1 && message->size == MEMORY_REGION_BYTES;
	case VHOST_REM_MEM_REG:
		/* Some front ends send a descriptor along; it is closed unused. */
		return message->fd_count <= 1 && message->size == MEMORY_REGION_BYTES;
	case VHOST_GET_CONFIG:
	case VHOST_SET_CONFIG:
		return config_valid(message);
	default:
		return true;
	}
}

void vhost_message_close_fds(struct vhost_message *message)
{
	while (message->fd_count)
		fd_close(&message->fds[--message->fd_count]);
}

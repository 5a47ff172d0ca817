/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/vsock_connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "vmm/base/bytes.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"

/* Copies all but the first @skip bytes of the vector to the end of the backlog, which has room. */
static void backlog_append(struct vsock_backlog *backlog, const struct iovec *vector,
			   unsigned int count, size_t skip)
{
	for (unsigned int i = 0; i < count; i++) {
		const uint8_t *from = vector[i].iov_base;
		size_t left = vector[i].iov_len;

		if (skip >= left) {
			skip -= left;
			continue;
		}
		from += skip;
		left -= skip;
		skip = 0;
		while (left) {
			uint32_t end = (backlog->first + backlog->count) % backlog->size;
			size_t piece = bytes_minimum(left, backlog->size - end);

			memcpy(backlog->bytes + end, from, piece);
			backlog->count += (uint32_t)piece;
			from += piece;
			left -= piece;
		}
	}
}

/* The bytes of the backlog as one or two pieces. */
static unsigned int backlog_vector(const struct vsock_backlog *backlog, struct iovec vector[2])
{
	size_t piece = bytes_minimum(backlog->count, backlog->size - backlog->first);

	vector[0] = (struct iovec){backlog->bytes + backlog->first, piece};
	vector[1] = (struct iovec){backlog->bytes, backlog->count - piece};
	return vector[1].iov_len ? 2 : 1;
}

static void backlog_drop(struct vsock_backlog *backlog, uint32_t count)
{
	backlog->first = (backlog->first + count) % backlog->size;
	backlog->count -= count;
}

static void backlog_free(struct vsock_backlog *backlog)
{
	free(backlog->bytes);
	*backlog = (struct vsock_backlog){.size = backlog->size};
}

/* The guest's bytes are gone from our buffer: it may send as many more. Its view of the buffer
 * (5.10.6.3) is brought up to date when half of it is out of date: it then still sees the other
 * half, so a busy sender never waits for the news. */
static void consume(struct vsock_connection *connection, uint32_t count)
{
	connection->consumed_bytes += count;
	if (connection->state == VSOCK_OPEN &&
	    connection->consumed_bytes - connection->announced_bytes >=
		    connection->backlog.size / 2)
		connection->owes_credit_update = true;
}

static void host_left(struct vsock_connection *connection)
{
	connection->host_left = true;
	consume(connection, connection->backlog.count);
	backlog_free(&connection->backlog);
}

/* Writes what the descriptor takes now. Returns the count; 0 also when its reader is gone. */
static size_t write_now(struct vsock_connection *connection, const struct iovec *vector,
			unsigned int count)
{
	const struct msghdr message = {.msg_iov = (struct iovec *)vector, .msg_iovlen = count};
	ssize_t written;

	do {
		written = sendmsg(connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (written < 0 && errno == EINTR);
	if (written >= 0)
		return (size_t)written;
	if (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM)
		host_left(connection);
	return 0;
}

/* Where every change ends: the descriptor gets what it can take, and the end that it is due. */
static void settle(struct vsock_connection *connection)
{
	struct vsock_backlog *backlog = &connection->backlog;
	struct iovec vector[2];

	if (backlog->count) {
		unsigned int pieces = backlog_vector(backlog, vector);
		uint32_t written = (uint32_t)write_now(connection, vector, pieces);

		/* A reader that left has emptied the backlog instead. */
		if (written) {
			backlog_drop(backlog, written);
			consume(connection, written);
		}
	}
	if (connection->state == VSOCK_OPEN) {
		bool host_done = connection->host_ended ||
				 (connection->guest_ended & VSOCK_SHUTDOWN_RECEIVE);
		bool guest_done =
			connection->host_left || (connection->guest_ended & VSOCK_SHUTDOWN_SEND);

		/* 5.10.6.5: the reset that says that both know it is over. Without it the guest
		 * keeps the closed socket for 8 s (VSOCK_CLOSE_TIMEOUT in Linux). */
		if (host_done && guest_done)
			vsock_connection_reset(connection);
		else if ((connection->guest_ended & VSOCK_SHUTDOWN_SEND) && !backlog->count &&
			 !connection->write_shut)
			connection->write_shut = shutdown(connection->fd, SHUT_WR) == 0;
	}
	if (connection->state == VSOCK_FLUSHING && !backlog->count)
		connection->state = VSOCK_CLOSED;
}

void vsock_connection_open(struct vsock_connection *connection, const struct vsock_header *request)
{
	connection->state = VSOCK_OPEN;
	connection->guest_port = request->source_port;
	connection->guest_buffer_bytes = request->buffer_bytes;
	connection->guest_consumed_bytes = request->forwarded_bytes;
	connection->owes_response = true;
	vsock_connection_poll(connection, POLLIN | POLLOUT);
}

/* Data of the guest goes straight from its memory to the descriptor; the backlog takes the rest. */
static void receive_data(struct vsock_connection *connection, const struct vsock_header *header,
			 const struct iovec *payload, unsigned int count)
{
	struct vsock_backlog *backlog = &connection->backlog;
	uint32_t used = connection->consumed_bytes - connection->announced_bytes + backlog->count;
	size_t written = 0;

	/* @used: of our buffer, as the guest has to count it. It is no more than the buffer. */
	if ((connection->guest_ended & VSOCK_SHUTDOWN_SEND) ||
	    header->length > backlog->size - used) {
		vsock_connection_reset(connection);
		return;
	}
	if (!header->length)
		return;
	if (!backlog->count && !connection->host_left)
		written = write_now(connection, payload, count);
	if (connection->host_left) {
		consume(connection, header->length);
		return;
	}
	consume(connection, (uint32_t)written);
	if (written == header->length)
		return;
	if (!backlog->bytes)
		backlog->bytes = malloc(backlog->size);
	if (!backlog->bytes) {
		log_error("no memory for a stream of the guest; it is cut");
		vsock_connection_reset(connection);
		return;
	}
	backlog_append(backlog, payload, count, written);
}

static void receive_shutdown(struct vsock_connection *connection, uint32_t flags)
{
	connection->guest_ended |= flags & VSOCK_SHUTDOWN_BOTH;
	if (connection->guest_ended & VSOCK_SHUTDOWN_RECEIVE)
		shutdown(connection->fd, SHUT_RD); /* whoever writes to the guest gets EPIPE */
}

void vsock_connection_receive(struct vsock_connection *connection,
			      const struct vsock_header *header, const struct iovec *payload,
			      unsigned int count)
{
	connection->guest_buffer_bytes = header->buffer_bytes;
	connection->guest_consumed_bytes = header->forwarded_bytes;
	switch (header->operation) {
	case VSOCK_OPERATION_DATA:
		receive_data(connection, header, payload, count);
		break;
	case VSOCK_OPERATION_SHUTDOWN:
		receive_shutdown(connection, header->flags);
		break;
	case VSOCK_OPERATION_CREDIT_UPDATE:
		break;
	case VSOCK_OPERATION_CREDIT_REQUEST:
		connection->owes_credit_update = true;
		break;
	case VSOCK_OPERATION_RESET:
		vsock_connection_forget_guest(connection);
		break;
	default:
		vsock_connection_reset(connection);
		break;
	}
	settle(connection);
}

void vsock_connection_poll(struct vsock_connection *connection, uint32_t events)
{
	if (events & (POLLIN | POLLRDHUP | POLLHUP | POLLERR))
		connection->readable = true;
	if (events & (POLLHUP | POLLERR)) {
		if (!connection->host_left)
			host_left(connection);
	} else if (!connection->host_left && !connection->backlog.count &&
		   !connection->write_shut) {
		/* A peer that closed its reading end makes no event of its own, only a wake-up;
		 * an empty write tells (unix_stream_sendmsg in Linux: EPIPE). */
		write_now(connection, NULL, 0);
	}
	settle(connection);
}

void vsock_connection_abandon(struct vsock_connection *connection)
{
	connection->host_ended = true;
	host_left(connection);
	settle(connection);
}

/* The guest is done with the connection: nobody will read what the host writes. */
static void leave_guest(struct vsock_connection *connection, bool tell)
{
	if (connection->state != VSOCK_OPEN)
		return;
	connection->state = VSOCK_FLUSHING;
	connection->owes_response = false;
	connection->owes_credit_update = false;
	connection->owes_credit_request = false;
	connection->owes_reset = tell;
	shutdown(connection->fd, SHUT_RD);
}

void vsock_connection_reset(struct vsock_connection *connection)
{
	leave_guest(connection, true);
	settle(connection);
}

void vsock_connection_forget_guest(struct vsock_connection *connection)
{
	leave_guest(connection, false);
	connection->owes_reset = false;
	settle(connection);
}

uint32_t vsock_connection_readable(struct vsock_connection *connection)
{
	uint32_t outstanding = connection->sent_bytes - connection->guest_consumed_bytes;

	if (connection->state != VSOCK_OPEN || connection->owes_response ||
	    connection->host_ended || !connection->readable ||
	    (connection->guest_ended & VSOCK_SHUTDOWN_RECEIVE))
		return 0;
	if (outstanding < connection->guest_buffer_bytes) {
		connection->credit_requested = false;
		return connection->guest_buffer_bytes - outstanding;
	}
	/* The guest tells by itself when it has read; ask once, in case it does not. */
	if (!connection->credit_requested)
		connection->owes_credit_request = true;
	connection->credit_requested = true;
	return 0;
}

uint32_t vsock_connection_read(struct vsock_connection *connection, const struct iovec *vector,
			       unsigned int count)
{
	struct msghdr message = {.msg_iov = (struct iovec *)vector, .msg_iovlen = count};
	ssize_t result;

	do {
		result = recvmsg(connection->fd, &message, MSG_DONTWAIT);
	} while (result < 0 && errno == EINTR);
	if (result > 0)
		return (uint32_t)result;
	connection->readable = false;
	if (result == 0 || errno != EAGAIN) {
		connection->host_ended = true;
		settle(connection);
	}
	return 0;
}

static void fill_header(struct vsock_connection *connection, struct vsock_header *header,
			enum vsock_operation operation)
{
	*header = (struct vsock_header){
		.source_port = connection->host_port,
		.destination_port = connection->guest_port,
		.type = VSOCK_TYPE_STREAM,
		.operation = (uint16_t)operation,
		.buffer_bytes = connection->backlog.size,
		.forwarded_bytes = connection->consumed_bytes,
	};
	/* Every packet carries the credit (5.10.6.3). */
	connection->announced_bytes = connection->consumed_bytes;
	connection->owes_credit_update = false;
}

void vsock_connection_make_data(struct vsock_connection *connection, struct vsock_header *header,
				uint32_t length)
{
	fill_header(connection, header, VSOCK_OPERATION_DATA);
	header->length = length;
	connection->sent_bytes += length;
}

/* VSOCK_SHUTDOWN_* that the guest does not know yet */
static uint32_t untold(const struct vsock_connection *connection)
{
	uint32_t flags = 0;

	if (connection->state != VSOCK_OPEN)
		return 0;
	if (connection->host_ended)
		flags |= VSOCK_SHUTDOWN_SEND;
	if (connection->host_left)
		flags |= VSOCK_SHUTDOWN_RECEIVE;
	return flags & ~connection->told;
}

bool vsock_connection_owes(const struct vsock_connection *connection)
{
	return connection->owes_response || connection->owes_reset ||
	       connection->owes_credit_update || connection->owes_credit_request ||
	       untold(connection);
}

void vsock_connection_make_control(struct vsock_connection *connection, struct vsock_header *header)
{
	if (connection->owes_reset) {
		fill_header(connection, header, VSOCK_OPERATION_RESET);
		connection->owes_reset = false;
	} else if (connection->owes_response) {
		fill_header(connection, header, VSOCK_OPERATION_RESPONSE);
		connection->owes_response = false;
	} else if (untold(connection)) {
		connection->told |= untold(connection);
		fill_header(connection, header, VSOCK_OPERATION_SHUTDOWN);
		header->flags = connection->told;
	} else if (connection->owes_credit_request) {
		fill_header(connection, header, VSOCK_OPERATION_CREDIT_REQUEST);
		connection->owes_credit_request = false;
	} else {
		fill_header(connection, header, VSOCK_OPERATION_CREDIT_UPDATE);
	}
}

void vsock_connection_hang_up(struct vsock_connection *connection)
{
	uint8_t unread[16384];

	backlog_free(&connection->backlog);
	shutdown(connection->fd, SHUT_RDWR);
	/* Closing a socket with bytes in it gives its peer ECONNRESET in place of the end of file.
	 * No more bytes can come, so this ends. */
	while (recv(connection->fd, unread, sizeof(unread), MSG_DONTWAIT) > 0)
		;
}

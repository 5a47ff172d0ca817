/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire.h"

int stream_write_all(int fd, const void *data, size_t length)
{
	const char *next = data;

	while (length > 0) {
		ssize_t n = write(fd, next, length);

		if (n < 0 && errno == EAGAIN) {
			/* The caller's end may be non-blocking: its open file is shared. */
			struct pollfd wait = {.fd = fd, .events = POLLOUT};

			poll(&wait, 1, -1);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		next += n;
		length -= (size_t)n;
	}
	return 0;
}

int stream_read_all(int fd, void *data, size_t length)
{
	char *next = data;

	while (length > 0) {
		ssize_t n = read(fd, next, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EPIPE;
		next += n;
		length -= (size_t)n;
	}
	return 0;
}

int stream_send(int port, const void *data, uint32_t length)
{
	int ret = stream_write_all(port, &length, sizeof(length));

	return ret < 0 ? ret : stream_write_all(port, data, length);
}

int stream_receive(int port, uint32_t limit, char **data, uint32_t *length)
{
	char *buffer;
	int ret;

	ret = stream_read_all(port, length, sizeof(*length));
	if (ret < 0)
		return ret;
	if (*length > limit)
		return -EPROTO;
	buffer = malloc((size_t)*length + 1);
	if (!buffer)
		return -ENOMEM;
	ret = stream_read_all(port, buffer, *length);
	if (ret < 0) {
		free(buffer);
		return ret;
	}
	*data = buffer;
	return 0;
}

void stream_copy_to_port(int from, int port)
{
	struct {
		uint32_t length;
		char data[LAB_CHUNK_MAX];
	} message;
	struct pollfd ready[2] = {
		{.fd = from, .events = POLLIN},
		{.fd = port, .events = POLLIN},
	};

	for (;;) {
		ssize_t n;

		if (poll(ready, 2, -1) < 0)
			continue;
		if (ready[1].revents)
			break;
		n = read(from, message.data, sizeof(message.data));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			n = 0; /* a terminal whose last user left reads as EIO */
		message.length = (uint32_t)n;
		if (stream_write_all(port, &message, sizeof(uint32_t) + (size_t)n) < 0 || n == 0)
			break;
	}
	close(from);
}

void stream_copy_from_port(int port, int to)
{
	char data[LAB_CHUNK_MAX];
	const uint32_t gone = 0;
	struct pollfd ready[2] = {
		{.fd = port, .events = POLLIN},
		{.fd = to, .events = 0}, /* POLLERR or POLLHUP: no reader is left */
	};
	uint32_t length;

	for (;;) {
		if (poll(ready, 2, -1) < 0)
			continue;
		if (to >= 0 && ready[1].revents) {
			close(to);
			ready[1].fd = to = -1;
			stream_write_all(port, &gone, sizeof(gone));
		}
		if (!ready[0].revents)
			continue;
		if (stream_read_all(port, &length, sizeof(length)) < 0 || length == 0 ||
		    length > sizeof(data) || stream_read_all(port, data, length) < 0)
			break;
		if (to >= 0 && stream_write_all(to, data, length) < 0) {
			close(to);
			ready[1].fd = to = -1;
			stream_write_all(port, &gone, sizeof(gone));
		}
	}
	if (to >= 0)
		close(to);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/stream.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmm/base/fd.h"

/* The user's descriptor may be non-blocking (whoever shares it made it so): wait, then try again.
 */
static int stream_wait(int fd, short events)
{
	struct pollfd pollfd = {.fd = fd, .events = events};

	while (poll(&pollfd, 1, -1) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static ssize_t stream_read(struct stream *stream)
{
	for (;;) {
		ssize_t count = read(stream->from, stream->buffer, sizeof(stream->buffer));

		if (count >= 0)
			return count;
		if (errno == EAGAIN && stream_wait(stream->from, POLLIN) == 0)
			continue;
		if (errno != EINTR)
			return -errno;
	}
}

static int stream_write(struct stream *stream, const uint8_t *bytes, size_t length)
{
	while (length) {
		ssize_t count = write(stream->to, bytes, length);

		if (count >= 0) {
			bytes += count;
			length -= (size_t)count;
			continue;
		}
		if (errno == EAGAIN && stream_wait(stream->to, POLLOUT) == 0)
			continue;
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static int stream_carry(struct stream *stream, size_t length)
{
	const uint8_t *bytes = stream->buffer;

	if (stream->filtered) {
		length = escape_filter_run(&stream->filter, bytes, length, stream->filtered_buffer);
		bytes = stream->filtered_buffer;
	}
	return stream_write(stream, bytes, length);
}

/* Nobody reads any more: tells the other end. What is still queued is thrown away, since a full
 * socket does not tell its writer of a shut reading end. */
static void stream_refuse(struct stream *stream)
{
	shutdown(stream->from, SHUT_RD);
	while (recv(stream->from, stream->buffer, sizeof(stream->buffer), MSG_DONTWAIT) > 0)
		;
}

static void *stream_thread(void *argument)
{
	struct stream *stream = argument;
	int error = 0;

	for (;;) {
		ssize_t count = stream_read(stream);

		if (count <= 0)
			break;
		error = stream_carry(stream, (size_t)count);
		if (error)
			break;
	}
	/* End of file is passed on; a reader that left is told to the writer in the guest. */
	if (stream->to_guest)
		shutdown(stream->to, SHUT_WR);
	else
		stream_refuse(stream);
	if (error && error != -EPIPE && !stream->to_guest)
		stream->write_error = -error;
	fd_signal_event(stream->done_fd);
	return NULL;
}

int stream_start(struct stream *stream)
{
	sigset_t all, before;
	int error;

	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&stream->thread, NULL, stream_thread, stream);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	stream->started = error == 0;
	return -error;
}

void stream_join(struct stream *stream)
{
	if (stream->started)
		pthread_join(stream->thread, NULL);
	stream->started = false;
}

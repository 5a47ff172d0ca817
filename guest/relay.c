/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/relay.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmm/base/fd.h"

/* Buffers moved in one turn, so that a signal is not kept waiting by a command that floods. */
#define TURN_BUFFERS 16

/* Edge-triggered: every change of either end is a reason to try again, and neither can spin. */
static int watch(int epoll, int fd, uint32_t tag, uint32_t events)
{
	struct epoll_event event = {
		.events = events | EPOLLRDHUP | EPOLLET,
		.data.u32 = tag,
	};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Closing alone would leave the watch of a descriptor that was duplicated. */
static void forget(const struct relay *relay, int *fd)
{
	if (*fd >= 0)
		epoll_ctl(relay->epoll, EPOLL_CTL_DEL, *fd, NULL);
	fd_close(fd);
}

int relay_open(struct relay *relay, enum relay_direction direction, int epoll, uint32_t tag,
	       int source, int sink)
{
	int error;

	relay->direction = direction;
	relay->epoll = epoll;
	relay->source = source;
	relay->sink = sink;
	relay->finished = relay->more = relay->ending = false;
	relay->start = relay->end = 0;
	error = fd_set_nonblocking(source, 1);
	if (!error)
		error = fd_set_nonblocking(sink, 1);
	if (!error)
		error = watch(epoll, source, tag, EPOLLIN);
	if (!error)
		error = watch(epoll, sink, tag + 1, EPOLLOUT);
	if (error)
		relay_abandon(relay);
	return error;
}

void relay_abandon(struct relay *relay)
{
	forget(relay, &relay->source);
	forget(relay, &relay->sink);
	relay->start = relay->end = 0;
	relay->finished = true;
	relay->more = false;
}

/* The source has ended and all of it was written. The socket to the host stays open for the other
 * half of the connection, until all is over. */
static void finish(struct relay *relay)
{
	forget(relay, &relay->source);
	if (relay->direction == RELAY_TO_HOST)
		shutdown(relay->sink, SHUT_WR);
	else
		forget(relay, &relay->sink);
	relay->finished = true;
}

/* Whether the buffer has bytes now. */
static bool fill(struct relay *relay)
{
	ssize_t count;

	do {
		count = read(relay->source, relay->buffer, sizeof(relay->buffer));
	} while (count < 0 && errno == EINTR);
	if (count > 0) {
		relay->start = 0;
		relay->end = (size_t)count;
		return true;
	}
	/* A terminal that was hung up gives EIO, a connection that broke ECONNRESET: the end. */
	if (count == 0 || errno != EAGAIN || relay->ending)
		finish(relay);
	return false;
}

/* Whether the buffer is empty now. */
static bool drain(struct relay *relay)
{
	while (relay->start < relay->end) {
		ssize_t count =
			write(relay->sink, relay->buffer + relay->start, relay->end - relay->start);

		if (count > 0) {
			relay->start += (size_t)count;
		} else if (count == 0 || errno == EAGAIN) {
			return false;
		} else if (errno != EINTR) {
			/* The reader left. Who writes to the source is to notice at once. */
			relay_abandon(relay);
			return false;
		}
	}
	return true;
}

void relay_pump(struct relay *relay)
{
	relay->more = false;
	for (int buffers = 0; buffers < TURN_BUFFERS; buffers++) {
		if (relay->finished || !drain(relay) || !fill(relay))
			return;
	}
	relay->more = true;
}

void relay_end(struct relay *relay)
{
	relay->ending = true;
	relay_pump(relay);
}

/* The host may have closed the connection, or just its half of it that is not used. Only the former
 * fails a send, also an empty one. */
static bool host_left(int socket)
{
	return send(socket, "", 0, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN &&
	       errno != EINTR;
}

void relay_handle(struct relay *relay, bool of_sink, uint32_t events)
{
	const uint32_t trouble = EPOLLERR | EPOLLHUP | EPOLLRDHUP;

	if (relay->finished)
		return;
	if (of_sink && events & trouble) {
		bool left = relay->direction == RELAY_TO_HOST ? host_left(relay->sink)
							      : (events & EPOLLERR) != 0;

		if (left) {
			relay_abandon(relay);
			return;
		}
	}
	relay_pump(relay);
}

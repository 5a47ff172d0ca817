/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/selftest_peers.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmm/base/fd.h"

#define CHUNK 65536

static bool port_is(unsigned int index, unsigned int first, unsigned int count)
{
	unsigned int port = SELFTEST_SINK_PORT + index;

	return port >= first && port < first + count;
}

void selftest_peers_init(struct selftest_peers *peers)
{
	for (unsigned int i = 0; i < SELFTEST_PORTS; i++)
		peers->ours[i] = peers->theirs[i] = -1;
}

int selftest_peers_create(struct selftest_peers *peers)
{
	for (unsigned int i = 0; i < SELFTEST_PORTS; i++) {
		int pair[2];
		int error = fd_create_socket_pair(SOCK_STREAM, pair);

		if (error)
			return error;
		peers->ours[i] = pair[0];
		peers->theirs[i] = pair[1];
		error = fd_set_nonblocking(pair[0], 1);
		if (error)
			return error;
	}
	fd_close(&peers->ours[SELFTEST_GONE_PORT - SELFTEST_SINK_PORT]);
	return 0;
}

void selftest_peers_hand_over(struct selftest_peers *peers)
{
	for (unsigned int i = 0; i < SELFTEST_PORTS; i++)
		fd_close(&peers->theirs[i]);
}

void selftest_peers_destroy(struct selftest_peers *peers)
{
	selftest_peers_hand_over(peers);
	for (unsigned int i = 0; i < SELFTEST_PORTS; i++)
		fd_close(&peers->ours[i]);
}

void selftest_peers_fill_poll(const struct selftest_peers *peers, struct pollfd *polled)
{
	for (unsigned int i = 0; i < SELFTEST_PORTS; i++) {
		polled[i] = (struct pollfd){.fd = peers->ours[i], .events = POLLIN};
		if (port_is(i, SELFTEST_FLOOD_PORT, SELFTEST_FLOOD_PORTS))
			polled[i].events = POLLOUT;
		else if (port_is(i, SELFTEST_STUCK_PORT, 1))
			polled[i].fd = -1;
	}
}

/* Reads what is there, and writes it back when @echo. An end of the stream is answered by one. */
static void peer_read(int *fd, bool echo)
{
	char bytes[CHUNK];
	ssize_t count = recv(*fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (count <= 0)
		fd_close(fd);
	else if (echo)
		send(*fd, bytes, (size_t)count, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void peer_flood(int *fd)
{
	const char bytes[CHUNK] = {0};

	if (send(*fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN &&
	    errno != EINTR)
		fd_close(fd);
}

void selftest_peers_serve(struct selftest_peers *peers, const struct pollfd *polled)
{
	for (unsigned int i = 0; i < SELFTEST_PORTS; i++) {
		if (polled[i].fd < 0 || !polled[i].revents)
			continue;
		if (port_is(i, SELFTEST_FLOOD_PORT, SELFTEST_FLOOD_PORTS))
			peer_flood(&peers->ours[i]);
		else
			peer_read(&peers->ours[i],
				  port_is(i, SELFTEST_ECHO_PORT, SELFTEST_ECHO_PORTS));
	}
}

void selftest_peers_end_stuck(struct selftest_peers *peers)
{
	fd_close(&peers->ours[SELFTEST_STUCK_PORT - SELFTEST_SINK_PORT]);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/agent_socket.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "vmm/base/fd.h"

#define BACKLOG 16

int agent_socket_open(const char *path, int epoll, uint32_t tag)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = tag};
	FD_CLEANUP int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chmod(path, 0666) < 0 || listen(fd, BACKLOG) < 0 ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return -errno;
	return fd_take(&fd);
}

void agent_socket_accept(int listener, struct bridge *bridge)
{
	int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (client >= 0)
		bridge_carry_agent(bridge, client);
}

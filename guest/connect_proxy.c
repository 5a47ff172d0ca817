/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/connect_proxy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"

#define METHOD  "CONNECT "
#define BACKLOG 128

/* [IPv6]:PORT or NAME:PORT; what a name is the host decides. 0 or -400. */
static int read_target(const char *text, size_t length, struct connect_proxy_target *target)
{
	const char *colon = memrchr(text, ':', length);
	const char *host = text, *end = colon;
	unsigned int port = 0;

	if (!colon || colon + 1 == text + length || text + length - colon > 6)
		return -400;
	for (const char *digit = colon + 1; digit < text + length; digit++) {
		if (*digit < '0' || *digit > '9')
			return -400;
		port = 10 * port + (unsigned int)(*digit - '0');
	}
	if (*host == '[') {
		if (end - host < 3 || end[-1] != ']')
			return -400;
		host++;
		end--;
	}
	if (host == end || end - host > (ptrdiff_t)RELAY_NAME_BYTES || !port || port > UINT16_MAX)
		return -400;
	memcpy(target->name, host, (size_t)(end - host));
	target->name[end - host] = '\0';
	target->port = (uint16_t)port;
	return 0;
}

int connect_proxy_read(const char *bytes, size_t length, struct connect_proxy_target *target)
{
	const size_t method = strlen(METHOD);
	const char *end = memmem(bytes, length, "\r\n\r\n", 4), *line, *space;

	if (memcmp(bytes, METHOD, bytes_minimum(length, method)) != 0)
		return -501;
	if (!end)
		return length >= CONNECT_PROXY_HEAD_BYTES ? -431 : 0;
	if (memchr(bytes, '\0', (size_t)(end - bytes)))
		return -400;
	line = memmem(bytes, length, "\r\n", 2);
	space = memchr(bytes + method, ' ', (size_t)(line - bytes) - method);
	if (!space || line - space != sizeof(" HTTP/1.1") - 1 ||
	    memcmp(space, " HTTP/1.", sizeof(" HTTP/1.") - 1) != 0 ||
	    read_target(bytes + method, (size_t)(space - bytes) - method, target) < 0)
		return -400;
	return (int)(end + 4 - bytes);
}

/* Says why, and ends it. A client that has not said all it wants has nothing else to lose. */
static void refuse(struct connect_proxy_client *client, int status)
{
	const char *reason = status == 501   ? "Not Implemented"
			     : status == 431 ? "Request Header Fields Too Large"
					     : "Bad Request";
	static const char text[] =
		"this proxy knows CONNECT alone; what is asked for by http:// needs none\n";
	char answer[256];
	int length = snprintf(answer, sizeof(answer),
			      "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: %zu\r\n"
			      "\r\n%s",
			      status, reason, sizeof(text) - 1, text);

	send(client->fd, answer, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(client->fd, SHUT_WR);
	fd_close(&client->fd);
}

/* Whatever has come. A stream of its own carries the rest. */
static void serve(struct connect_proxy *proxy, struct connect_proxy_client *client)
{
	struct connect_proxy_target target;
	ssize_t count;
	int head;

	if (client->fd < 0)
		return;
	count = recv(client->fd, client->head + client->have, sizeof(client->head) - client->have,
		     MSG_DONTWAIT);
	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (count <= 0) {
		fd_close(&client->fd);
		return;
	}
	client->have += (size_t)count;
	head = connect_proxy_read(client->head, client->have, &target);
	if (head < 0)
		refuse(client, -head);
	if (head <= 0)
		return;
	epoll_ctl(proxy->epoll, EPOLL_CTL_DEL, client->fd, NULL);
	bridge_carry_request(proxy->bridge, fd_take(&client->fd), target.name, target.port,
			     client->head + head, client->have - (size_t)head);
}

/* The one that came first goes, unless there is room. */
static struct connect_proxy_client *find_room(struct connect_proxy *proxy)
{
	struct connect_proxy_client *client;

	for (unsigned int i = 0; i < CONNECT_PROXY_CLIENTS; i++) {
		if (proxy->clients[i].fd < 0)
			return &proxy->clients[i];
	}
	client = &proxy->clients[proxy->oldest];
	proxy->oldest = (proxy->oldest + 1) % CONNECT_PROXY_CLIENTS;
	fd_close(&client->fd);
	return client;
}

static void accept_client(struct connect_proxy *proxy)
{
	int fd = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct connect_proxy_client *client;
	struct epoll_event event = {.events = EPOLLIN};

	if (fd < 0)
		return;
	client = find_room(proxy);
	client->fd = fd;
	client->have = 0;
	event.data.u32 = proxy->tag + 1 + (uint32_t)(client - proxy->clients);
	if (epoll_ctl(proxy->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		fd_close(&client->fd);
}

void connect_proxy_handle(struct connect_proxy *proxy, uint32_t tag)
{
	if (tag == 0)
		accept_client(proxy);
	else
		serve(proxy, &proxy->clients[tag - 1]);
}

int connect_proxy_open(struct connect_proxy *proxy, struct bridge *bridge,
		       const struct sockaddr_in *address, int epoll, uint32_t tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = tag};
	const int yes = 1;

	proxy->bridge = bridge;
	proxy->epoll = epoll;
	proxy->tag = tag;
	proxy->oldest = 0;
	for (unsigned int i = 0; i < CONNECT_PROXY_CLIENTS; i++)
		proxy->clients[i].fd = -1;
	proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (proxy->listener < 0)
		return -errno;
	setsockopt(proxy->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(proxy->listener, (const struct sockaddr *)address, sizeof(*address)) < 0 ||
	    listen(proxy->listener, BACKLOG) < 0 ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, proxy->listener, &event) < 0) {
		const int error = -errno;

		fd_close(&proxy->listener);
		return error;
	}
	return 0;
}

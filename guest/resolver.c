/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmm/base/fd.h"

enum { TAG_UDP, TAG_TCP, TAG_CLIENTS };

/* Questions taken in a turn: others are to have theirs. */
#define QUESTIONS_AT_ONCE 64

static int bind_socket(int type, in_port_t port)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	FD_CLEANUP int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return fd_take(&fd);
}

static int watch(const struct resolver *resolver, int fd, uint32_t tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = resolver->tag + tag};

	return epoll_ctl(resolver->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int resolver_bind(struct resolver *resolver, in_port_t port)
{
	*resolver = (struct resolver){.epoll = -1, .tcp = -1};
	for (unsigned int i = 0; i < RESOLVER_CLIENTS; i++)
		resolver->clients[i].fd = -1;
	resolver->udp = bind_socket(SOCK_DGRAM, port);
	if (resolver->udp < 0)
		return resolver->udp;
	resolver->tcp = bind_socket(SOCK_STREAM, port);
	if (resolver->tcp >= 0 && listen(resolver->tcp, (int)RESOLVER_CLIENTS) == 0)
		return 0;
	return resolver->tcp < 0 ? resolver->tcp : -errno;
}

int resolver_open(struct resolver *resolver, const struct dns_names *names, int epoll, uint32_t tag)
{
	int error;

	resolver->names = names;
	resolver->epoll = epoll;
	resolver->tag = tag;
	error = watch(resolver, resolver->udp, TAG_UDP);
	return error ? error : watch(resolver, resolver->tcp, TAG_TCP);
}

void resolver_close(struct resolver *resolver)
{
	for (unsigned int i = 0; i < RESOLVER_CLIENTS; i++)
		fd_close(&resolver->clients[i].fd);
	fd_close(&resolver->udp);
	fd_close(&resolver->tcp);
}

static void serve_udp(struct resolver *resolver)
{
	uint8_t request[512], response[DNS_RESPONSE_BYTES]; /* RFC 1035, 2.3.4 */

	for (int i = 0; i < QUESTIONS_AT_ONCE; i++) {
		struct sockaddr_in from;
		socklen_t from_length = sizeof(from);
		ssize_t length = recvfrom(resolver->udp, request, sizeof(request), MSG_DONTWAIT,
					  (struct sockaddr *)&from, &from_length);
		size_t made;

		if (length < 0 && errno != EINTR)
			return;
		if (length < 0)
			continue;
		made = dns_answer(resolver->names, request, (size_t)length, response);
		/* An answer that finds no room is lost, as by UDP any may be: it is asked again. */
		if (made)
			sendto(resolver->udp, response, made, MSG_DONTWAIT | MSG_NOSIGNAL,
			       (const struct sockaddr *)&from, from_length);
	}
}

/* All clients taken: the oldest has had its time. */
static void accept_client(struct resolver *resolver)
{
	int fd = accept4(resolver->tcp, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	unsigned int index = resolver->oldest;
	struct resolver_client *client;

	if (fd < 0)
		return;
	for (unsigned int i = 0; i < RESOLVER_CLIENTS; i++) {
		if (resolver->clients[i].fd < 0)
			index = i;
	}
	resolver->oldest = (index + 1) % RESOLVER_CLIENTS;
	client = &resolver->clients[index];
	fd_close(&client->fd);
	client->fd = fd;
	client->have = 0;
	if (watch(resolver, fd, TAG_CLIENTS + index))
		fd_close(&client->fd);
}

/* Answers the question at the start of the client's bytes, if it is complete (RFC 1035, 4.2.2: its
 * length comes first). 1, 0 when it is not, -EPROTO when the client has to go. */
static int answer_client(struct resolver *resolver, struct resolver_client *client)
{
	uint8_t response[2 + DNS_RESPONSE_BYTES];
	size_t length, made;

	if (client->have < 2)
		return 0;
	length = (size_t)(client->bytes[0] << 8 | client->bytes[1]);
	if (length + 2 > sizeof(client->bytes))
		return -EPROTO;
	if (client->have < length + 2)
		return 0;
	made = dns_answer(resolver->names, client->bytes + 2, length, response + 2);
	response[0] = (uint8_t)(made >> 8);
	response[1] = (uint8_t)made;
	/* It is small; a client that leaves no room for it does not read. */
	if (!made || send(client->fd, response, made + 2, MSG_DONTWAIT | MSG_NOSIGNAL) !=
			     (ssize_t)(made + 2))
		return -EPROTO;
	client->have -= length + 2;
	memmove(client->bytes, client->bytes + length + 2, client->have);
	return 1;
}

static void serve_client(struct resolver *resolver, struct resolver_client *client)
{
	ssize_t count;
	int result;

	if (client->fd < 0)
		return;
	count = recv(client->fd, client->bytes + client->have, sizeof(client->bytes) - client->have,
		     MSG_DONTWAIT);
	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	result = count > 0 ? 1 : -ENODATA;
	if (count > 0)
		client->have += (size_t)count;
	while (result > 0)
		result = answer_client(resolver, client);
	if (result < 0)
		fd_close(&client->fd);
}

void resolver_handle(struct resolver *resolver, uint32_t tag)
{
	if (tag == TAG_UDP)
		serve_udp(resolver);
	else if (tag == TAG_TCP)
		accept_client(resolver);
	else if (tag < RESOLVER_TAGS)
		serve_client(resolver, &resolver->clients[tag - TAG_CLIENTS]);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/ways.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/message.h"
#include "guest/vsock.h"
#include "vmm/base/fd.h"
#include "vmm/wire/session.h"

/* 127.77.0.1 and up: all of 127.0.0.0/8 is this machine, and few programs use this part. */
#define FIRST_ADDRESS 0x7f4d0001U

#define BACKLOG 128

/* The host answers at once, unless it is very busy. A program that asks waits as long. */
#define ANSWER_MS 4000

/* Reads until @decode is content. 0 or -errno. */
static int read_message(int fd, uint8_t *bytes, size_t capacity,
			int (*decode)(const uint8_t *bytes, size_t length, void *message),
			void *message)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	size_t have = 0;
	int result = 0;

	while (result == 0) {
		ssize_t count;

		if (poll(&ready, 1, ANSWER_MS) <= 0)
			return -ETIMEDOUT;
		count = read(fd, bytes + have, capacity - have);
		if (count == 0)
			return -ECONNRESET;
		if (count < 0 && errno != EINTR)
			return -errno;
		have += count > 0 ? (size_t)count : 0;
		result = decode(bytes, have, message);
	}
	return result < 0 ? result : 0;
}

static int decode_greeting(const uint8_t *bytes, size_t length, void *message)
{
	return names_decode_greeting(bytes, length, message);
}

static int decode_answer(const uint8_t *bytes, size_t length, void *message)
{
	return names_decode_answer(bytes, length, message);
}

static int listen_at(const struct sockaddr *address, socklen_t length)
{
	const int yes = 1;
	FD_CLEANUP int fd =
		socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (fd < 0 || bind(fd, address, length) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return fd_take(&fd);
}

static int add_listener(struct ways *ways, unsigned int name, const struct sockaddr *address,
			socklen_t length, uint16_t port)
{
	struct ways_listener *listener = &ways->listeners[ways->listener_count];
	struct epoll_event event = {.events = EPOLLIN,
				    .data.u32 = ways->tag + ways->listener_count};

	if (ways->listener_count == WAYS_LISTENERS)
		return -ENOSPC;
	listener->fd = listen_at(address, length);
	if (listener->fd < 0)
		return listener->fd;
	if (epoll_ctl(ways->epoll, EPOLL_CTL_ADD, listener->fd, &event) < 0) {
		fd_close(&listener->fd);
		return -errno;
	}
	listener->name = name;
	listener->port = port;
	ways->listener_count++;
	return 0;
}

/* Gives the loopback interface an address more (rtnetlink(7)). 0 or -errno. */
static int add_address(int family, const void *bytes, size_t length)
{
	struct {
		struct nlmsghdr header;
		struct ifaddrmsg message;
		struct rtattr attribute;
		uint8_t address[16];
	} request = {
		.header = {.nlmsg_type = RTM_NEWADDR,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE},
		.message = {.ifa_family = (uint8_t)family,
			    .ifa_prefixlen = (uint8_t)(8 * length),
			    .ifa_flags = IFA_F_NODAD,
			    .ifa_scope = RT_SCOPE_HOST,
			    .ifa_index = if_nametoindex("lo")},
		.attribute = {.rta_type = IFA_LOCAL, .rta_len = (uint16_t)RTA_LENGTH(length)},
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
	} answer;
	FD_CLEANUP int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	memcpy(request.address, bytes, length);
	request.header.nlmsg_len = (uint32_t)(offsetof(typeof(request), address) + length);
	if (fd < 0 || send(fd, &request, request.header.nlmsg_len, 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer))
		return -errno;
	return answer.error.error == -EEXIST ? 0 : answer.error.error;
}

/* An address that is allowed as such: programs connect to it, and find it here. */
static int add_allowed_address(struct ways *ways, const struct names_address *allowed)
{
	const int family = allowed->version == 4 ? AF_INET : AF_INET6;
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(allowed->port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(allowed->port)};
	struct ways_name *name = &ways->names[ways->name_count];
	int error;

	if (ways->name_count == WAYS_NAMES)
		return -ENOSPC;
	memcpy(&four.sin_addr, allowed->bytes, sizeof(four.sin_addr));
	memcpy(&six.sin6_addr, allowed->bytes, sizeof(six.sin6_addr));
	inet_ntop(family, allowed->bytes, name->name, sizeof(name->name));
	if (family == AF_INET ? allowed->bytes[0] != IN_LOOPBACKNET
			      : !IN6_IS_ADDR_LOOPBACK(&six.sin6_addr)) {
		error = add_address(family, allowed->bytes, family == AF_INET ? 4 : 16);
		if (error)
			return error;
	}
	error = family == AF_INET
			? add_listener(ways, ways->name_count, (const struct sockaddr *)&four,
				       sizeof(four), allowed->port)
			: add_listener(ways, ways->name_count, (const struct sockaddr *)&six,
				       sizeof(six), allowed->port);
	if (!error)
		ways->name_count++;
	return error;
}

int ways_open(struct ways *ways, struct bridge *bridge, int epoll, uint32_t tag)
{
	uint8_t bytes[NAMES_GREETING_BYTES];
	struct names_greeting greeting;
	int error;

	*ways = (struct ways){.epoll = epoll, .tag = tag, .bridge = bridge};
	ways->host = vsock_connect_begin(SESSION_PORT_NAMES);
	error = ways->host < 0 ? ways->host : vsock_connect_finish(ways->host);
	if (!error)
		error = fd_set_nonblocking(ways->host, 0);
	if (!error)
		error = read_message(ways->host, bytes, sizeof(bytes), decode_greeting, &greeting);
	if (error) {
		fd_close(&ways->host);
		return error;
	}
	for (unsigned int i = 0; i < greeting.address_count; i++) {
		error = add_allowed_address(ways, &greeting.addresses[i]);
		if (error)
			message("an address that is allowed cannot be used: errno %d", -error);
	}
	ways->wants_proxy = greeting.proxy;
	ways->wants_agent = greeting.ssh_agent;
	bridge_offer(bridge, greeting.offers);
	return 0;
}

/* Asks the host about a name. 0 or -errno. */
static int ask(struct ways *ways, const char *name, struct names_answer *answer)
{
	uint8_t question[NAMES_QUESTION_BYTES], bytes[NAMES_ANSWER_BYTES];
	size_t length = strlen(name);
	int error;

	if (ways->host < 0)
		return -ENOTCONN;
	question[0] = (uint8_t)length;
	snprintf((char *)question + 1, sizeof(question) - 1, "%s", name);
	error = fd_write_full(ways->host, question, length + 1);
	if (!error)
		error = read_message(ways->host, bytes, sizeof(bytes), decode_answer, answer);
	if (error) {
		message("names are not known any more: errno %d", -error);
		fd_close(&ways->host);
	}
	return error;
}

static struct ways_name *find_name(struct ways *ways, const char *name)
{
	for (unsigned int i = 0; i < ways->name_count; i++) {
		if (strcmp(ways->names[i].name, name) == 0)
			return &ways->names[i];
	}
	return NULL;
}

/* A name that is allowed from now on has an address and listeners. */
static struct ways_name *add_name(struct ways *ways, const char *name,
				  const struct names_answer *answer)
{
	struct ways_name *added = &ways->names[ways->name_count];
	struct sockaddr_in address = {.sin_family = AF_INET};
	bool any = false;

	if (ways->name_count == WAYS_NAMES)
		return NULL;
	snprintf(added->name, sizeof(added->name), "%s", name);
	added->address.s_addr = htonl(FIRST_ADDRESS + ways->name_count);
	address.sin_addr = added->address;
	for (unsigned int i = 0; i < answer->port_count; i++) {
		address.sin_port = htons(answer->ports[i]);
		any |= add_listener(ways, ways->name_count, (const struct sockaddr *)&address,
				    sizeof(address), answer->ports[i]) == 0;
	}
	if (!any)
		return NULL;
	ways->name_count++;
	return added;
}

bool ways_find(void *context, const char *name, struct in_addr *address)
{
	struct ways *ways = context;
	struct ways_name *found = find_name(ways, name);
	struct names_answer answer = {0};

	if (!found) {
		if (ask(ways, name, &answer) < 0 || !answer.port_count)
			return false;
		found = add_name(ways, name, &answer);
	}
	if (!found || !found->address.s_addr)
		return false;
	*address = found->address;
	return true;
}

bool ways_find_address(void *context, struct in_addr address, char name[DNS_NAME_BYTES])
{
	const struct ways *ways = context;

	for (unsigned int i = 0; i < ways->name_count; i++) {
		if (address.s_addr && ways->names[i].address.s_addr == address.s_addr) {
			memcpy(name, ways->names[i].name, DNS_NAME_BYTES);
			return true;
		}
	}
	return false;
}

void ways_accept(struct ways *ways, uint32_t tag)
{
	const struct ways_listener *listener = &ways->listeners[tag];
	int client;

	if (tag >= ways->listener_count)
		return;
	client = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (client >= 0)
		bridge_carry(ways->bridge, client, ways->names[listener->name].name,
			     listener->port);
}

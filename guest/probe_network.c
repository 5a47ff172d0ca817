/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of the network, of sockets of the host, and of what else a machine may be connected by. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/vm_sockets.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "guest/probe.h"
#include "vmm/base/fd.h"

#define NOBODY_MS   500  /* for an answer that ought not to come */
#define SOMEBODY_MS 8000 /* for one that may have to come a long way */

#define CARD "eth0"

union any_address {
	struct sockaddr plain;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* ADDRESS/PORT. Its length, or 0. */
static socklen_t parse(const char *target, union any_address *address)
{
	const char *slash = strrchr(target, '/');
	char text[INET6_ADDRSTRLEN] = "";
	uint16_t port;

	*address = (union any_address){0};
	if (!slash || (size_t)(slash - target) >= sizeof(text))
		return 0;
	memcpy(text, target, (size_t)(slash - target));
	port = htons((uint16_t)strtoul(slash + 1, NULL, 10));
	if (inet_pton(AF_INET, text, &address->in.sin_addr) == 1) {
		address->in.sin_family = AF_INET;
		address->in.sin_port = port;
		return sizeof(address->in);
	}
	if (inet_pton(AF_INET6, text, &address->in6.sin6_addr) != 1)
		return 0;
	address->in6.sin6_family = AF_INET6;
	address->in6.sin6_port = port;
	return sizeof(address->in6);
}

/* Connects within a time. 0 or -errno. */
static int connect_within(int fd, const struct sockaddr *address, socklen_t length,
			  int milliseconds)
{
	struct pollfd polled = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int error = 0;

	if (connect(fd, address, length) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	if (poll(&polled, 1, milliseconds) <= 0)
		return -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return -errno;
	return -error;
}

static int reach(const char *target, int type, int milliseconds)
{
	union any_address address;
	socklen_t length = parse(target, &address);
	FD_CLEANUP int fd = -1;

	if (!length)
		return -EINVAL;
	fd = socket(address.plain.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	return connect_within(fd, &address.plain, length, milliseconds);
}

static void try_tcp(const char *target, struct probe_answer *answer)
{
	answer->result = reach(target, SOCK_STREAM, NOBODY_MS);
}

static void try_udp(const char *target, struct probe_answer *answer)
{
	union any_address address;
	socklen_t length = parse(target, &address);
	FD_CLEANUP int fd = socket(address.plain.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ssize_t sent = fd < 0 || !length
			       ? -1
			       : sendto(fd, "mvagent", 7, MSG_DONTWAIT, &address.plain, length);

	answer->result = sent < 0 ? -errno : 0;
}

/* An echo request, by a raw socket. */
static void try_icmp(const char *target, struct probe_answer *answer)
{
	static const uint8_t request[8] = {8, 0, 0xf7, 0xff};
	union any_address address;
	socklen_t length = parse(target, &address);
	FD_CLEANUP int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	ssize_t sent = fd < 0 || !length ? -1
					 : sendto(fd, request, sizeof(request), MSG_DONTWAIT,
						  &address.plain, length);

	answer->result = sent < 0 ? -errno : 0;
}

/* A question for the A record of a name (RFC 1035, 4.1). Its length. */
static size_t make_question(const char *name, uint8_t bytes[512])
{
	static const uint8_t header[12] = {0x12, 0x34, 1, 0, 0, 1}, tail[5] = {0, 0, 1, 0, 1};
	size_t length = sizeof(header);

	memcpy(bytes, header, sizeof(header));
	while (*name) {
		size_t label = strcspn(name, ".");

		if (!label || label > 63 || length + label + 1 + sizeof(tail) > 512)
			return 0;
		bytes[length++] = (uint8_t)label;
		memcpy(bytes + length, name, label);
		length += label;
		name += label + (name[label] == '.');
	}
	memcpy(bytes + length, tail, sizeof(tail));
	return length + sizeof(tail);
}

/* Asks the guest's resolver. The count of addresses, the last of which is in @found; -ENOENT when
 * it says that there is none, or -errno. */
static int ask(const char *name, struct in_addr *found)
{
	const struct sockaddr_in resolver = {
		.sin_family = AF_INET,
		.sin_port = htons(53),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	FD_CLEANUP int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	uint8_t bytes[512];
	size_t length = make_question(name, bytes);
	ssize_t got;

	if (!length)
		return -EINVAL;
	if (fd < 0 || connect(fd, (const struct sockaddr *)&resolver, sizeof(resolver)) < 0 ||
	    send(fd, bytes, length, 0) < 0)
		return -errno;
	if (poll(&polled, 1, SOMEBODY_MS) <= 0)
		return -ETIMEDOUT;
	got = recv(fd, bytes, sizeof(bytes), 0);
	if (got < 12)
		return -EPROTO;
	if (bytes[3] & 15 || !bytes[7])
		return -ENOENT;
	if ((size_t)got < length + 16)
		return -EPROTO;
	memcpy(found, bytes + got - sizeof(*found), sizeof(*found));
	return bytes[7];
}

static void try_name(const char *target, struct probe_answer *answer)
{
	struct in_addr found;

	answer->result = ask(target, &found);
}

/* HOST/PORT: by its name, as programs do it. */
static void try_way(const char *target, struct probe_answer *answer)
{
	const char *slash = strrchr(target, '/');
	char name[256] = "", text[INET_ADDRSTRLEN], place[INET_ADDRSTRLEN + 8];
	struct in_addr found;

	if (!slash || (size_t)(slash - target) >= sizeof(name))
		return;
	memcpy(name, target, (size_t)(slash - target));
	answer->result = ask(name, &found);
	if (answer->result <= 0)
		return;
	inet_ntop(AF_INET, &found, text, sizeof(text));
	snprintf(place, sizeof(place), "%s%.7s", text, slash);
	answer->result = reach(place, SOCK_STREAM, SOMEBODY_MS);
}

/* Not text: bytes of a frame. */
static const uint8_t content[] = {'m', 'v', 'a', 'g', 'e', 'n', 't'};

/* So many frames as the target says, past all that the guest's kernel knows of routes. */
static void try_frames(const char *target, struct probe_answer *answer)
{
	unsigned long count = strtoul(target, NULL, 10), sent = 0;
	FD_CLEANUP int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	struct sockaddr_ll card = {.sll_family = AF_PACKET, .sll_halen = 6};
	uint8_t frame[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};

	card.sll_ifindex = (int)if_nametoindex(CARD);
	if (fd < 0 || !card.sll_ifindex) {
		answer->result = -errno;
		return;
	}
	memcpy(frame + 14, content, sizeof(content));
	while (sent < count && sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&card,
				      sizeof(card)) == sizeof(frame))
		sent++;
	answer->result = sent ? (long)sent : -errno;
}

static void try_unix(const char *target, struct probe_answer *answer)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	FD_CLEANUP int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (strlen(target) >= sizeof(address.sun_path)) {
		answer->result = -ENAMETOOLONG;
		return;
	}
	memcpy(address.sun_path, target, strlen(target));
	answer->result = fd < 0 ? -errno
				: connect_within(fd, (struct sockaddr *)&address, sizeof(address),
						 NOBODY_MS);
}

/* A port of the host's end of the machine's own socket device. */
static void try_vsock(const char *target, struct probe_answer *answer)
{
	const struct sockaddr_vm address = {
		.svm_family = AF_VSOCK,
		.svm_cid = VMADDR_CID_HOST,
		.svm_port = (unsigned int)strtoul(target, NULL, 10),
	};
	FD_CLEANUP int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	answer->result = fd < 0 ? -errno
				: connect_within(fd, (const struct sockaddr *)&address,
						 sizeof(address), NOBODY_MS);
}

const struct probe_kind probe_network_kinds[] = {
	{"tcp", try_tcp},   {"udp", try_udp},     {"icmp", try_icmp},
	{"name", try_name}, {"way", try_way},     {"frames", try_frames},
	{"unix", try_unix}, {"vsock", try_vsock}, {NULL, NULL},
};

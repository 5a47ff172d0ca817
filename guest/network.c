/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/agent_socket.h"
#include "guest/connect_proxy.h"
#include "guest/files.h"
#include "guest/resolver.h"
#include "guest/ways.h"
#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/wire/sign.h"

#define DNS_PORT 53

/* A connection has two; the kernel lets a process have more. */
#define DESCRIPTORS (2 * LIMIT_RELAY_CONNECTIONS + WAYS_LISTENERS + CONNECT_PROXY_CLIENTS + 64)

/* Without it the kernel would give the card a link-local address and a route for it, and send what
 * nobody answers; a connection to anywhere would then wait instead of failing. */
#define CARD_WITHOUT_IPV6 "/proc/sys/net/ipv6/conf/eth0/disable_ipv6"

static int raise_interface(const char *name)
{
	FD_CLEANUP int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_flags = IFF_UP};

	for (size_t i = 0; name[i]; i++)
		request.ifr_name[i] = name[i];
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return -errno;
	return 0;
}

int network_raise(struct failure *failure)
{
	int error = raise_interface("lo");

	if (error)
		return failure_set(failure, SESSION_STAGE_SETUP, error,
				   "bringing up the loopback interface");
	error = files_write(CARD_WITHOUT_IPV6, "1");
	error = error ? error : raise_interface("eth0");
	/* A machine without a card has no route either. */
	if (error)
		message("cannot bring up the network card: errno %d", -error);
	return 0;
}

/* All of the process; its parts are told apart by the tags of their events. */
struct network {
	struct resolver resolver;
	struct bridge bridge;
	struct ways ways;
	struct connect_proxy proxy;
	int agent; /* a listener; -1: there is none */
};

enum {
	TAG_RESOLVER,
	TAG_BRIDGE = TAG_RESOLVER + RESOLVER_TAGS,
	TAG_PROXY = TAG_BRIDGE + BRIDGE_TAGS,
	TAG_AGENT = TAG_PROXY + CONNECT_PROXY_TAGS,
	TAG_WAYS,
};

static void handle(struct network *network, const struct epoll_event *event)
{
	uint32_t tag = event->data.u32;

	if (tag >= TAG_WAYS)
		ways_accept(&network->ways, tag - TAG_WAYS);
	else if (tag == TAG_AGENT)
		agent_socket_accept(network->agent, &network->bridge);
	else if (tag >= TAG_PROXY)
		connect_proxy_handle(&network->proxy, tag - TAG_PROXY);
	else if (tag >= TAG_BRIDGE)
		bridge_handle(&network->bridge, tag - TAG_BRIDGE, event->events);
	else
		resolver_handle(&network->resolver, tag - TAG_RESOLVER);
}

/* For programs that are to find one by their environment (--proxy-env). */
static void open_proxy(struct network *network, int epoll)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(NAMES_PROXY_PORT)};
	int error;

	inet_pton(AF_INET, NAMES_PROXY_ADDRESS, &address.sin_addr);
	error = connect_proxy_open(&network->proxy, &network->bridge, &address, epoll, TAG_PROXY);
	if (error)
		message("there is no proxy: errno %d", -error);
}

/* For ssh and git (--ssh-agent). */
static void open_agent(struct network *network, int epoll)
{
	if (mkdir("/run/mvagent", 0755) < 0 && errno != EEXIST)
		message("cannot make /run/mvagent: errno %d", errno);
	network->agent = agent_socket_open(SIGN_GUEST_SOCKET, epoll, TAG_AGENT);
	if (network->agent < 0)
		message("there is no ssh-agent: errno %d", -network->agent);
}

static noreturn void serve(struct network *network, int ready)
{
	const struct dns_names names = {
		.context = &network->ways, .find = ways_find, .find_address = ways_find_address};
	struct epoll_event events[64];
	int epoll = epoll_create1(EPOLL_CLOEXEC), error;
	bool more = false;

	bridge_init(&network->bridge, epoll, TAG_BRIDGE);
	error = epoll < 0 ? -errno : resolver_open(&network->resolver, &names, epoll, TAG_RESOLVER);
	/* Without somebody to ask, no name is known. */
	if (!error && ways_open(&network->ways, &network->bridge, epoll, TAG_WAYS) < 0)
		message("the host answers no questions about names");
	if (network->ways.wants_agent)
		open_agent(network, epoll);
	if (network->ways.wants_proxy)
		open_proxy(network, epoll);
	fd_close(&ready);
	while (!error) {
		int count = epoll_wait(epoll, events, ARRAY_SIZE(events), more ? 0 : -1);

		if (count < 0 && errno != EINTR)
			error = -errno;
		for (int i = 0; i < count; i++)
			handle(network, &events[i]);
		more = bridge_do_rest(&network->bridge);
	}
	message("names are not answered any more: errno %d", -error);
	_exit(1);
}

/* In the child. */
static noreturn void run(struct network *network, int control, int ready)
{
	const struct rlimit descriptors = {.rlim_cur = DESCRIPTORS, .rlim_max = DESCRIPTORS};
	int error;

	fd_close(&control);
	prctl(PR_SET_NAME, "network");
	setrlimit(RLIMIT_NOFILE, &descriptors);
	/* It is small, and every program that asks for a name would wait without it. */
	error = files_write("/proc/self/oom_score_adj", "-1000");
	if (error)
		message("cannot protect the resolver: errno %d", -error);
	serve(network, ready);
}

int network_start(int control, int *ready, struct failure *failure)
{
	struct network *network = calloc(1, sizeof(*network));
	int pair[2] = {-1, -1};
	int error = network ? resolver_bind(&network->resolver, DNS_PORT) : -ENOMEM;
	pid_t child = 0;

	if (!error && pipe2(pair, O_CLOEXEC) < 0)
		error = -errno;
	if (!error)
		child = fork();
	if (!error && child == 0) {
		fd_close(&pair[0]);
		run(network, control, pair[1]);
	}
	if (child < 0)
		error = -errno;
	fd_close(&pair[1]);
	if (network)
		resolver_close(&network->resolver);
	free(network);
	if (error)
		fd_close(&pair[0]);
	*ready = pair[0];
	return error ? failure_set(failure, SESSION_STAGE_SETUP, error, "starting the resolver")
		     : 0;
}

void network_wait(int *ready)
{
	char byte;

	/* Its end of the pipe closes. */
	while (*ready >= 0 && read(*ready, &byte, 1) < 0 && errno == EINTR)
		;
	fd_close(ready);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/network.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/files.h"
#include "guest/resolver.h"
#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"

#define DNS_PORT 53

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

/* Nobody is known yet. */
static bool find_none(void *context, const char *name, struct in_addr *address)
{
	(void)context;
	(void)name;
	(void)address;
	return false;
}

static bool find_no_address(void *context, struct in_addr address, char name[DNS_NAME_BYTES])
{
	(void)context;
	(void)address;
	(void)name;
	return false;
}

static noreturn void serve(struct resolver *resolver)
{
	static const struct dns_names names = {.find = find_none, .find_address = find_no_address};
	struct epoll_event events[16];
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	int error = epoll < 0 ? -errno : resolver_open(resolver, &names, epoll, 0);

	while (!error) {
		int count = epoll_wait(epoll, events, ARRAY_SIZE(events), -1);

		if (count < 0 && errno != EINTR)
			error = -errno;
		for (int i = 0; i < count; i++)
			resolver_handle(resolver, events[i].data.u32);
	}
	message("names are not answered any more: errno %d", -error);
	_exit(1);
}

/* In the child. */
static noreturn void run(struct resolver *resolver, int control)
{
	int error;

	fd_close(&control);
	prctl(PR_SET_NAME, "network");
	/* It is small, and every program that asks for a name would wait without it. */
	error = files_write("/proc/self/oom_score_adj", "-1000");
	if (error)
		message("cannot protect the resolver: errno %d", -error);
	serve(resolver);
}

int network_start(int control, struct failure *failure)
{
	struct resolver *resolver = malloc(sizeof(*resolver));
	int error = resolver ? resolver_bind(resolver, DNS_PORT) : -ENOMEM;
	pid_t child = error ? 0 : fork();

	if (!error && child == 0)
		run(resolver, control);
	if (child < 0)
		error = -errno;
	if (resolver)
		resolver_close(resolver);
	free(resolver);
	return error ? failure_set(failure, SESSION_STAGE_SETUP, error, "starting the resolver")
		     : 0;
}

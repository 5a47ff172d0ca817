/* SPDX-License-Identifier: Apache-2.0 */
/* What of the network the guest is to try: what nobody has allowed, and a few of what is. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/cli/checklist_host.h"
#include "vmm/relay/policy.h"

#define MANY_HOSTS 4
#define RAW_FRAMES 8

/* Unless the user has allowed just this. */
static void add_address(struct checklist_host *host, const struct run_options *options,
			enum checklist_line line, const char *address, unsigned int port)
{
	const struct route_decision decision = route_policy_decide(
		&options->network.settings.policy, address, strlen(address), (uint16_t)port);

	if (decision.verdict != ROUTE_ALLOWED)
		checklist_add(&host->outside, line, TRY_REFUSED, "tcp:%s/%u", address, port);
}

/* An address, or a name, which is asked for. */
static void add_metadata(struct checklist_host *host, const struct run_options *options,
			 const char *place)
{
	const struct route_decision decision = route_policy_decide(
		&options->network.settings.policy, place, strlen(place), ROUTE_PORT_PLAIN);
	struct address address;

	if (address_read(place, strlen(place), &address) == 0)
		add_address(host, options, LINE_CLOUD, place, ROUTE_PORT_PLAIN);
	else if (decision.verdict != ROUTE_ALLOWED)
		checklist_add(&host->outside, LINE_CLOUD, TRY_REFUSED, "name:%s", place);
}

/* This host's own addresses, at the port of a socket that listens on all of them. */
static void add_own_addresses(struct checklist_host *host, const struct run_options *options)
{
	struct ifaddrs *list = NULL;
	int count = 0;

	if (getifaddrs(&list) < 0)
		list = NULL;
	for (const struct ifaddrs *one = list; one && count < 6; one = one->ifa_next) {
		char text[INET6_ADDRSTRLEN] = "";
		const struct sockaddr *address = one->ifa_addr;

		if (!address || one->ifa_flags & IFF_LOOPBACK)
			continue;
		if (address->sa_family == AF_INET)
			inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text,
				  sizeof(text));
		else if (address->sa_family == AF_INET6 &&
			 !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr))
			inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr,
				  text, sizeof(text));
		if (!*text)
			continue;
		count++;
		add_address(host, options, LINE_INSIDE, text, host->port);
	}
	if (list)
		freeifaddrs(list);
}

/* The ways that are open, a few of them. */
static void add_allowed(struct checklist_host *host, const struct run_options *options)
{
	const struct route_policy *policy = &options->network.settings.policy;
	int count = 0;

	for (unsigned int i = 0; i < policy->count && count < MANY_HOSTS; i++) {
		const struct route_rule *rule = &policy->rules[i];

		if (rule->deny || rule->target != ROUTE_HOST)
			continue;
		checklist_add(&host->outside, LINE_OUTSIDE, TRY_ALLOWED, "way:%s/%u", rule->name,
			      rule->port ? rule->port : ROUTE_PORT_TLS);
		count++;
	}
}

void checklist_items_network(struct checklist_host *host, const struct run_options *options)
{
	static const char *const public_addresses[] = {"1.1.1.1", "8.8.8.8",
						       "2606:4700:4700::1111"};
	static const char *const inside[] = {"127.0.0.1",  "10.0.2.2",    "10.0.0.1", "172.16.0.1",
					     "172.17.0.1", "192.168.1.1", "fd00::1"};
	struct checklist_outside *outside = &host->outside;

	for (size_t i = 0; i < ARRAY_SIZE(public_addresses); i++)
		add_address(host, options, LINE_OUTSIDE, public_addresses[i], 443);
	checklist_add(outside, LINE_OUTSIDE, TRY_REFUSED, "way:%.8s.example.com/80", host->number);
	add_allowed(host, options);
	checklist_add(outside, LINE_LOG, TRY_DENIED, "name:%.8s.review.invalid", host->number);
	add_own_addresses(host, options);
	for (size_t i = 0; i < ARRAY_SIZE(inside); i++)
		add_address(host, options, LINE_INSIDE, inside[i],
			    host->listener >= 0 ? host->port : 80);
	for (size_t i = 0; checklist_metadata[i]; i++)
		add_metadata(host, options, checklist_metadata[i]);
	checklist_add(outside, LINE_RAW, TRY_IDENTITY, "identity:");
	checklist_add(outside, LINE_RAW, TRY_FRAMES, "frames:%d", RAW_FRAMES);
	checklist_add(outside, LINE_RAW, TRY_REFUSED, "udp:1.1.1.1/53");
	checklist_add(outside, LINE_RAW, TRY_REFUSED, "udp:2606:4700:4700::1111/53");
	checklist_add(outside, LINE_RAW, TRY_REFUSED, "icmp:1.1.1.1/0");
	for (unsigned int port = 22; port <= 1000; port += 326)
		checklist_add(outside, LINE_RAW, TRY_REFUSED, "vsock:%u", port);
}

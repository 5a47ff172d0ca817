/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_network.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/log.h"
#include "vmm/base/number.h"
#include "vmm/cli/installation.h"

#define ORIGIN_BYTES 512

static int add_rule(struct run_network *network, bool deny, const char *value)
{
	char origin[ORIGIN_BYTES];

	snprintf(origin, sizeof(origin), "%s %s", deny ? "--deny" : "--allow", value);
	/* It travels in lines whose parts are separated by tabs. */
	if (strpbrk(value, "\t\n") || strlen(value) > NAME_BYTES + 16) {
		log_error("%s: a host is needed, such as example.com", deny ? "--deny" : "--allow");
		return -EINVAL;
	}
	return route_policy_add(&network->settings.policy, deny, value, origin);
}

/* A rule on a line of a file: HOST[:PORT], or deny HOST[:PORT]; '#' begins a comment. */
static int add_line(struct run_network *network, char *line, const char *origin)
{
	char *words[3] = {NULL}, *rest = line;
	unsigned int count = 0;

	line[strcspn(line, "#")] = '\0';
	for (char *word; count < 3 && (word = strtok_r(rest, " \t\r\n", &rest)); count++)
		words[count] = word;
	if (count == 0)
		return 0;
	if (count == 1)
		return route_policy_add(&network->settings.policy, false, words[0], origin);
	if (count == 2 && strcmp(words[0], "deny") == 0)
		return route_policy_add(&network->settings.policy, true, words[1], origin);
	log_error("%s: a line is HOST[:PORT] or deny HOST[:PORT]", origin);
	return -EINVAL;
}

static int add_file(struct run_network *network, const char *option, const char *name,
		    const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned int number = 0;
	char origin[ORIGIN_BYTES];
	char *line = NULL;
	size_t size = 0;
	int error = 0;

	if (!file)
		return log_errno(-errno, "%s %s: cannot read it", option, name);
	errno = 0;
	while (!error && getline(&line, &size, file) > 0) {
		snprintf(origin, sizeof(origin), "%s %s, line %u", option, name, ++number);
		/* It is printed, and travels in lines. */
		for (char *byte = origin; *byte; byte++)
			*byte = (unsigned char)*byte < ' ' ? '?' : *byte;
		error = add_line(network, line, origin);
	}
	if (!error && ferror(file))
		error = log_errno(errno ? -errno : -EIO, "%s %s: cannot read it", option, name);
	free(line);
	fclose(file);
	return error;
}

static int add_preset(struct run_network *network, const char *name)
{
	struct installation installation;
	char part[64], path[PATH_MAX];
	bool is_name;
	int error = installation_find(&installation);

	if (error)
		return error;
	/* Of other names none is looked for: they could lead elsewhere. */
	is_name = *name && strlen(name) <= 32 &&
		  strspn(name, "abcdefghijklmnopqrstuvwxyz") == strlen(name);
	snprintf(part, sizeof(part), "allow/%s", is_name ? name : "");
	if (installation_file(&installation, part, path) < 0)
		return -ENAMETOOLONG;
	if (!is_name || access(path, F_OK) < 0) {
		log_error("--allow-preset %s: there is no such list; it is anthropic, openai or "
			  "google",
			  name);
		return -EINVAL;
	}
	return add_file(network, "--allow-preset", name, path);
}

/* [ADDRESS:]PORT:GUESTPORT */
static int add_published(struct run_network *network, const char *value)
{
	struct published_port *port =
		&network->settings.published[network->settings.published_count];
	const char *last = strrchr(value, ':'), *first;
	uint64_t number, guest;
	char host_port[8] = "";

	if (network->settings.published_count == LIMIT_RELAY_PUBLISHED) {
		log_error("--publish %s: there can be %u at most", value, LIMIT_RELAY_PUBLISHED);
		return -E2BIG;
	}
	first = last ? memrchr(value, ':', (size_t)(last - value)) : NULL;
	if (last && last - (first ? first + 1 : value) < (ptrdiff_t)sizeof(host_port))
		memcpy(host_port, first ? first + 1 : value,
		       (size_t)(last - (first ? first + 1 : value)));
	if (address_read(first ? value : "127.0.0.1", first ? (size_t)(first - value) : 9,
			 &port->address) < 0 ||
	    number_parse(host_port, 1, UINT16_MAX, &number) < 0 ||
	    number_parse(last + 1, 1, UINT16_MAX, &guest) < 0) {
		log_error(
			"--publish %s: give PORT:GUESTPORT, or ADDRESS:PORT:GUESTPORT for another "
			"address of this host than 127.0.0.1",
			value);
		return -EINVAL;
	}
	port->port = (uint16_t)number;
	port->guest_port = (uint16_t)guest;
	network->settings.published_count++;
	return 0;
}

static int set_resolver(struct run_network *network, const char *value)
{
	const char *colon = strrchr(value, ':');
	size_t length = strlen(value);
	struct address address;
	uint64_t port;

	if (colon && (value[0] == '[' ? colon[-1] == ']' : strchr(value, ':') == colon)) {
		if (number_parse(colon + 1, 1, UINT16_MAX, &port) < 0)
			length = 0;
		else
			length = (size_t)(colon - value);
	}
	if (address_read(value, length, &address) < 0) {
		log_error("--resolver %s: give ADDRESS or ADDRESS:PORT of a name server", value);
		return -EINVAL;
	}
	snprintf(network->settings.servers, sizeof(network->settings.servers), "%s", value);
	return 0;
}

static int set_client(struct run_network *network, const char *name)
{
	int client = allow_from_parse(name);

	if (client < 0)
		return client;
	network->from[client] = true;
	return 0;
}

int run_network_ask_clients(struct run_network *network, const char *const *directories,
			    unsigned int count)
{
	int error = 0;

	for (int client = 0; !error && client < ALLOW_CLIENTS; client++) {
		if (network->from[client])
			error = allow_from_add(&network->settings.policy, (enum allow_client)client,
					       directories, count);
	}
	return error;
}

static int set_bytes(struct run_network *network, const char *value)
{
	static const struct number_unit units[] = {
		{'B', 1},        {'b', 1},        {'K', 1U << 10},
		{'k', 1U << 10}, {'M', 1U << 20}, {'m', 1U << 20},
		{'G', 1U << 30}, {'g', 1U << 30}, {0},
	};
	uint64_t *limit = &network->settings.byte_limit;

	if (number_parse_scaled(value, units, UINT64_MAX, limit) == 0 && *limit)
		return 0;
	log_error("--allow-bytes %s: give a number of bytes above 0, or with suffix K, M or G",
		  value);
	return -EINVAL;
}

int run_network_apply(struct run_network *network, int option, const char *value)
{
	switch (option) {
	case NETWORK_ALLOW:
	case NETWORK_DENY:
		return add_rule(network, option == NETWORK_DENY, value);
	case NETWORK_ALLOW_FILE:
		return add_file(network, "--allow-file", value, value);
	case NETWORK_ALLOW_PRESET:
		return add_preset(network, value);
	case NETWORK_ALLOW_FROM:
		return set_client(network, value);
	case NETWORK_RESOLVER:
		return set_resolver(network, value);
	case NETWORK_ALLOW_BYTES:
		return set_bytes(network, value);
	case NETWORK_PROXY_ENV:
		network->proxy_env = true;
		return 0;
	case NETWORK_PUBLISH:
		return add_published(network, value);
	default:
		network->settings.policy.any_server_name = true;
		return 0;
	}
}

bool run_network_needs_relay(const struct run_network *network)
{
	for (unsigned int i = 0; i < network->settings.policy.count; i++) {
		if (!network->settings.policy.rules[i].deny)
			return true;
	}
	return network->settings.published_count > 0;
}

int run_network_find_proxy(struct run_network *network)
{
	static const char *const variables[] = {"https_proxy", "HTTPS_PROXY", "all_proxy",
						"ALL_PROXY"};
	static const char *const exceptions[] = {"no_proxy", "NO_PROXY"};
	struct proxy *proxy = &network->settings.proxy;

	for (unsigned int i = 0; i < 4 && !proxy->host[0]; i++) {
		const char *value = getenv(variables[i]);
		int error = value && *value ? proxy_read(proxy, value, variables[i]) : 0;

		if (error)
			return error;
		if (proxy->host[0])
			log_info("connections go by the proxy of %s, %s:%u", variables[i],
				 proxy->host, proxy->port);
	}
	for (unsigned int i = 0; i < 2 && !proxy->exceptions[0]; i++) {
		const char *value = getenv(exceptions[i]);

		if (!value)
			continue;
		if (strpbrk(value, "\t\n") || strlen(value) >= sizeof(proxy->exceptions)) {
			log_error("%s cannot be used: it is too long, or not of one line",
				  exceptions[i]);
			return -EINVAL;
		}
		snprintf(proxy->exceptions, sizeof(proxy->exceptions), "%s", value);
	}
	return 0;
}

void run_network_free(struct run_network *network)
{
	relay_settings_free(&network->settings);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/relay/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/number.h"

/* One line each: a word, and values that tabs part; none of these has either in it. */

static void write_rule(FILE *file, const struct route_rule *rule)
{
	char address[ADDRESS_TEXT_BYTES] = "";

	if (rule->target == ROUTE_ADDRESS)
		address_write(&rule->address, address);
	fprintf(file, "%s\t%s%s%s", rule->deny ? "deny" : "allow",
		rule->target == ROUTE_BELOW ? "*." : "", rule->name, address);
	if (rule->port)
		fprintf(file, ":%u", rule->port);
	fprintf(file, "\t%s\n", rule->origin);
}

static void write_all(FILE *file, const struct relay_settings *settings)
{
	char address[ADDRESS_TEXT_BYTES];

	for (unsigned int i = 0; i < settings->policy.count; i++)
		write_rule(file, &settings->policy.rules[i]);
	for (unsigned int i = 0; i < settings->policy.private_count; i++) {
		const struct route_private *added = &settings->policy.privates[i];

		address_write(&added->address, address);
		fprintf(file, "private\t%s:%u\t%s\n", added->name, added->port, address);
	}
	if (settings->policy.any_server_name)
		fputs("any-server-name\t\t\n", file);
	if (settings->proxy.host[0])
		fprintf(file, "proxy\t%s:%u\t%s\n", settings->proxy.host, settings->proxy.port,
			settings->proxy.credentials);
	fprintf(file, "exceptions\t%s\t\n", settings->proxy.exceptions);
	if (settings->byte_limit)
		fprintf(file, "bytes\t%llu\t\n", (unsigned long long)settings->byte_limit);
	if (settings->servers[0])
		fprintf(file, "servers\t%s\t\n", settings->servers);
	for (unsigned int i = 0; i < settings->published_count; i++) {
		const struct published_port *port = &settings->published[i];

		address_write(&port->address, address);
		fprintf(file, "publish\t%s:%u\t%u\n", address, port->port, port->guest_port);
	}
	for (unsigned int i = 0; i < settings->terminated_count; i++)
		fprintf(file, "terminate\t%s\t%u\n", settings->terminated[i].name,
			settings->terminated[i].port);
	for (unsigned int i = 0; i < settings->placeholder_count; i++)
		fprintf(file, "placeholder\t%s\t%s\n", settings->placeholders[i].name,
			settings->placeholders[i].text);
}

int relay_settings_write(const struct relay_settings *settings)
{
	FD_CLEANUP int fd = memfd_create("relay-settings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	FILE *file = fd < 0 ? NULL : fdopen(dup(fd), "w");
	int error = 0;

	if (file) {
		write_all(file, settings);
		error = ferror(file) || fflush(file) ? -EIO : 0;
		fclose(file);
	} else {
		error = -errno;
	}
	if (!error &&
	    (lseek(fd, 0, SEEK_SET) < 0 ||
	     fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0))
		error = -errno;
	if (error)
		return log_errno(error, "cannot tell mvagent-relay what is allowed");
	return fd_take(&fd);
}

/* The two values of a line end at a NUL. */
static int read_publish(struct relay_settings *settings, const char *place, const char *guest_port)
{
	struct published_port *port = &settings->published[settings->published_count];
	const char *colon = strrchr(place, ':');
	uint64_t number, guest;

	if (!colon || settings->published_count == LIMIT_RELAY_PUBLISHED ||
	    address_read(place, (size_t)(colon - place), &port->address) < 0 ||
	    number_parse(colon + 1, 1, UINT16_MAX, &number) < 0 ||
	    number_parse(guest_port, 1, UINT16_MAX, &guest) < 0)
		return -EINVAL;
	port->port = (uint16_t)number;
	port->guest_port = (uint16_t)guest;
	settings->published_count++;
	return 0;
}

static int copy_text(char *to, size_t size, const char *text)
{
	return snprintf(to, size, "%s", text) >= (int)size ? -EINVAL : 0;
}

static int read_terminated(struct relay_settings *settings, const char *name, const char *port)
{
	struct terminated_host *host = &settings->terminated[settings->terminated_count];
	uint64_t number;

	if (settings->terminated_count == RELAY_TERMINATED_HOSTS ||
	    name_read(name, strlen(name), host->name) < 0 ||
	    number_parse(port, 1, UINT16_MAX, &number) < 0)
		return -EINVAL;
	host->port = (uint16_t)number;
	settings->terminated_count++;
	return 0;
}

static int read_placeholder(struct relay_settings *settings, const char *name, const char *text)
{
	struct placeholder *placeholder = &settings->placeholders[settings->placeholder_count];

	if (settings->placeholder_count == LIMIT_SECRETS || !*text ||
	    copy_text(placeholder->name, sizeof(placeholder->name), name) < 0 ||
	    copy_text(placeholder->text, sizeof(placeholder->text), text) < 0)
		return -EINVAL;
	settings->placeholder_count++;
	return 0;
}

static int read_private(struct relay_settings *settings, char *place, const char *text)
{
	char *colon = strrchr(place, ':');
	struct address address;
	uint64_t port;

	if (!colon || number_parse(colon + 1, 1, UINT16_MAX, &port) < 0 ||
	    address_read(text, strlen(text), &address) < 0)
		return -EINVAL;
	*colon = '\0';
	return route_policy_add_private(&settings->policy, place, (uint16_t)port, &address);
}

static int read_line(struct relay_settings *settings, const char *word, char *first,
		     const char *second)
{
	if (strcmp(word, "allow") == 0 || strcmp(word, "deny") == 0)
		return route_policy_add(&settings->policy, word[0] == 'd', first, second);
	if (strcmp(word, "any-server-name") == 0) {
		settings->policy.any_server_name = true;
		return 0;
	}
	if (strcmp(word, "proxy") == 0) {
		int error = proxy_read(&settings->proxy, first, word);

		return error ? error
			     : copy_text(settings->proxy.credentials,
					 sizeof(settings->proxy.credentials), second);
	}
	if (strcmp(word, "exceptions") == 0)
		return copy_text(settings->proxy.exceptions, sizeof(settings->proxy.exceptions),
				 first);
	if (strcmp(word, "private") == 0)
		return read_private(settings, first, second);
	if (strcmp(word, "bytes") == 0)
		return number_parse(first, 1, UINT64_MAX, &settings->byte_limit);
	if (strcmp(word, "servers") == 0)
		return copy_text(settings->servers, sizeof(settings->servers), first);
	if (strcmp(word, "publish") == 0)
		return read_publish(settings, first, second);
	if (strcmp(word, "terminate") == 0)
		return read_terminated(settings, first, second);
	if (strcmp(word, "placeholder") == 0)
		return read_placeholder(settings, first, second);
	return -EINVAL;
}

int relay_settings_read(struct relay_settings *settings, int fd)
{
	FILE *file = fdopen(dup(fd), "r");
	char *line = NULL;
	size_t size = 0;
	int error = file ? 0 : -errno;

	while (!error && getline(&line, &size, file) > 0) {
		char *first, *second, *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		first = strchr(line, '\t');
		second = first ? strchr(first + 1, '\t') : NULL;
		if (!second) {
			error = -EINVAL;
			break;
		}
		*first++ = '\0';
		*second++ = '\0';
		error = read_line(settings, line, first, second);
	}
	free(line);
	if (file)
		fclose(file);
	return error ? log_errno(error, "the settings cannot be used; this program is started by "
					"mvagent")
		     : 0;
}

bool relay_settings_terminate(const struct relay_settings *settings, const char *host,
			      uint16_t port)
{
	for (unsigned int i = 0; i < settings->terminated_count; i++) {
		if (settings->terminated[i].port == port &&
		    strcmp(settings->terminated[i].name, host) == 0)
			return true;
	}
	return false;
}

const char *relay_settings_find_placeholder(const struct relay_settings *settings, const char *host,
					    size_t length)
{
	for (unsigned int i = 0; i < settings->placeholder_count; i++) {
		const char *text = settings->placeholders[i].text;
		const size_t size = strlen(text);

		for (size_t at = 0; at + size <= length; at++) {
			if (strncasecmp(host + at, text, size) == 0)
				return settings->placeholders[i].name;
		}
	}
	return NULL;
}

void relay_settings_free(struct relay_settings *settings)
{
	route_policy_free(&settings->policy);
	explicit_bzero(settings->proxy.credentials, sizeof(settings->proxy.credentials));
}

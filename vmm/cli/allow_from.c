/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/allow_from.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/cli/program_output.h"

static const char *const names[ALLOW_CLIENTS] = {"npm", "pip", "apt", "cargo", "git"};

/* Where clients go that are set up for nothing else. */
static const char *const defaults[ALLOW_CLIENTS][3] = {
	[ALLOW_FROM_PIP] = {"pypi.org:443", "files.pythonhosted.org:443"},
	[ALLOW_FROM_CARGO] = {"index.crates.io:443", "static.crates.io:443", "crates.io:443"},
};

int allow_from_parse(const char *name)
{
	for (int i = 0; i < ALLOW_CLIENTS; i++) {
		if (strcmp(names[i], name) == 0)
			return i;
	}
	log_error("--allow-from %s: it is npm, pip, apt, cargo or git", name);
	return -EINVAL;
}

static const struct {
	const char *prefix;
	unsigned int port;
} schemes[] = {
	{"https://", 443}, {"http://", 80},          {"ssh://", 22},
	{"git://", 9418},  {"sparse+https://", 443}, {"git+ssh://", 22},
};

int allow_from_read_url(const char *url, size_t length, char place[NAME_BYTES + 8])
{
	const char *end = url + length, *host = NULL, *at, *colon;
	char name[NAME_BYTES];
	unsigned int port = 22;

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		size_t prefix = strlen(schemes[i].prefix);

		if (length > prefix && strncmp(url, schemes[i].prefix, prefix) == 0) {
			host = url + prefix;
			port = schemes[i].port;
		}
	}
	if (host) {
		length = strcspn(host, "/?#");
		end = host + bytes_minimum(length, (size_t)(end - host));
	} else {
		/* git's own form: [USER@]HOST:PATH, and no name of a file (git-clone(1)). */
		colon = memchr(url, ':', length);
		if (!colon || memchr(url, '/', (size_t)(colon - url)) ||
		    memmem(url, length, "://", 3))
			return -EINVAL;
		host = url;
		end = colon;
	}
	at = memrchr(host, '@', (size_t)(end - host));
	host = at ? at + 1 : host;
	colon = memrchr(host, ':', (size_t)(end - host));
	if (colon) {
		port = (unsigned int)strtoul(colon + 1, NULL, 10);
		end = colon;
	}
	if (!port || port > UINT16_MAX || name_read(host, (size_t)(end - host), name) < 0)
		return -EINVAL;
	snprintf(place, NAME_BYTES + 8, "%s:%u", name, port);
	return 0;
}

/* A mirror of one's own often has a private address, which a name could not lead to otherwise. Only
 * those that it has now count, and for that name alone. One that cannot be found is found wanting
 * when it is used. */
static void add_private_addresses(struct route_policy *policy, const char *origin, const char *name,
				  uint16_t port)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	char text[ADDRESS_TEXT_BYTES];

	if (getaddrinfo(name, NULL, &hints, &found) != 0)
		return;
	for (const struct addrinfo *entry = found; entry; entry = entry->ai_next) {
		struct address address;

		if (address_of_socket(entry->ai_addr, &address) < 0 ||
		    !route_policy_objection(policy, name, &address, port) ||
		    route_policy_add_private(policy, name, port, &address) < 0)
			continue;
		address_write(&address, text);
		log_warning("%s allows %s at its private address %s", origin, name, text);
	}
	freeaddrinfo(found);
}

static int add_place(struct route_policy *policy, enum allow_client client, const char *place)
{
	char origin[64], name[NAME_BYTES] = "";
	const char *colon = strrchr(place, ':');
	const size_t length = (size_t)(colon - place);
	int error;

	if (route_policy_decide(policy, place, length, (uint16_t)atoi(colon + 1)).verdict ==
	    ROUTE_ALLOWED)
		return 0;
	snprintf(origin, sizeof(origin), "--allow-from %s", names[client]);
	error = route_policy_add(policy, false, place, origin);
	if (error)
		return error;
	log_warning("%s allows %s", origin, place);
	memcpy(name, place, length);
	add_private_addresses(policy, origin, name, (uint16_t)atoi(colon + 1));
	return 0;
}

/* All URLs in the text, which are words of their own or in quotes. Returns their count, or -errno.
 */
static int add_urls(struct route_policy *policy, enum allow_client client, const char *text)
{
	static const char ends[] = " \t\r\n\"',;|";
	char place[NAME_BYTES + 8];
	int count = 0, error;

	while (*(text += strspn(text, ends))) {
		size_t length = strcspn(text, ends);

		if ((client == ALLOW_FROM_GIT || memmem(text, length, "://", 3)) &&
		    allow_from_read_url(text, length, place) == 0) {
			error = add_place(policy, client, place);
			if (error)
				return error;
			count++;
		}
		text += length;
	}
	return count;
}

/* In a directory where no file of a share is. */
static char *output_of(char *const *arguments)
{
	return program_output(arguments, "/");
}

static int cannot_ask(enum allow_client client)
{
	return log_errno(errno ? -errno : -ENODATA,
			 "--allow-from %s: cannot ask %s for its settings", names[client],
			 names[client]);
}

/* Every registry: the general one, and those of scopes. */
static int add_npm(struct route_policy *policy)
{
	char *arguments[] = {"npm", "config", "list", "--json", NULL};
	char *text = output_of(arguments);
	const cJSON *entry;
	cJSON *settings;
	int error = 0;

	if (!text)
		return cannot_ask(ALLOW_FROM_NPM);
	settings = cJSON_Parse(text);
	cJSON_ArrayForEach(entry, settings)
	{
		size_t length = strlen(entry->string), tail = strlen("registry");

		if (error >= 0 && cJSON_IsString(entry) && length >= tail &&
		    strcmp(entry->string + length - tail, "registry") == 0)
			error = add_urls(policy, ALLOW_FROM_NPM, entry->valuestring);
	}
	cJSON_Delete(settings);
	free(text);
	return error < 0 ? error : 0;
}

static int add_defaults(struct route_policy *policy, enum allow_client client)
{
	int error = 0;

	for (size_t i = 0; !error && i < ARRAY_SIZE(defaults[client]) && defaults[client][i]; i++)
		error = add_place(policy, client, defaults[client][i]);
	return error;
}

/* Lines such as global.index-url='https://...'; other settings have no URL but proxies. */
static int add_pip(struct route_policy *policy)
{
	char *arguments[] = {"pip", "config", "list", NULL};
	char *text = output_of(arguments), *rest = text;
	bool has_index = false;
	int count = 0;

	if (!text) {
		char *others[] = {"python3", "-m", "pip", "config", "list", NULL};

		text = rest = output_of(others);
	}
	if (!text)
		return cannot_ask(ALLOW_FROM_PIP);
	for (char *line; count >= 0 && (line = strtok_r(rest, "\n", &rest));) {
		char *value = strchr(line, '=');

		if (!value || !memmem(line, (size_t)(value - line), "index-url", 9))
			continue;
		/* An extra index is asked besides the index. */
		has_index |= !memmem(line, (size_t)(value - line), "extra-index-url", 15);
		count = add_urls(policy, ALLOW_FROM_PIP, value + 1);
	}
	free(text);
	if (count < 0)
		return count;
	return has_index ? 0 : add_defaults(policy, ALLOW_FROM_PIP);
}

static int add_apt(struct route_policy *policy)
{
	char *arguments[] = {"apt-get", "indextargets", "--format", "$(SITE)", NULL};
	char *text = output_of(arguments);
	int count = text ? add_urls(policy, ALLOW_FROM_APT, text) : cannot_ask(ALLOW_FROM_APT);

	free(text);
	return count < 0 ? count : 0;
}

/* cargo has no command for it: the files, in the order in which it looks for them. */
static int add_cargo(struct route_policy *policy)
{
	static const char *const files[] = {"config.toml", "config"};
	const char *home = getenv("CARGO_HOME"), *user = getenv("HOME");
	char path[PATH_MAX], *text;
	size_t length;
	FILE *file = NULL;
	int count = 0;

	for (size_t i = 0; !file && (home || user) && i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s%s/%s", home ? home : user, home ? "" : "/.cargo",
			 files[i]);
		file = fopen(path, "re");
	}
	if (!file)
		return add_defaults(policy, ALLOW_FROM_CARGO);
	text = malloc(PROGRAM_OUTPUT_BYTES + 1);
	length = text ? fread(text, 1, PROGRAM_OUTPUT_BYTES, file) : 0;
	fclose(file);
	if (!text)
		return log_errno(-ENOMEM, "--allow-from cargo");
	text[length] = '\0';
	count = add_urls(policy, ALLOW_FROM_CARGO, text);
	if (count >= 0 && !strstr(text, "replace-with"))
		count = add_defaults(policy, ALLOW_FROM_CARGO);
	free(text);
	return count < 0 ? count : 0;
}

static int add_git(struct route_policy *policy, const char *const *directories, unsigned int count)
{
	int found = 0;

	for (unsigned int i = 0; found >= 0 && i < count; i++) {
		char *path = realpath(directories[i], NULL);
		char *arguments[] = {"git", "-C", path, "remote", "-v", NULL};
		char *text = path ? output_of(arguments) : NULL;

		free(path);
		if (!text) {
			log_error("--allow-from git: %s is no repository that git can read",
				  directories[i]);
			return -ENODATA;
		}
		found = add_urls(policy, ALLOW_FROM_GIT, text);
		free(text);
	}
	return found < 0 ? found : 0;
}

int allow_from_add(struct route_policy *policy, enum allow_client client,
		   const char *const *directories, unsigned int count)
{
	switch (client) {
	case ALLOW_FROM_NPM:
		return add_npm(policy);
	case ALLOW_FROM_PIP:
		return add_pip(policy);
	case ALLOW_FROM_APT:
		return add_apt(policy);
	case ALLOW_FROM_CARGO:
		return add_cargo(policy);
	default:
		return add_git(policy, directories, count);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/secret_uses.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/base/number.h"
#include "vmm/relay/names.h"

static int add(char *list[LIMIT_SECRETS], unsigned int *count, const char *option, const char *text)
{
	if (*count == LIMIT_SECRETS) {
		log_error("%s: it can be given %u times", option, LIMIT_SECRETS);
		return -E2BIG;
	}
	list[*count] = strdup(text);
	if (!list[*count])
		return log_errno(-ENOMEM, "cannot keep secrets");
	(*count)++;
	return 0;
}

int secret_uses_add_query(struct secret_uses *uses, const char *name)
{
	return add(uses->queries, &uses->query_count, "--secret-query", name);
}

int secret_uses_add_endpoint(struct secret_uses *uses, const char *endpoint)
{
	return add(uses->endpoints, &uses->endpoint_count, "--secret-oauth", endpoint);
}

static struct secret *find_secret(struct secret_set *set, const char *name, size_t length)
{
	for (unsigned int i = 0; set && i < set->count; i++) {
		if (strlen(set->secrets[i].name) == length &&
		    memcmp(set->secrets[i].name, name, length) == 0)
			return &set->secrets[i];
	}
	return NULL;
}

static int apply_query(struct secret_set *set, const char *name)
{
	struct secret *secret = find_secret(set, name, strlen(name));

	/* What is wrong is not shown: it may be a secret. */
	if (!secret) {
		log_error("--secret-query: it must be followed by the NAME of a secret that "
			  "--secret, --secret-file or --secret-cmd names as well");
		return -EINVAL;
	}
	secret->in_query = true;
	return 0;
}

/* The path of a request's target, which has no query. */
static bool is_path(const char *text)
{
	for (const char *at = text; *at; at++) {
		if (*at <= ' ' || *at > '~' || *at == '?' || *at == '#')
			return false;
	}
	return *text == '/' && strlen(text) <= LIMIT_SECRET_PATH_BYTES;
}

/* HOST[:PORT] as one of the secret's. Its index, or -1. */
static int find_host(const struct secret *secret, const char *text, size_t length)
{
	const char *colon = memchr(text, ':', length);
	const size_t name_length = colon ? (size_t)(colon - text) : length;
	char name[SECRET_HOST_BYTES], number[8] = "443";
	uint64_t port;

	if (colon)
		snprintf(number, sizeof(number), "%.*s",
			 (int)bytes_minimum(length - name_length - 1, sizeof(number)), colon + 1);
	if (name_read(text, name_length, name) < 0 ||
	    number_parse(number, 1, UINT16_MAX, &port) < 0)
		return -1;
	for (unsigned int i = 0; i < secret->host_count; i++) {
		if (secret->hosts[i].port == port && strcmp(secret->hosts[i].name, name) == 0)
			return (int)i;
	}
	return -1;
}

static int apply_endpoint(struct secret_set *set, const char *text)
{
	const char *at = strchr(text, '@'), *path = at ? strchr(at, '/') : NULL;
	struct secret *secret = at ? find_secret(set, text, (size_t)(at - text)) : NULL;
	int host;

	if (!secret || !path || !is_path(path)) {
		log_error("--secret-oauth: give NAME@HOST/PATH, a secret that --secret, "
			  "--secret-file or --secret-cmd names as well, and where tokens are given "
			  "out for it");
		return -EINVAL;
	}
	host = find_host(secret, at + 1, (size_t)(path - at) - 1);
	if (host < 0) {
		log_error("--secret-oauth %s: '%.*s' is none of the hosts that the secret is for",
			  secret->name, (int)bytes_minimum((size_t)(path - at) - 1, 300), at + 1);
		return -EINVAL;
	}
	if (secret->endpoint_path[0]) {
		log_error("--secret-oauth %s: it was given before", secret->name);
		return -EINVAL;
	}
	secret->endpoint_host = (unsigned int)host;
	snprintf(secret->endpoint_path, sizeof(secret->endpoint_path), "%s", path);
	return 0;
}

int secret_uses_apply(const struct secret_uses *uses, struct secret_set *set)
{
	int error = 0;

	for (unsigned int i = 0; !error && i < uses->query_count; i++)
		error = apply_query(set, uses->queries[i]);
	for (unsigned int i = 0; !error && i < uses->endpoint_count; i++)
		error = apply_endpoint(set, uses->endpoints[i]);
	return error;
}

void secret_uses_free(struct secret_uses *uses)
{
	for (unsigned int i = 0; i < uses->query_count; i++)
		free(uses->queries[i]);
	for (unsigned int i = 0; i < uses->endpoint_count; i++)
		free(uses->endpoints[i]);
	*uses = (struct secret_uses){0};
}

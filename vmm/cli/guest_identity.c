/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/guest_identity.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/wire/names.h"
#include "vmm/wire/session.h"
#include "vmm/wire/sign.h"

/* The agent's ids when root invokes mvagent: agents refuse to run unattended as root. */
#define AGENT_ID   1000U
#define AGENT_NAME "agent"

/* A name that useradd would take and that can be a path component and a passwd field. */
static int name_is_plain(const char *name)
{
	if (!islower((unsigned char)name[0]) && name[0] != '_')
		return 0;
	for (const char *c = name; *c; c++) {
		if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && !strchr("_-", *c))
			return 0;
	}
	return strlen(name) <= 32;
}

static void identity_set_user(struct guest_identity *identity, int as_root)
{
	const struct passwd *entry = getuid() ? getpwuid(getuid()) : NULL;
	const char *name = entry && name_is_plain(entry->pw_name) ? entry->pw_name : AGENT_NAME;

	if (as_root) {
		identity->uid = identity->gid = 0;
		snprintf(identity->user, sizeof(identity->user), "root");
		snprintf(identity->home, sizeof(identity->home), "/root");
	} else {
		identity->uid = getuid() ? getuid() : AGENT_ID;
		identity->gid = getuid() ? getgid() : AGENT_ID;
		snprintf(identity->user, sizeof(identity->user), "%s", name);
		snprintf(identity->home, sizeof(identity->home), "/home/%s", name);
	}
}

/* The image's user, unless the caller has said who it is to be. */
static void identity_set_image_user(struct guest_identity *identity, const struct image_user *user)
{
	identity->uid = user->uid;
	identity->gid = user->gid;
	snprintf(identity->user, sizeof(identity->user), "%s", user->name);
	snprintf(identity->home, sizeof(identity->home), "%s", user->home);
}

/* Sets or replaces a variable; takes over @text, NAME=VALUE. The array has room. */
static void identity_put(struct guest_identity *identity, char *text)
{
	size_t name = strcspn(text, "=") + 1;

	for (unsigned int i = 0; i < identity->variable_count; i++) {
		/* Those below the count are set; the analyzer takes the count for unknown. */
		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
		if (strncmp(identity->variables[i], text, name) == 0) {
			free(identity->variables[i]);
			identity->variables[i] = text;
			return;
		}
	}
	identity->variables[identity->variable_count++] = text;
}

static int identity_format(struct guest_identity *identity, const char *name, const char *value)
{
	char *text;

	if (asprintf(&text, "%s=%s", name, value) < 0)
		return -ENOMEM;
	identity_put(identity, text);
	return 0;
}

/* TERM goes into paths and programs of the guest: only what a terminfo name looks like. */
static const char *terminal_type(void)
{
	const char *type = getenv("TERM");

	if (!type || !*type || strlen(type) > 64)
		return "dumb";
	for (const char *c = type; *c; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("-+._", *c))
			return "dumb";
	}
	return type;
}

/* Sets or replaces a variable by a copy of NAME=VALUE. */
static int identity_copy(struct guest_identity *identity, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	identity_put(identity, copy);
	return 0;
}

/* Placeholders, and where programs with a trust of their own find the authority. */
static int identity_set_secrets(struct guest_identity *identity, const struct secret_set *set)
{
	static const char *const bundles[] = {
		"SSL_CERT_FILE",      /* OpenSSL, Python, Go, Ruby, httpx */
		"CURL_CA_BUNDLE",     /* curl */
		"GIT_SSL_CAINFO",     /* git */
		"REQUESTS_CA_BUNDLE", /* Python's requests */
		"PIP_CERT",           /* pip */
		"CARGO_HTTP_CAINFO",  "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE",
	};
	int error = 0;

	if (!set || !set->count)
		return 0;
	for (size_t i = 0; !error && i < ARRAY_SIZE(bundles); i++)
		error = identity_format(identity, bundles[i], SESSION_BUNDLE_FILE);
	if (!error) /* Node's is one more than those that it brings along */
		error = identity_format(identity, "NODE_EXTRA_CA_CERTS", SESSION_AUTHORITY_FILE);
	if (!error)
		error = identity_format(identity, "DENO_CERT", SESSION_AUTHORITY_FILE);
	for (unsigned int i = 0; !error && i < set->count; i++)
		error = identity_format(identity, set->secrets[i].name,
					set->secrets[i].placeholder);
	return error;
}

/* Of --secret: its variables, and those above. */
#define SECRET_VARIABLES (LIMIT_SECRETS + 10)

/* Small letters and large ones, of which programs know the ones or the others. Not http_proxy: the
 * proxy knows CONNECT alone, and what is asked for in the clear needs none. */
static int identity_set_proxy(struct guest_identity *identity)
{
	static const char *const variables[] = {"https_proxy", "HTTPS_PROXY", "no_proxy",
						"NO_PROXY"};
	char url[64];
	int error = 0;

	snprintf(url, sizeof(url), "http://%s:%u", NAMES_PROXY_ADDRESS, NAMES_PROXY_PORT);
	for (size_t i = 0; !error && i < ARRAY_SIZE(variables); i++)
		error = identity_format(identity, variables[i],
					i < 2 ? url : "localhost,127.0.0.1,::1");
	return error;
}

#define PROXY_VARIABLES 5 /* and the agent's */

static int identity_set_variables(struct guest_identity *identity,
				  const struct run_options *options,
				  const struct image_settings *settings, int terminal)
{
	char *const *images = settings ? settings->variables : NULL;
	int error;

	/* The six or seven below, the image's, the user's, and a NULL. */
	identity->variables = calloc(options->variables.count + image_strings_count(images) + 8 +
					     SECRET_VARIABLES + PROXY_VARIABLES,
				     sizeof(char *));
	if (!identity->variables)
		return -ENOMEM;
	error = identity_format(identity, "PATH",
				"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	error = error ? error : identity_format(identity, "HOME", identity->home);
	error = error ? error : identity_format(identity, "USER", identity->user);
	error = error ? error : identity_format(identity, "LOGNAME", identity->user);
	error = error ? error : identity_format(identity, "SHELL", "/bin/bash");
	error = error ? error : identity_format(identity, "LANG", "C.UTF-8");
	if (!error && terminal)
		error = identity_format(identity, "TERM", terminal_type());
	for (; !error && images && *images; images++)
		error = identity_copy(identity, *images);
	error = error ? error : identity_set_secrets(identity, options->secrets.set);
	if (!error && options->network.proxy_env)
		error = identity_set_proxy(identity);
	if (!error && options->sign.policy)
		error = identity_format(identity, "SSH_AUTH_SOCK", SIGN_GUEST_SOCKET);
	for (unsigned int i = 0; !error && i < options->variables.count; i++) {
		const struct run_variable *given = &options->variables.list[i];

		error = strchr(given->text, '=')
				? identity_copy(identity, given->text)
				: identity_format(identity, given->text, run_variable_value(given));
	}
	return error;
}

int guest_identity_create(struct guest_identity *identity, const struct run_options *options,
			  const struct image_settings *settings, int terminal)
{
	int error;

	*identity = (struct guest_identity){0};
	identity_set_user(identity, options->as_root);
	if (settings && settings->has_user && !options->user_is_given)
		identity_set_image_user(identity, &settings->user);
	snprintf(identity->host_name, sizeof(identity->host_name), "mvagent");
	error = identity_set_variables(identity, options, settings, terminal);
	if (error) {
		guest_identity_destroy(identity);
		return log_errno(error, "cannot build the command's environment");
	}
	return 0;
}

void guest_identity_destroy(struct guest_identity *identity)
{
	for (unsigned int i = 0; i < identity->variable_count; i++)
		free(identity->variables[i]);
	free(identity->variables);
	identity->variables = NULL;
	identity->variable_count = 0;
}

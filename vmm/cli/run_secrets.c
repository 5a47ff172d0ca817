/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/certificates.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/number.h"
#include "vmm/record/mask.h"

static const char *const option_names[] = {"--secret", "--secret-file", "--secret-cmd"};

/* HOST[:PORT] */
static int add_host(struct secret *secret, struct route_policy *policy, const char *option,
		    const char *text, size_t length)
{
	struct secret_host *host = &secret->hosts[secret->host_count];
	const char *colon = memchr(text, ':', length);
	const size_t name = colon ? (size_t)(colon - text) : length;
	char place[SECRET_HOST_BYTES + 8], origin[512], number[8] = "443";
	uint64_t port = 0;

	if (colon && (size_t)snprintf(number, sizeof(number), "%.*s", (int)(length - name - 1),
				      colon + 1) >= sizeof(number))
		number[0] = '\0'; /* no port is that long */
	if (secret->host_count == LIMIT_SECRET_HOSTS) {
		log_error("%s %s: %u hosts can be given", option, secret->name, LIMIT_SECRET_HOSTS);
		return -E2BIG;
	}
	if (name_read(text, name, host->name) < 0 ||
	    number_parse(number, 1, UINT16_MAX, &port) < 0) {
		log_error("%s %s: '%.*s' is not the full name of a host, such as api.example.com "
			  "(or api.example.com:8443)",
			  option, secret->name, (int)bytes_minimum(length, 300), text);
		return -EINVAL;
	}
	host->port = (uint16_t)port;
	secret->host_count++;
	snprintf(place, sizeof(place), "%s:%u", host->name, host->port);
	snprintf(origin, sizeof(origin), "%s %s@%s", option, secret->name, place);
	return route_policy_add(policy, false, place, origin);
}

static int add_hosts(struct secret *secret, struct route_policy *policy, const char *option,
		     const char *list)
{
	int error = 0;

	while (!error) {
		size_t length = strcspn(list, ",");

		error = add_host(secret, policy, option, list, length);
		if (!list[length])
			break;
		list += length + 1;
	}
	return error;
}

static bool is_name(const char *text, size_t length)
{
	static const char letters[] = "_0123456789"
				      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return length && length <= LIMIT_SECRET_NAME_BYTES && !(*text >= '0' && *text <= '9') &&
	       strspn(text, letters) >= length;
}

static int find_secret(const struct run_secrets *secrets, const char *name)
{
	for (unsigned int i = 0; secrets->set && i < secrets->set->count; i++) {
		if (strcmp(secrets->set->secrets[i].name, name) == 0)
			return (int)i;
	}
	return -1;
}

int run_secrets_apply(struct run_secrets *secrets, struct route_policy *policy, int option,
		      const char *value)
{
	const char *at = strrchr(value, '@'), *equals = strchr(value, '=');
	const bool has_place = option != SECRET_OPTION;
	size_t length;
	const char *name_of_option;
	struct secret *secret;
	unsigned int index;

	if (option == SECRET_QUERY_OPTION)
		return secret_uses_add_query(&secrets->uses, value);
	if (option == SECRET_OAUTH_OPTION)
		return secret_uses_add_endpoint(&secrets->uses, value);
	name_of_option = option_names[option - SECRET_OPTION];
	if (!secrets->set)
		secrets->set = calloc(1, sizeof(*secrets->set));
	if (!secrets->set)
		return log_errno(-ENOMEM, "cannot keep secrets");
	index = secrets->set->count;
	if (index == LIMIT_SECRETS) {
		log_error("%s: %u secrets can be given", name_of_option, LIMIT_SECRETS);
		return -E2BIG;
	}
	length = at ? (size_t)((has_place && equals ? equals : at) - value) : 0;
	if (!at || !at[1] || (has_place && (!equals || equals > at || equals + 1 == at)) ||
	    !is_name(value, length)) {
		/* What is wrong is not shown: it may be a secret. */
		log_error("%s: give %s@HOST", name_of_option,
			  option == SECRET_OPTION        ? "NAME, a variable of yours, as NAME"
			  : option == SECRET_FILE_OPTION ? "NAME=PATH"
							 : "'NAME=COMMAND'");
		return -EINVAL;
	}
	secret = &secrets->set->secrets[index];
	memcpy(secret->name, value, length);
	secret->name[length] = '\0';
	if (find_secret(secrets, secret->name) >= 0) {
		log_error("%s %s: it was given before; all its hosts go into one option, with "
			  "commas between them",
			  name_of_option, secret->name);
		return -EINVAL;
	}
	secrets->sources[index] = (enum secret_source)(option - SECRET_OPTION);
	if (has_place) {
		secrets->places[index] = strndup(equals + 1, (size_t)(at - equals) - 1);
		if (!secrets->places[index])
			return log_errno(-ENOMEM, "cannot keep secrets");
	}
	secrets->set->count++;
	return add_hosts(secret, policy, name_of_option, at + 1);
}

/* All that can be read, at most one byte more than a secret and a line's end may have. */
static int read_value(struct secret *secret, int fd)
{
	char bytes[LIMIT_SECRET_BYTES + 3];
	size_t length = 0;
	ssize_t count = 1;

	while (count != 0 && length < sizeof(bytes)) {
		count = read(fd, bytes + length, sizeof(bytes) - length);
		if (count < 0 && errno != EINTR)
			break;
		length += count > 0 ? (size_t)count : 0;
	}
	if (count >= 0 && length && bytes[length - 1] == '\n')
		length--;
	if (count >= 0 && length && bytes[length - 1] == '\r')
		length--;
	/* One that is too long is not kept, and objected to later. */
	secret->length = length;
	if (length <= LIMIT_SECRET_BYTES)
		memcpy(secret->value, bytes, length);
	explicit_bzero(bytes, sizeof(bytes));
	return count < 0 ? -errno : 0;
}

static int read_file(struct secret *secret, const char *path)
{
	FD_CLEANUP int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int error = fd < 0 ? -errno : read_value(secret, fd);

	return error ? log_errno(error, "--secret-file %s=%s: cannot read it", secret->name, path)
		     : 0;
}

/* The user's own command, which may ask for a pass phrase on the terminal. */
static int start_command(const char *command, int output, pid_t *child)
{
	char *arguments[] = {"sh", "-c", (char *)(uintptr_t)command, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int error;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	/* Ours are blocked, so that they end a run in order. */
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	error = posix_spawn(child, "/bin/sh", &actions, &attributes, arguments, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -error;
}

static int read_command(struct secret *secret, const char *command)
{
	int pair[2] = {-1, -1}, status = 0, error;
	pid_t child = -1;

	error = pipe2(pair, O_CLOEXEC) < 0 ? -errno : start_command(command, pair[1], &child);
	fd_close(&pair[1]);
	if (error) {
		fd_close(&pair[0]);
		return log_errno(error, "--secret-cmd %s: cannot run its command", secret->name);
	}
	error = read_value(secret, pair[0]);
	fd_close(&pair[0]);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	/* Of one that is too long the rest was not read, which may end the command (SIGPIPE). */
	if (status && secret->length <= LIMIT_SECRET_BYTES) {
		log_error("--secret-cmd %s: its command %s %d", secret->name,
			  WIFEXITED(status) ? "failed with status" : "was ended by signal",
			  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
		return -ENODATA;
	}
	return error ? log_errno(error, "--secret-cmd %s: cannot read what its command says",
				 secret->name)
		     : 0;
}

static int read_variable(struct secret *secret)
{
	const char *value = getenv(secret->name);

	if (!value) {
		log_error("--secret %s: it is not set in your environment; set it, or use "
			  "--secret-file or --secret-cmd",
			  secret->name);
		return -ENODATA;
	}
	secret->length = strlen(value);
	if (secret->length <= LIMIT_SECRET_BYTES)
		memcpy(secret->value, value, secret->length);
	return 0;
}

static int find_value(struct run_secrets *secrets, unsigned int index)
{
	struct secret *secret = &secrets->set->secrets[index];
	const char *objection;
	int error;

	if (secrets->sources[index] == SECRET_FROM_FILE)
		error = read_file(secret, secrets->places[index]);
	else if (secrets->sources[index] == SECRET_FROM_COMMAND)
		error = read_command(secret, secrets->places[index]);
	else
		error = read_variable(secret);
	if (error)
		return error;
	objection = secret_objection(secret->value, secret->length);
	if (objection) {
		log_error("%s %s: its value %s", option_names[secrets->sources[index]],
			  secret->name, objection);
		return -EINVAL;
	}
	error = secret_make_placeholder(secret);
	return error ? log_errno(error, "cannot make a placeholder") : 0;
}

static void tell_relay(const struct secret *secret, struct relay_settings *settings)
{
	struct placeholder *placeholder = &settings->placeholders[settings->placeholder_count++];

	snprintf(placeholder->name, sizeof(placeholder->name), "%s", secret->name);
	snprintf(placeholder->text, sizeof(placeholder->text), "%s", secret->placeholder);
	for (unsigned int i = 0; i < secret->host_count; i++) {
		struct terminated_host *host = &settings->terminated[settings->terminated_count++];

		snprintf(host->name, sizeof(host->name), "%s", secret->hosts[i].name);
		host->port = secret->hosts[i].port;
	}
}

/* An author (GIT_AUTHOR_NAME) is not the part of "authorization" that is looked for. */
static void warn_of_variable(const struct run_variable *variable, const char *name)
{
	if (!*name || !mask_names_secret(name, strlen(name)) || strcasestr(name, "author_"))
		return;
	log_warning("%s%s%s%s: the command has what may be a secret; --secret %s@HOST would let it "
		    "use it without having it",
		    variable->file ? "--env-file " : "--env ",
		    variable->file ? variable->file : name, variable->file ? ", " : "",
		    variable->file ? name : "", name);
}

/* Of a variable there is to be the value or a placeholder. */
static int check_variable(const struct run_secrets *secrets, const struct run_variable *variable)
{
	char name[LIMIT_SECRET_NAME_BYTES + 1] = "";
	const size_t length = strcspn(variable->text, "=");

	if (length < sizeof(name))
		memcpy(name, variable->text, length);
	if (find_secret(secrets, name) < 0) {
		warn_of_variable(variable, name);
		return 0;
	}
	if (variable->file)
		log_error("--env-file %s has %s, and --secret %s is given: take it out of one of "
			  "them",
			  variable->file, name, name);
	else
		log_error("--env %s and --secret %s: give one of them", name, name);
	return -EINVAL;
}

int run_secrets_find(struct run_secrets *secrets, const struct run_variables *variables)
{
	int error = secret_uses_apply(&secrets->uses, secrets->set);

	for (unsigned int i = 0; !error && i < variables->count; i++)
		error = check_variable(secrets, &variables->list[i]);
	for (unsigned int i = 0; !error && secrets->set && i < secrets->set->count; i++) {
		if (secrets->sources[i] != SECRET_FROM_COMMAND)
			error = find_value(secrets, i);
	}
	return error;
}

int run_secrets_prepare(struct run_secrets *secrets, struct relay_settings *settings)
{
	int error = 0;

	for (unsigned int i = 0; !error && secrets->set && i < secrets->set->count; i++) {
		if (secrets->sources[i] == SECRET_FROM_COMMAND)
			error = find_value(secrets, i);
		if (!error)
			tell_relay(&secrets->set->secrets[i], settings);
	}
	return error;
}

int run_secrets_open_trust(void)
{
	const char *given = getenv("SSL_CERT_FILE");
	int fd;

	if (given && *given) {
		fd = open(given, O_RDONLY | O_CLOEXEC);
		return fd < 0 ? log_errno(-errno, "SSL_CERT_FILE %s: cannot read it", given) : fd;
	}
	for (size_t i = 0; i < ARRAY_SIZE(certificate_bundles); i++) {
		fd = open(certificate_bundles[i], O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	log_error("--secret: the certificates that this host trusts were not found; name their "
		  "file in SSL_CERT_FILE");
	return -ENOENT;
}

void run_secrets_forget(struct run_secrets *secrets)
{
	for (unsigned int i = 0; secrets->set && i < secrets->set->count; i++) {
		struct secret *secret = &secrets->set->secrets[i];
		char *value =
			secrets->sources[i] == SECRET_FROM_VARIABLE ? getenv(secret->name) : NULL;

		explicit_bzero(secret->value, sizeof(secret->value));
		/* The environment that others see in /proc is this very memory. */
		if (value)
			explicit_bzero(value, strlen(value));
	}
}

void run_secrets_free(struct run_secrets *secrets)
{
	if (secrets->set)
		secret_set_wipe(secrets->set);
	free(secrets->set);
	secrets->set = NULL;
	secret_uses_free(&secrets->uses);
	for (unsigned int i = 0; i < LIMIT_SECRETS; i++) {
		free(secrets->places[i]);
		secrets->places[i] = NULL;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_sign.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/number.h"
#include "vmm/cli/program_output.h"
#include "vmm/secret/base64.h"

#define SYSTEM_HOSTS_FILE "/etc/ssh/ssh_known_hosts"
#define AGENT_SECONDS     10 /* that it may take to take a request */

/* Bytes of a key as text, and more than that. */
#define KEY_TEXT_BYTES (2 * (size_t)LIMIT_SIGN_KEY_BYTES)

int run_sign_check(const struct run_sign *sign)
{
	if (!sign->known_hosts || sign->policy)
		return 0;
	log_error("--known-hosts %s: it is for --ssh-agent, which was not given; give --ssh-agent "
		  "KEY@HOST, or leave it out",
		  sign->known_hosts);
	return -EINVAL;
}

static int is_wrong(const char *value)
{
	log_error("--ssh-agent %s: give KEY@HOST: what ssh-add -l says of a key (its "
		  "comment, with * for any part, or its SHA256:...), and the full name of a host",
		  value);
	return -EINVAL;
}

int run_sign_add(struct run_sign *sign, struct route_policy *policy, const char *value)
{
	const char *at = strrchr(value, '@'), *colon = at ? strchr(at, ':') : NULL;
	const size_t pattern = at ? (size_t)(at - value) : 0;
	char place[NAME_BYTES + 8], origin[LIMIT_SIGN_PATTERN_BYTES + NAME_BYTES + 32];
	struct sign_rule *rule;
	uint64_t port = SSH_PORT;

	if (!sign->policy)
		sign->policy = calloc(1, sizeof(*sign->policy));
	if (!sign->policy)
		return log_errno(-ENOMEM, "--ssh-agent");
	if (sign->policy->count == LIMIT_SIGN_RULES) {
		log_error("--ssh-agent %s: %u can be given", value, LIMIT_SIGN_RULES);
		return -E2BIG;
	}
	rule = &sign->policy->rules[sign->policy->count];
	if (!pattern || pattern > LIMIT_SIGN_PATTERN_BYTES || strpbrk(value, "\t\n") ||
	    name_read(at + 1, colon ? (size_t)(colon - at - 1) : strlen(at + 1), rule->host) < 0 ||
	    (colon && number_parse(colon + 1, 1, UINT16_MAX, &port) < 0))
		return is_wrong(value);
	memcpy(rule->pattern, value, pattern);
	rule->port = (uint16_t)port;
	sign->policy->count++;
	snprintf(place, sizeof(place), "%s:%u", rule->host, rule->port);
	snprintf(origin, sizeof(origin), "--ssh-agent %s@%s", rule->pattern, place);
	return route_policy_add(policy, false, place, origin);
}

/* Base64 of a key of this type. 0 or -EINVAL. */
static int read_key(const char *type, const char *text, struct sign_key *key)
{
	struct reader reader = {0};
	char plain[KEY_TEXT_BYTES];
	const size_t length = strlen(text);
	long count = length < KEY_TEXT_BYTES ? base64_decode(text, length, plain) : -1;

	if (count <= 0 || count > (long)LIMIT_SIGN_KEY_BYTES)
		return -EINVAL;
	memcpy(key->bytes, plain, (size_t)count);
	key->length = (uint32_t)count;
	reader.rest = (struct bytes){key->bytes, key->length};
	return bytes_equal_text(reader_string(&reader), type) ? 0 : -EINVAL;
}

static void remove_key(struct sign_rule *rule, const struct sign_key *key)
{
	for (uint32_t i = 0; i < rule->host_key_count; i++) {
		struct sign_key *one = &rule->host_keys[i];

		if (bytes_equal((struct bytes){one->bytes, one->length},
				(struct bytes){key->bytes, key->length}))
			*one = rule->host_keys[--rule->host_key_count];
	}
}

/* [@MARKER] HOSTS TYPE KEY [COMMENT]; @marker: NULL without one. Whether it is such a line. */
static bool read_line(char *line, const char **marker, struct sign_key *key)
{
	char *words[4] = {NULL}, *rest = line;
	unsigned int first;

	for (unsigned int i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = strtok_r(rest, " \t\r", &rest);
	first = words[0] && words[0][0] == '@';
	*marker = first ? words[0] : NULL;
	return words[0] && words[0][0] != '#' && words[first + 2] &&
	       read_key(words[first + 1], words[first + 2], key) == 0;
}

uint32_t run_sign_read_keys(char *lines, struct sign_rule *rule)
{
	struct sign_key *revoked = calloc(LIMIT_SIGN_HOST_KEYS, sizeof(*revoked));
	uint32_t revoked_count = 0;
	bool too_many = false;
	const char *marker;
	struct sign_key key;

	for (char *line; revoked && (line = strtok_r(lines, "\n", &lines));) {
		if (!read_line(line, &marker, &key))
			continue;
		if (marker && strcmp(marker, "@revoked") == 0) {
			too_many |= revoked_count == LIMIT_SIGN_HOST_KEYS;
			if (!too_many)
				revoked[revoked_count++] = key;
		} else if (!marker && rule->host_key_count < LIMIT_SIGN_HOST_KEYS) {
			rule->host_keys[rule->host_key_count++] = key;
		}
	}
	for (uint32_t i = 0; i < revoked_count; i++)
		remove_key(rule, &revoked[i]);
	/* Who knows what the others are? */
	if (!revoked || too_many)
		rule->host_key_count = 0;
	free(revoked);
	return rule->host_key_count;
}

/* @file: NULL for the user's own. */
static char *ask_known_hosts(const char *host, const char *file)
{
	char *arguments[] = {"ssh-keygen", "-F", (char *)(uintptr_t)host, "-f", NULL, NULL};

	arguments[4] = (char *)(uintptr_t)file;
	if (!file)
		arguments[3] = NULL;
	return program_output(arguments, "/");
}

static void write_place(const struct sign_rule *rule, char place[NAME_BYTES + 16])
{
	if (rule->port == SSH_PORT)
		snprintf(place, NAME_BYTES + 16, "%s", rule->host);
	else
		snprintf(place, NAME_BYTES + 16, "[%s]:%u", rule->host, rule->port);
}

/* Lines of the file that are about @place, behind what @lines has already: a key that one file has
 * and another revokes is none. 0 or -errno with the sentence printed. */
static int add_lines(char **lines, const char *place, const char *file)
{
	char *found = ask_known_hosts(place, file), *joined = NULL;
	int length = 0;

	if (!found && errno != ENODATA)
		return log_errno(-errno, "--ssh-agent: cannot run ssh-keygen");
	if (found)
		length = asprintf(&joined, "%s%s\n", *lines ? *lines : "", found);
	free(found);
	if (length < 0)
		return log_errno(-ENOMEM, "--ssh-agent");
	if (joined) {
		free(*lines);
		*lines = joined;
	}
	return 0;
}

static int find_keys(const struct run_sign *sign, struct sign_rule *rule)
{
	char place[NAME_BYTES + 16], *lines = NULL, *path = NULL;
	int error;

	write_place(rule, place);
	if (sign->known_hosts && !(path = realpath(sign->known_hosts, NULL)))
		return log_errno(-errno, "--known-hosts %s: cannot read it", sign->known_hosts);
	error = add_lines(&lines, place, path);
	if (!error && !path && access(SYSTEM_HOSTS_FILE, R_OK) == 0)
		error = add_lines(&lines, place, SYSTEM_HOSTS_FILE);
	free(path);
	if (!error && (!lines || !run_sign_read_keys(lines, rule))) {
		log_error("--ssh-agent %s@%s: your known_hosts has no key of %s; log in there "
			  "once, or name a file with --known-hosts",
			  rule->pattern, rule->host, place);
		error = -ENODATA;
	}
	free(lines);
	return error;
}

static void write_keys(FILE *file, const struct sign_rule *rule)
{
	char place[NAME_BYTES + 16], text[KEY_TEXT_BYTES];

	write_place(rule, place);
	for (uint32_t i = 0; i < rule->host_key_count; i++) {
		const struct sign_key *key = &rule->host_keys[i];
		struct reader reader = {.rest = {key->bytes, key->length}};
		struct bytes type = reader_string(&reader);

		memset(text, 0, sizeof(text));
		base64_encode((const char *)key->bytes, key->length, text);
		fprintf(file, "%s %.*s %s\n", place, (int)type.length, (const char *)type.data,
			text);
	}
}

int run_sign_prepare(struct run_sign *sign)
{
	size_t size;
	FILE *file;
	int error = 0;

	if (!sign->policy)
		return 0;
	for (uint32_t i = 0; !error && i < sign->policy->count; i++)
		error = find_keys(sign, &sign->policy->rules[i]);
	if (error)
		return error;
	file = open_memstream(&sign->guest_lines, &size);
	if (!file)
		return log_errno(-errno, "--ssh-agent");
	for (uint32_t i = 0; i < sign->policy->count; i++)
		write_keys(file, &sign->policy->rules[i]);
	return fclose(file) ? log_errno(-ENOMEM, "--ssh-agent") : 0;
}

int run_sign_open_agent(void)
{
	const struct timeval patience = {.tv_sec = AGENT_SECONDS};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("SSH_AUTH_SOCK");
	FD_CLEANUP int fd = -1;

	if (!path || !*path || strlen(path) >= sizeof(address.sun_path)) {
		log_error(
			"--ssh-agent: there is no ssh-agent: SSH_AUTH_SOCK is not set; start one, "
			"and add the key with ssh-add");
		return -ENOENT;
	}
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return log_errno(-errno, "--ssh-agent: cannot reach the agent at %s", path);
	return fd_take(&fd);
}

void run_sign_free(struct run_sign *sign)
{
	free(sign->policy);
	free(sign->guest_lines);
	sign->policy = NULL;
	sign->guest_lines = NULL;
}

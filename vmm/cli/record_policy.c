/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/record_policy.h"

#include <stdio.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/fs/coherence.h"
#include "vmm/fs/policy.h"
#include "vmm/record/canonical.h"

#define TEXT_LIMIT 4096U

static void add_text(cJSON *array, const char *text)
{
	cJSON_AddItemToArray(array, canonical_text(text, TEXT_LIMIT));
}

static void add_share(cJSON *shares, const struct shared_directory *directory)
{
	cJSON *share = cJSON_CreateObject();

	cJSON_AddItemToArray(shares, share);
	cJSON_AddItemToObject(share, "host", canonical_text(directory->host_path, TEXT_LIMIT));
	cJSON_AddItemToObject(share, "guest", canonical_text(directory->path, TEXT_LIMIT));
	cJSON_AddStringToObject(share, "mode",
				directory->read_only ? "ro"
				: directory->review  ? "review"
						     : "rw");
}

/* The user's patterns of one list, or the built-in ones. */
static void add_patterns(cJSON *rules, const char *name, enum policy_list list,
			 const struct run_options *options)
{
	static const char *const names[POLICY_LIST_COUNT] = {
		[POLICY_HIDE] = "--hide",
		[POLICY_SHOW] = "--show",
		[POLICY_PROTECT] = "--protect",
		[POLICY_UNPROTECT] = "--unprotect",
	};
	cJSON *array = cJSON_AddArrayToObject(rules, name);
	const char *pattern;

	for (unsigned int i = 0; options && i < options->rule_count; i++) {
		if (strcmp(options->rules[i].option, names[list]) == 0)
			add_text(array, options->rules[i].pattern);
	}
	for (unsigned int i = 0; !options && (pattern = policy_default(list, i)); i++)
		add_text(array, pattern);
}

static void add_rules(cJSON *policy, const char *name, const struct run_options *options)
{
	cJSON *rules = cJSON_AddObjectToObject(policy, name);

	add_patterns(rules, "hide", POLICY_HIDE, options);
	add_patterns(rules, "show", POLICY_SHOW, options);
	add_patterns(rules, "protect", POLICY_PROTECT, options);
	add_patterns(rules, "unprotect", POLICY_UNPROTECT, options);
}

static void add_root(cJSON *policy, const struct run_root *root)
{
	cJSON *object = cJSON_AddObjectToObject(policy, "root"), *array;

	cJSON_AddStringToObject(object, "kind", root->image ? "image" : "host");
	if (root->image)
		cJSON_AddItemToObject(object, "image", canonical_text(root->image, TEXT_LIMIT));
	array = cJSON_AddArrayToObject(object, "add");
	for (unsigned int i = 0; i < root->add_count; i++)
		add_text(array, root->adds[i]);
	array = cJSON_AddArrayToObject(object, "hide");
	for (unsigned int i = 0; i < root->hide_count; i++)
		add_text(array, root->hides[i]);
	canonical_add_count(object, "scratch_mib", (double)root->scratch_mib);
}

/* What a rule is about, wherever it comes from: a file that is named alone could be another one by
 * now. */
static void add_route(cJSON *list, const struct route_rule *rule)
{
	char address[ADDRESS_TEXT_BYTES], host[NAME_BYTES + ADDRESS_TEXT_BYTES];
	cJSON *object = cJSON_CreateObject();

	if (rule->target == ROUTE_ADDRESS)
		address_write(&rule->address, address);
	snprintf(host, sizeof(host), "%s%s", rule->target == ROUTE_BELOW ? "*." : "",
		 rule->target == ROUTE_ADDRESS ? address : rule->name);
	cJSON_AddItemToObject(object, "by", canonical_text(rule->origin, TEXT_LIMIT));
	cJSON_AddBoolToObject(object, "deny", rule->deny);
	cJSON_AddItemToObject(object, "host", canonical_text(host, sizeof(host)));
	if (rule->port)
		canonical_add_count(object, "port", rule->port);
	else
		cJSON_AddNullToObject(object, "port");
	cJSON_AddItemToArray(list, object);
}

/* Nothing is allowed where all of it is empty. */
static void add_network(cJSON *policy, const struct relay_settings *settings)
{
	cJSON *network = cJSON_AddObjectToObject(policy, "network"), *list;

	list = cJSON_AddArrayToObject(network, "rules");
	for (unsigned int i = 0; i < settings->policy.count; i++)
		add_route(list, &settings->policy.rules[i]);
	list = cJSON_AddArrayToObject(network, "private");
	for (unsigned int i = 0; i < settings->policy.private_count; i++) {
		const struct route_private *added = &settings->policy.privates[i];
		char address[ADDRESS_TEXT_BYTES], text[NAME_BYTES + ADDRESS_TEXT_BYTES + 16];

		address_write(&added->address, address);
		snprintf(text, sizeof(text), "%s:%u at %s", added->name, added->port, address);
		add_text(list, text);
	}
	cJSON_AddBoolToObject(network, "any_server_name", settings->policy.any_server_name);
	cJSON_AddItemToObject(network, "servers", canonical_text(settings->servers, TEXT_LIMIT));
	canonical_add_count(network, "byte_limit", (double)settings->byte_limit);
	list = cJSON_AddArrayToObject(network, "published");
	for (unsigned int i = 0; i < settings->published_count; i++) {
		const struct published_port *published = &settings->published[i];
		char address[ADDRESS_TEXT_BYTES];
		cJSON *port = cJSON_CreateObject();

		address_write(&published->address, address);
		cJSON_AddStringToObject(port, "address", address);
		canonical_add_count(port, "port", published->port);
		canonical_add_count(port, "guest_port", published->guest_port);
		cJSON_AddItemToArray(list, port);
	}
}

static bool has_text(const cJSON *array, const char *text)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, array)
	{
		if (strcmp(cJSON_GetStringValue(item), text) == 0)
			return true;
	}
	return false;
}

/* Names alone: no value of the user's is in the record. */
static void add_environment(cJSON *policy, const struct run_options *options)
{
	cJSON *array = cJSON_AddArrayToObject(policy, "environment");

	for (unsigned int i = 0; i < options->variables.count; i++) {
		const char *variable = options->variables.list[i].text;
		size_t length = strcspn(variable, "=");
		char name[256];

		if (length >= sizeof(name))
			length = sizeof(name) - 1;
		memcpy(name, variable, length);
		name[length] = '\0';
		if (!has_text(array, name)) /* the last one counts, and its name is the same */
			add_text(array, name);
	}
}

/* 0: no limit. */
static void add_cgroup(cJSON *policy, const struct cgroup_limits *limits)
{
	cJSON *object = cJSON_AddObjectToObject(policy, "cgroup");

	canonical_add_count(object, "memory_mib", (double)limits->memory_mib);
	canonical_add_count(object, "pids", (double)limits->pids);
	canonical_add_count(object, "cpu_percent", (double)limits->cpu_percent);
	canonical_add_count(object, "io_mib", (double)limits->io_mib);
}

/* Names and hosts: no value is in the record, and no placeholder. */
static void add_secrets(cJSON *policy, const struct secret_set *set)
{
	cJSON *array = cJSON_AddArrayToObject(policy, "secrets");

	for (unsigned int i = 0; set && i < set->count; i++) {
		const struct secret *secret = &set->secrets[i];
		cJSON *object = cJSON_CreateObject(), *hosts;

		cJSON_AddItemToArray(array, object);
		cJSON_AddStringToObject(object, "name", secret->name);
		hosts = cJSON_AddArrayToObject(object, "hosts");
		for (unsigned int j = 0; j < secret->host_count; j++) {
			char place[SECRET_HOST_BYTES + 8];

			snprintf(place, sizeof(place), "%s:%u", secret->hosts[j].name,
				 secret->hosts[j].port);
			add_text(hosts, place);
		}
	}
}

/* Which keys may be used where. */
static void add_signing(cJSON *policy, const struct sign_policy *signing)
{
	cJSON *array = cJSON_AddArrayToObject(policy, "ssh_agent");

	for (uint32_t i = 0; signing && i < signing->count; i++) {
		const struct sign_rule *rule = &signing->rules[i];
		char text[LIMIT_SIGN_PATTERN_BYTES + SIGN_HOST_BYTES + 16];

		/* As the user gives it: a reason (--why) is found by that. */
		if (rule->port == SSH_PORT)
			snprintf(text, sizeof(text), "%s@%s", rule->pattern, rule->host);
		else
			snprintf(text, sizeof(text), "%s@%s:%u", rule->pattern, rule->host,
				 rule->port);
		add_text(array, text);
	}
}

cJSON *record_policy(const struct run_options *options, const struct run_shares *shares)
{
	cJSON *policy = cJSON_CreateObject();
	cJSON *array = cJSON_AddArrayToObject(policy, "shares");

	for (unsigned int i = 0; i < shares->count; i++)
		add_share(array, &shares->directories[i]);
	add_rules(policy, "rules", options);
	add_rules(policy, "default_rules", NULL);
	cJSON_AddStringToObject(policy, "cache", fs_cache_name(options->cache));
	add_root(policy, &options->root);
	add_network(policy, &options->network.settings);
	add_environment(policy, options);
	add_secrets(policy, options->secrets.set);
	add_signing(policy, options->sign.policy);
	cJSON_AddBoolToObject(policy, "git_identity", options->git_identity);
	cJSON_AddStringToObject(policy, "user", options->as_root ? "root" : "agent");
	canonical_add_count(policy, "cpus", options->cpus);
	canonical_add_count(policy, "memory_mib", (double)options->memory_mib);
	canonical_add_count(policy, "timeout_seconds", options->timeout_seconds);
	add_cgroup(policy, &options->cgroup);
	cJSON_AddBoolToObject(policy, "share_anyway", options->share_anyway);
	cJSON_AddBoolToObject(policy, "allow_degraded", options->allow_degraded);
	cJSON_AddBoolToObject(policy, "terminal_passthrough", options->terminal_passthrough);
	return policy;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/relay/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/base/number.h"

static const uint16_t default_ports[] = {ROUTE_PORT_TLS, ROUTE_PORT_PLAIN};

/* What a question is about. */
struct subject {
	bool is_address;
	struct address address;
	char name[NAME_BYTES];
};

static bool subject_read(struct subject *subject, const char *host, size_t length)
{
	subject->is_address = address_read(host, length, &subject->address) == 0;
	return subject->is_address || name_read(host, length, subject->name) == 0;
}

/* Parts HOST:PORT; an IPv6 address without brackets has no port. Returns the host's length, or 0
 * with a sentence printed. */
static size_t split_port(const char *text, const char *origin, uint16_t *port)
{
	const char *colon = strrchr(text, ':');
	uint64_t number;

	*port = 0;
	if (!colon || (text[0] != '[' && strchr(text, ':') != colon) ||
	    (text[0] == '[' && text[strlen(text) - 1] == ']'))
		return strlen(text);
	if (strstr(text, "://")) {
		log_error("%s: that is a URL; give the host alone, such as example.com", origin);
		return 0;
	}
	if (number_parse(colon + 1, 1, UINT16_MAX, &number) < 0) {
		log_error("%s: '%s' is no port: it is a number from 1 to 65535", origin, colon + 1);
		return 0;
	}
	*port = (uint16_t)number;
	return (size_t)(colon - text);
}

static int rule_read_host(struct route_rule *rule, const char *text, size_t length,
			  const char *origin)
{
	if (address_read(text, length, &rule->address) == 0) {
		rule->target = ROUTE_ADDRESS;
		return 0;
	}
	rule->target = ROUTE_HOST;
	if (length > 2 && text[0] == '*' && text[1] == '.') {
		rule->target = ROUTE_BELOW;
		text += 2;
		length -= 2;
	}
	if (name_read(text, length, rule->name) < 0) {
		log_error("%s: '%.*s' is no host: give a name such as example.com, in letters, "
			  "digits and hyphens (other scripts as xn--...), *.example.com for all "
			  "below it, or an IP address",
			  origin, (int)length, text);
		return -EINVAL;
	}
	if (rule->target == ROUTE_BELOW && !rule->deny && !strchr(rule->name, '.')) {
		log_error("%s: *.%s would be a whole top-level domain; name more of the host",
			  origin, rule->name);
		return -EINVAL;
	}
	return 0;
}

int route_policy_add(struct route_policy *policy, bool deny, const char *text, const char *origin)
{
	struct route_rule rule = {.deny = deny}, *grown;
	size_t length = split_port(text, origin, &rule.port);
	int error;

	if (!length) {
		if (!*text || rule.port)
			log_error("%s: a host is needed, such as example.com", origin);
		return -EINVAL;
	}
	error = rule_read_host(&rule, text, length, origin);
	if (error)
		return error;
	if (policy->count == LIMIT_ROUTE_RULES) {
		log_error("%s: there can be %u rules for hosts at most", origin, LIMIT_ROUTE_RULES);
		return -E2BIG;
	}
	grown = reallocarray(policy->rules, policy->count + 1, sizeof(*grown));
	if (grown)
		policy->rules = grown;
	rule.origin = strdup(origin);
	if (!grown || !rule.origin) {
		free(rule.origin);
		return log_errno(-ENOMEM, "%s", origin);
	}
	policy->rules[policy->count++] = rule;
	return 0;
}

int route_policy_add_private(struct route_policy *policy, const char *name, uint16_t port,
			     const struct address *address)
{
	struct route_private *added = &policy->privates[policy->private_count];

	if (policy->private_count == LIMIT_ROUTE_ADDRESSES)
		return -E2BIG;
	if (!port || !address_is_private(address) || name_read(name, strlen(name), added->name) < 0)
		return -EINVAL;
	added->port = port;
	added->address = *address;
	policy->private_count++;
	return 0;
}

void route_policy_free(struct route_policy *policy)
{
	for (unsigned int i = 0; i < policy->count; i++)
		free(policy->rules[i].origin);
	free(policy->rules);
	policy->rules = NULL;
	policy->count = 0;
}

static bool rule_is_about(const struct route_rule *rule, const struct subject *subject)
{
	if (rule->target == ROUTE_ADDRESS || subject->is_address)
		return rule->target == ROUTE_ADDRESS && subject->is_address &&
		       address_equals(&rule->address, &subject->address);
	if (rule->target == ROUTE_BELOW)
		return name_is_below(subject->name, rule->name);
	return strcmp(rule->name, subject->name) == 0;
}

/* Whether a rule's port covers @port. */
static bool rule_has_port(const struct route_rule *rule, uint16_t port)
{
	if (rule->port)
		return rule->port == port;
	return rule->deny || port == ROUTE_PORT_TLS || port == ROUTE_PORT_PLAIN;
}

static struct route_decision decide_port(const struct route_policy *policy,
					 const struct subject *subject, uint16_t port)
{
	struct route_decision decision = {.verdict = ROUTE_NO_RULE};

	for (unsigned int i = 0; i < policy->count; i++) {
		const struct route_rule *rule = &policy->rules[i];

		if (!rule_is_about(rule, subject))
			continue;
		if (!rule_has_port(rule, port)) {
			if (!rule->deny && decision.verdict == ROUTE_NO_RULE)
				decision = (struct route_decision){ROUTE_OTHER_PORT, rule};
		} else if (rule->deny) {
			return (struct route_decision){ROUTE_DENIED, rule};
		} else if (decision.verdict != ROUTE_ALLOWED) {
			decision = (struct route_decision){ROUTE_ALLOWED, rule};
		}
	}
	return decision;
}

/* The best that there is for any port that some rule allows. */
static struct route_decision decide_host(const struct route_policy *policy,
					 const struct subject *subject)
{
	struct route_decision found = {.verdict = ROUTE_NO_RULE};

	for (unsigned int i = 0; i < policy->count; i++) {
		const struct route_rule *rule = &policy->rules[i];
		const uint16_t *ports = rule->port ? &rule->port : default_ports;
		size_t count = rule->port ? 1 : ARRAY_SIZE(default_ports);

		if (!rule_is_about(rule, subject))
			continue;
		for (size_t j = 0; j < count; j++) {
			struct route_decision one = decide_port(policy, subject, ports[j]);

			if (one.verdict == ROUTE_ALLOWED)
				return one;
			if (one.verdict == ROUTE_DENIED)
				found = one;
		}
	}
	return found;
}

struct route_decision route_policy_decide(const struct route_policy *policy, const char *host,
					  size_t length, uint16_t port)
{
	struct subject subject;

	if (!subject_read(&subject, host, length))
		return (struct route_decision){.verdict = ROUTE_NO_NAME};
	return port ? decide_port(policy, &subject, port) : decide_host(policy, &subject);
}

static bool was_added_for(const struct route_policy *policy, const char *host,
			  const struct address *address, uint16_t port)
{
	for (unsigned int i = 0; i < policy->private_count; i++) {
		const struct route_private *added = &policy->privates[i];

		if (added->port == port && strcmp(added->name, host) == 0 &&
		    address_equals(&added->address, address))
			return true;
	}
	return false;
}

const char *route_policy_objection(const struct route_policy *policy, const char *host,
				   const struct address *address, uint16_t port)
{
	struct subject subject = {.is_address = true, .address = *address};
	struct route_decision decision = decide_port(policy, &subject, port);

	if (decision.verdict == ROUTE_DENIED)
		return "denied by a rule";
	if (decision.verdict == ROUTE_ALLOWED || was_added_for(policy, host, address, port))
		return NULL;
	return address_objection(address);
}

unsigned int route_policy_ports(const struct route_policy *policy, const char *host, size_t length,
				uint16_t ports[LIMIT_ROUTE_PORTS])
{
	struct subject subject;
	unsigned int count = 0;

	if (!subject_read(&subject, host, length))
		return 0;
	for (unsigned int i = 0; i < policy->count; i++) {
		const struct route_rule *rule = &policy->rules[i];
		const uint16_t *from = rule->port ? &rule->port : default_ports;
		size_t from_count = rule->port ? 1 : ARRAY_SIZE(default_ports);

		for (size_t j = 0; !rule->deny && rule_is_about(rule, &subject) && j < from_count;
		     j++) {
			unsigned int known = 0;

			while (known < count && ports[known] != from[j])
				known++;
			if (known == count && count < LIMIT_ROUTE_PORTS &&
			    decide_port(policy, &subject, from[j]).verdict == ROUTE_ALLOWED)
				ports[count++] = from[j];
		}
	}
	return count;
}

void route_explain(const struct route_decision *decision, const char *host, uint16_t port,
		   char text[ROUTE_SENTENCE_BYTES])
{
	const char *origin = decision->rule ? decision->rule->origin : "";
	char what[NAME_BYTES + 16];

	if (port)
		snprintf(what, sizeof(what), "%s:%u", host, port);
	else
		snprintf(what, sizeof(what), "%s", host);
	switch (decision->verdict) {
	case ROUTE_ALLOWED:
		snprintf(text, ROUTE_SENTENCE_BYTES, "%s is allowed by %s", what, origin);
		break;
	case ROUTE_DENIED:
		snprintf(text, ROUTE_SENTENCE_BYTES, "%s is denied by %s", what, origin);
		break;
	case ROUTE_OTHER_PORT:
		snprintf(
			text, ROUTE_SENTENCE_BYTES,
			"%s is not allowed, for %s is about other ports; --allow %s would allow it",
			what, origin, what);
		break;
	case ROUTE_NO_RULE:
		snprintf(text, ROUTE_SENTENCE_BYTES, "%s is not allowed; --allow %s would allow it",
			 what, port == ROUTE_PORT_TLS || port == ROUTE_PORT_PLAIN ? host : what);
		break;
	case ROUTE_NO_NAME:
		snprintf(text, ROUTE_SENTENCE_BYTES, "%s is not allowed: it is no host's name",
			 what);
		break;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Lines about the network. */
#include <stdio.h>
#include <string.h>

#include "vmm/checklist/judge.h"

/* What a rule is about: "example.com", or "example.com:8080". */
static void write_target(const cJSON *rule, char text[JUDGE_TEXT_BYTES])
{
	const double port = judge_number(rule, "port");
	const char *host = judge_text(rule, "host");
	const bool is_ipv6 = port > 0 && strchr(host, ':');

	snprintf(text, JUDGE_TEXT_BYTES, "%s%.300s%s", is_ipv6 ? "[" : "", host,
		 is_ipv6 ? "]" : "");
	if (port > 0)
		snprintf(text + strlen(text), 16, ":%.0f", port);
}

/* Opens what a rule allows, by the option that made it, as the policy has it: "--allow HOST"; of a
 * list, "--allow-from npm", with the host; of "--secret NAME@HOST" and its like the secret, as
 * reasons name it. */
static void open_rule(struct judge *judge, const cJSON *rule)
{
	const char *by = judge_text(rule, "by"), *space = strchr(by, ' ');
	char option[64], name[JUDGE_TEXT_BYTES], target[JUDGE_TEXT_BYTES];

	if (!space || (size_t)(space - by) >= sizeof(option))
		return;
	snprintf(option, sizeof(option), "%.*s", (int)(space - by), by);
	write_target(rule, target);
	if (strncmp(by, "--secret", 8) == 0) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(space + 1, "@"), space + 1);
		judge_open_what(judge, "--secret", name, target);
	} else if (strcmp(option, "--allow") == 0) {
		judge_open(judge, option, space + 1);
	} else {
		judge_open_what(judge, option, space + 1, target);
	}
}

static const cJSON *network(const struct judge *judge, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(judge_policy(judge, "network"), name);
}

void judge_open_rules(struct judge *judge, bool (*is_meant)(const char *host))
{
	const cJSON *rule;

	cJSON_ArrayForEach(rule, network(judge, "rules"))
	{
		if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(rule, "deny")) &&
		    is_meant(judge_text(rule, "host")))
			open_rule(judge, rule);
	}
}

static bool is_any(const char *host)
{
	(void)host;
	return true;
}

static bool has_relay(const struct judge *judge)
{
	const cJSON *process;

	cJSON_ArrayForEach(
		process, cJSON_GetObjectItemCaseSensitive(judge_event(judge, "walls"), "processes"))
	{
		if (strcmp(judge_text(process, "process"), "mvagent-relay") == 0)
			return true;
	}
	return false;
}

static unsigned int decisions(const struct judge *judge, const char *decision, const char *host)
{
	const cJSON *line;
	unsigned int count = 0;

	cJSON_ArrayForEach(line, judge->input->record)
	{
		if (strcmp(judge_text(line, "event"), "network") == 0 &&
		    strcmp(judge_text(line, "decision"), decision) == 0 &&
		    (!host || strcmp(judge_text(line, "host"), host) == 0))
			count++;
	}
	return count;
}

static void tell_ways(struct judge *judge)
{
	for (int item = judge_find(judge, TRY_ALLOWED, 0); item >= 0;
	     item = judge_find(judge, TRY_ALLOWED, (unsigned int)item + 1)) {
		const struct finding *finding = judge_answer(judge, FINDINGS_AGENT, item);

		if (finding)
			judge_say(judge, "%s %s", judge->input->outside->items[item].text + 4,
				  finding->result < 0 ? "did not answer" : "answers");
	}
}

static bool lacks(const cJSON *process, const char *wall)
{
	return judge_has(cJSON_GetObjectItemCaseSensitive(process, "missing"), wall);
}

/* What keeps the processes of the run from the network that the host has. */
static void tell_of_networks(struct judge *judge)
{
	const cJSON *process;
	bool apart = true;

	cJSON_ArrayForEach(
		process, cJSON_GetObjectItemCaseSensitive(judge_event(judge, "walls"), "processes"))
	{
		if (!lacks(process, "namespaces"))
			continue;
		apart = false;
		if (lacks(process, "system_calls"))
			judge_fail(judge, "nothing keeps %s from this host's network",
				   judge_text(process, "process"));
	}
	if (apart)
		judge_say(judge, "no process of the run had a network");
	else
		judge_say(judge,
			  "no process of the run may open a socket, one without namespaces by "
			  "its filter of system calls alone");
}

/* Nothing is allowed: so who could have reached anything? */
static void tell_of_processes(struct judge *judge)
{
	if (has_relay(judge) && !cJSON_GetArraySize(network(judge, "published")))
		judge_fail(judge, "nothing is allowed, and yet a process with a network was there");
	else if (has_relay(judge))
		judge_say(judge, "nothing is allowed outwards; mvagent-relay has a network, for "
				 "what is published");
	else
		tell_of_networks(judge);
}

void judge_outside(struct judge *judge)
{
	char text[JUDGE_TEXT_BYTES];
	unsigned int tries;

	judge->seen = true;
	if (!judge_event(judge, "walls"))
		judge_fail(judge, "cannot be told: the command was never started");
	judge_open_rules(judge, is_any);
	if (cJSON_IsTrue(network(judge, "any_server_name")))
		judge_open(judge, "--allow-any-sni", "");
	if (!cJSON_GetArraySize(judge->opened))
		tell_of_processes(judge);
	if (judge->input->findings) {
		tries = judge_refused(judge);
		if (!judge->fault)
			judge_say(judge, "%u tries to reach others failed: %s", tries,
				  judge_targets(judge, text));
		tell_ways(judge);
	}
	if (cJSON_GetArraySize(judge->opened))
		judge_say(judge, "each connection is decided outside, by its name");
}

void judge_log(struct judge *judge)
{
	const cJSON *start = judge_event(judge, "start"), *machine;

	judge->seen = true;
	if (!start)
		judge_fail(judge, "cannot be told: the record has no beginning");
	if (judge->input->findings) {
		int item = judge_find(judge, TRY_DENIED, 0);

		judge_refused(judge);
		if (item >= 0 &&
		    !decisions(judge, "denied", judge->input->outside->items[item].text + 5))
			judge_fail(judge, "a name that was denied is not on record");
		else if (item >= 0)
			judge_say(judge, "a denied name is on record");
	}
	machine = cJSON_GetObjectItemCaseSensitive(judge_event(judge, "end"), "machine");
	judge_say(judge,
		  "'mvagent record show %s': %u allowed, %u denied, %.0f frames dropped; signed",
		  judge_text(start, "run"), decisions(judge, "allowed", NULL),
		  decisions(judge, "denied", NULL), judge_number(machine, "frames_dropped"));
}

/* As the user gives it: [ADDRESS:]PORT:GUESTPORT. */
static void open_published(struct judge *judge)
{
	const cJSON *port;

	cJSON_ArrayForEach(port, network(judge, "published"))
	{
		const char *address = judge_text(port, "address");
		const bool loopback = strcmp(address, "127.0.0.1") == 0;
		char text[128];

		snprintf(text, sizeof(text), "%s%s%.0f:%.0f", loopback ? "" : address,
			 loopback ? "" : ":", judge_number(port, "port"),
			 judge_number(port, "guest_port"));
		judge_open(judge, "--publish", text);
	}
}

/* No name is made of digits and dots alone, and none has a colon. */
static bool is_address(const char *host)
{
	return *host && (!host[strspn(host, "0123456789.")] || strchr(host, ':'));
}

void judge_inside(struct judge *judge)
{
	const struct checklist_outside *outside = judge->input->outside;
	char text[JUDGE_TEXT_BYTES];
	unsigned int tries;

	if (!judge_has_probes(judge))
		return;
	judge->seen = true;
	open_published(judge);
	/* An address is allowed as such even where it is an internal one. */
	judge_open_rules(judge, is_address);
	if (!outside->listening)
		judge_fail(judge, "cannot be told: this host could not listen");
	if (outside->connections)
		judge_fail(judge, "%u connections came to this host", outside->connections);
	tries = judge_refused(judge);
	if (!judge->fault)
		judge_say(judge,
			  "%u tries failed, and no connection came to the socket that listened on "
			  "all addresses of this host: %s",
			  tries, judge_targets(judge, text));
}

/* Whether the command itself runs as root of the guest, who may send raw frames. */
static bool is_root(struct judge *judge)
{
	const struct finding *finding =
		judge_answer(judge, FINDINGS_AGENT, judge_find(judge, TRY_IDENTITY, 0));

	return finding && strncmp(finding->data, "0:", 2) == 0;
}

void judge_raw(struct judge *judge)
{
	const cJSON *machine;
	const struct finding *agent, *root;
	double dropped;
	unsigned int tries;
	int item;

	if (!judge_has_probes(judge))
		return;
	machine = cJSON_GetObjectItemCaseSensitive(judge_event(judge, "end"), "machine");
	dropped = judge_number(machine, "frames_dropped");
	judge->seen = true;
	item = judge_find(judge, TRY_FRAMES, 0);
	agent = judge_answer(judge, FINDINGS_AGENT, item);
	root = judge_answer(judge, FINDINGS_ROOT, item);
	if (agent && agent->result >= 0 && !is_root(judge))
		judge_fail(judge, "the agent's user could send raw frames");
	if (root && root->result <= 0)
		judge_fail(judge, "cannot be told: guest root could send no frame");
	else if (root && dropped < (double)root->result)
		judge_fail(judge, "guest root sent %ld frames, and the card dropped only %.0f",
			   root->result, dropped);
	tries = judge_refused(judge);
	if (!judge->fault && root)
		judge_say(judge,
			  "root sent %ld frames, the card dropped %.0f outside; %u tries by UDP, "
			  "ICMP, IPv6 and other vsock ports failed",
			  root->result, dropped, tries);
}

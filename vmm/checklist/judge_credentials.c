/* SPDX-License-Identifier: Apache-2.0 */
/* Lines about credentials. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/checklist/judge.h"
#include "vmm/record/canonical.h"
#include "vmm/record/mask.h"

#define VALUE_MIN     6 /* a shorter one is found by chance */
#define PRINTED_BYTES 512U

static bool is_given(const cJSON *names, const char *text, size_t length)
{
	const cJSON *name;

	cJSON_ArrayForEach(name, names)
	{
		if (cJSON_IsString(name) && strlen(name->valuestring) == length &&
		    strncmp(name->valuestring, text, length) == 0)
			return true;
	}
	return false;
}

/* Every variable in there must be one that the command is given. */
static void check_variables(struct judge *judge, const struct finding *finding)
{
	bool path = false;

	for (size_t at = 0; at < finding->length; at += strlen(finding->data + at) + 1) {
		const char *entry = finding->data + at;
		size_t length = strcspn(entry, "=");

		path |= strncmp(entry, "PATH=", 5) == 0;
		if (!is_given(judge->input->outside->variables, entry, length))
			judge_fail(judge, "has %.*s, which nobody gave it",
				   (int)(length < 60 ? length : 60), entry);
	}
	if (!path)
		judge_fail(judge, "cannot be told: what came back is no environment");
}

/* Each variable, for somebody to read. Values that the user gave are not mvagent's to show. */
static void print_variables(struct judge *judge, const struct finding *finding)
{
	judge->printed = cJSON_CreateArray();
	for (size_t at = 0; at < finding->length; at += strlen(finding->data + at) + 1) {
		const char *entry = finding->data + at;
		const size_t length = strcspn(entry, "=");
		const bool given = is_given(judge_policy(judge, "environment"), entry, length);
		char text[PRINTED_BYTES], *masked = given ? NULL : mask_argument(entry, NULL);

		snprintf(text, sizeof(text), "%.*s=" MASK_TEXT, (int)length, entry);
		cJSON_AddItemToArray(judge->printed,
				     canonical_text(masked ? masked : text, PRINTED_BYTES));
		free(masked);
	}
}

/* Values of the host's variables that are secrets, by their names or their form (mask.h), and were
 * not given. */
static void search_values(struct judge *judge)
{
	char *const *entry = judge->input->outside->environment;

	for (; entry && *entry; entry++) {
		size_t length = strcspn(*entry, "=");
		const char *value = (*entry)[length] ? *entry + length + 1 : "";
		char *masked;
		bool secret;

		if (strlen(value) < VALUE_MIN ||
		    is_given(judge_policy(judge, "environment"), *entry, length))
			continue;
		masked = mask_argument(*entry, NULL);
		secret = masked && strcmp(masked, *entry) != 0;
		free(masked);
		if (secret && findings_contain(judge->input->findings, value, strlen(value)))
			judge_fail(judge, "the value of your %.*s came back",
				   (int)(length < 60 ? length : 60), *entry);
	}
}

void judge_environment(struct judge *judge)
{
	const cJSON *name;
	char text[JUDGE_TEXT_BYTES] = "";
	size_t length = 0;

	if (!judge_has_probes(judge))
		return;
	judge->seen = true;
	for (int role = 0; role < FINDINGS_ROLES; role++) {
		const struct finding *finding = judge_answer(judge, (enum findings_role)role,
							     judge_find(judge, TRY_ENVIRON, 0));

		if (finding && finding->result < 0)
			judge_fail(judge,
				   "cannot be told: it is larger than what the guest tells of it");
		else if (finding)
			check_variables(judge, finding);
		if (finding && finding->result >= 0 && role == FINDINGS_AGENT)
			print_variables(judge, finding);
	}
	search_values(judge);
	cJSON_ArrayForEach(name, judge_policy(judge, "environment"))
	{
		judge_open(judge, "--env", judge_string(name));
	}
	if (cJSON_IsTrue(judge_policy(judge, "git_identity")))
		judge_open(judge, "--git-identity", "");
	cJSON_ArrayForEach(name, judge->input->outside->variables)
	{
		if (length + strlen(judge_string(name)) + 2 < sizeof(text) / 2)
			length += (size_t)snprintf(text + length, sizeof(text) - length, " %s",
						   judge_string(name));
	}
	if (!judge->fault)
		judge_say(judge,
			  "printed whole, nothing else is in it:%s; no secret value of this "
			  "host's came back",
			  text);
}

void judge_sockets(struct judge *judge)
{
	char text[JUDGE_TEXT_BYTES];
	const cJSON *rule;
	unsigned int tries;

	if (!judge_has_probes(judge))
		return;
	tries = judge_refused(judge);
	cJSON_ArrayForEach(rule, judge_policy(judge, "ssh_agent"))
	{
		judge_open(judge, "--ssh-agent", judge_string(rule));
	}
	if (!judge->fault)
		judge_say(judge, "%u connections failed: %s", tries, judge_targets(judge, text));
}

static bool is_metadata(const char *host)
{
	for (size_t i = 0; checklist_metadata[i]; i++) {
		if (strcmp(host, checklist_metadata[i]) == 0)
			return true;
	}
	return false;
}

void judge_cloud(struct judge *judge)
{
	char text[JUDGE_TEXT_BYTES];
	unsigned int tries;

	if (!judge_has_probes(judge))
		return;
	judge_open_rules(judge, is_metadata);
	tries = judge_refused(judge);
	if (!judge->fault)
		judge_say(judge, "%u tries failed: %s", tries, judge_targets(judge, text));
}

/* The variable must have the placeholder that mvagent made, and nothing else. */
static void check_placeholder(struct judge *judge, enum findings_role role, const char *name)
{
	const char *placeholder = judge_text(judge->input->outside->placeholders, name);
	const size_t length = strlen(name);
	struct judge environment = *judge; /* whose item it is */
	const struct finding *finding;

	environment.line = LINE_ENVIRONMENT;
	finding = judge_answer(judge, role, judge_find(&environment, TRY_ENVIRON, 0));
	if (!finding)
		return;
	for (size_t at = 0; at < finding->length; at += strlen(finding->data + at) + 1) {
		const char *entry = finding->data + at;

		if (strncmp(entry, name, length) != 0 || entry[length] != '=')
			continue;
		if (!*placeholder || strcmp(entry + length + 1, placeholder) != 0)
			judge_fail(judge, "%s is not its placeholder", name);
		return;
	}
	judge_fail(judge, "cannot be told: the guest told of no %s", name);
}

/* Its value, where it is a variable of this host's. */
static void search_value(struct judge *judge, const char *name)
{
	const size_t length = strlen(name);
	char *const *entry = judge->input->outside->environment;

	for (; entry && *entry; entry++) {
		const char *value = *entry + length + 1;

		if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=' &&
		    strlen(value) >= VALUE_MIN &&
		    findings_contain(judge->input->findings, value, strlen(value)))
			judge_fail(judge, "the value of your %s came back", name);
	}
}

void judge_secrets(struct judge *judge)
{
	const cJSON *secret;

	if (!cJSON_GetArraySize(judge_policy(judge, "secrets"))) {
		judge->asked = false;
		judge_say(judge, "no secret was given");
		return;
	}
	if (!judge_has_probes(judge))
		return;
	judge->seen = true;
	cJSON_ArrayForEach(secret, judge_policy(judge, "secrets"))
	{
		const char *name = judge_text(secret, "name");

		for (int role = 0; role < FINDINGS_ROLES; role++)
			check_placeholder(judge, (enum findings_role)role, name);
		search_value(judge, name);
		judge_open(judge, "--secret", name);
		if (!judge->fault)
			judge_say(judge, "%s is the placeholder that mvagent made, for root too",
				  name);
	}
}

/* Credentials in files that the guest may read: nobody can take those back. */
static void open_files(struct judge *judge)
{
	const struct checklist_outside *outside = judge->input->outside;
	const cJSON *rules = judge_policy(judge, "rules"), *rule;
	char text[JUDGE_TEXT_BYTES];

	cJSON_ArrayForEach(rule, cJSON_GetObjectItemCaseSensitive(rules, "show"))
	{
		judge_open(judge, "--show", judge_string(rule));
		judge_say(judge, "what is in %.100s: as long as its issuer says",
			  judge_string(rule));
	}
	if (outside && cJSON_GetArraySize(outside->exposed))
		judge_fail(judge, "what it could read stays valid: %s",
			   judge_list(outside->exposed, text));
}

void judge_after(struct judge *judge)
{
	const cJSON *name, *environment = judge_policy(judge, "environment");

	judge->seen = true;
	if (!judge_event(judge, "start"))
		judge_fail(judge, "cannot be told: the record has no beginning");
	open_files(judge);
	/* Of what a service gives out under a secret nobody here knows. */
	if (cJSON_GetArraySize(judge_policy(judge, "secrets")))
		judge_say(judge, "no secret came in; tokens that its hosts gave out for it are "
				 "valid as long as they say");
	else if (!cJSON_GetArraySize(environment) && !cJSON_GetArraySize(judge->opened) &&
		 !judge->fault)
		judge_say(judge, "no credential of yours was given; nothing outlives the machine");
	cJSON_ArrayForEach(name, environment)
	{
		const cJSON *expiries =
			judge->input->outside ? judge->input->outside->expiries : NULL;
		const char *expiry = judge_text(expiries, judge_string(name));

		judge_open(judge, "--env", judge_string(name));
		judge_say(judge, "%s: %s", judge_string(name),
			  *expiry ? expiry : "as long as its issuer says");
	}
}

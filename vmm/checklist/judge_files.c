/* SPDX-License-Identifier: Apache-2.0 */
/* Lines about the host's files. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "vmm/checklist/judge.h"
#include "vmm/record/canonical.h"

/* The servers of the shares must be kept in: it is they who hold the boundary. */
static void check_servers(struct judge *judge)
{
	const cJSON *walls = judge_event(judge, "walls"), *process;
	unsigned int servers = 0;

	judge->seen = true;
	if (!walls) {
		judge_fail(judge, "cannot be told: the command was never started");
		return;
	}
	cJSON_ArrayForEach(process, cJSON_GetObjectItemCaseSensitive(walls, "processes"))
	{
		const cJSON *missing = cJSON_GetObjectItemCaseSensitive(process, "missing");
		char text[JUDGE_TEXT_BYTES];

		if (strcmp(judge_text(process, "process"), "mvagent-fs") != 0)
			continue;
		servers++;
		if (cJSON_GetArraySize(missing) &&
		    cJSON_IsTrue(judge_policy(judge, "allow_degraded"))) {
			judge_open(judge, "--allow-degraded", "");
			judge_say(judge, "around mvagent-fs is missing: %s",
				  judge_list(missing, text));
		} else if (cJSON_GetArraySize(missing)) {
			judge_fail(judge, "around mvagent-fs is missing: %s",
				   judge_list(missing, text));
		}
		if (cJSON_HasObjectItem(process, "not_told"))
			judge_fail(judge, "mvagent-fs did not tell what confines it");
	}
	if (servers != (unsigned int)cJSON_GetArraySize(judge_policy(judge, "shares")))
		judge_fail(judge, "%u servers for %d shares", servers,
			   cJSON_GetArraySize(judge_policy(judge, "shares")));
}

/* What the guest lists must be what the host has there. */
static void compare_names(struct judge *judge)
{
	const cJSON *names = judge->input->outside->names;
	const struct finding *finding =
		judge_answer(judge, FINDINGS_AGENT, judge_find(judge, TRY_LIST, 0));
	size_t at = 0;

	if (!finding)
		return;
	if (finding->result < 0 || (finding->result == 0 && cJSON_GetArraySize(names))) {
		judge_fail(judge, "cannot be told: the working directory could not be listed");
		return;
	}
	while (at < finding->length) {
		const char *name = finding->data + at;

		if (!judge_has(names, name)) {
			judge_fail(judge, "lists %.80s, which this host has not there", name);
			return;
		}
		at += strlen(name) + 1;
	}
	if (cJSON_GetArraySize(names))
		judge_say(judge,
			  "it lists %ld of the %d names that this host has there, and no other",
			  finding->result, cJSON_GetArraySize(names));
	else
		judge_say(judge, "its working directory is empty, as it is here");
}

void judge_root(struct judge *judge)
{
	const cJSON *share, *root = judge_policy(judge, "root");

	check_servers(judge);
	cJSON_ArrayForEach(share, judge_policy(judge, "shares"))
	{
		judge_say(judge, "share %s (%s)", judge_text(share, "guest"),
			  judge_text(share, "mode"));
	}
	if (!cJSON_GetArraySize(judge_policy(judge, "shares")))
		judge_say(judge, "no share: a root of its own, kept in memory");
	if (judge->input->findings && judge->input->outside->names)
		compare_names(judge);
	judge_say(judge, "/ is %s, read-only, changes in memory",
		  strcmp(judge_text(root, "kind"), "image") == 0 ? judge_text(root, "image")
								 : "this host's tools");
	cJSON_ArrayForEach(share, cJSON_GetObjectItemCaseSensitive(root, "add"))
	{
		judge_open(judge, "--root-add", judge_string(share));
	}
}

static bool check_canaries(struct judge *judge)
{
	const struct checklist_outside *outside = judge->input->outside;

	judge->seen = true;
	if (!outside->canary_count) {
		judge_fail(judge, "cannot be told: no file could be planted");
		return false;
	}
	for (unsigned int i = 0; i < outside->canary_count; i++) {
		if (findings_contain(judge->input->findings, outside->canaries[i].mark,
				     strlen(outside->canaries[i].mark)))
			judge_fail(judge, "the contents of %s came back",
				   outside->canaries[i].path);
	}
	return !judge->fault;
}

/* Where files were planted. */
static const char *list_planted(const struct judge *judge, char text[JUDGE_TEXT_BYTES])
{
	const struct checklist_outside *outside = judge->input->outside;
	size_t length = 0;

	*text = '\0';
	for (unsigned int i = 0; i < outside->canary_count; i++) {
		const char *path = outside->canaries[i].path;

		length +=
			(size_t)snprintf(text + length, JUDGE_TEXT_BYTES - length, "%s%.*s",
					 i ? ", " : "in ", (int)(strrchr(path, '/') - path), path);
		if (length >= JUDGE_TEXT_BYTES)
			break;
	}
	return text;
}

/* Whether the servers see the host's files beside the share's, and only their own care and other
 * walls keep them from those. */
static bool is_bare(const struct judge *judge)
{
	const cJSON *process, *walls = judge_event(judge, "walls");
	bool bare = false;

	cJSON_ArrayForEach(process, cJSON_GetObjectItemCaseSensitive(walls, "processes"))
	{
		bare |= strcmp(judge_text(process, "process"), "mvagent-fs") == 0 &&
			judge_has(cJSON_GetObjectItemCaseSensitive(process, "missing"), "mounts");
	}
	return bare;
}

void judge_above(struct judge *judge)
{
	char text[JUDGE_TEXT_BYTES];
	unsigned int tries;

	if (!judge_has_probes(judge))
		return;
	tries = judge_refused(judge);
	if (cJSON_GetArraySize(judge->input->outside->unplanted))
		judge_fail(judge,
			   "cannot be told: no file could be planted, and there is none, in %s",
			   judge_list(judge->input->outside->unplanted, text));
	if (check_canaries(judge))
		judge_say(judge,
			  "%u reads of files planted outside failed, nothing of them came back: %s",
			  tries, list_planted(judge, text));
	if (is_bare(judge))
		judge_say(judge, "by openat2 alone: mvagent-fs has no mount namespace of its own");
}

void judge_routes(struct judge *judge)
{
	unsigned int tries;

	if (!judge_has_probes(judge))
		return;
	tries = judge_refused(judge);
	if (check_canaries(judge))
		judge_say(judge,
			  "%u tries to get at planted files by hard and symbolic links and by "
			  "/proc, and to write to the root's disk, failed",
			  tries);
}

static void open_patterns(struct judge *judge, const char *list, const char *option)
{
	const cJSON *rule;

	cJSON_ArrayForEach(rule,
			   cJSON_GetObjectItemCaseSensitive(judge_policy(judge, "rules"), list))
	{
		judge_open(judge, option, judge_string(rule));
	}
}

void judge_keys(struct judge *judge)
{
	const struct checklist_outside *outside = judge->input->outside;
	char text[JUDGE_TEXT_BYTES];
	unsigned int tries;

	if (!judge_has_probes(judge))
		return;
	open_patterns(judge, "show", "--show");
	if (cJSON_IsTrue(judge_policy(judge, "share_anyway")))
		judge_open(judge, "--share-anyway", "");
	judge->seen = true;
	if (cJSON_GetArraySize(outside->exposed))
		judge_fail(judge, "in a share, and hidden by no rule: %s",
			   judge_list(outside->exposed, text));
	tries = judge_refused(judge);
	if (!judge->fault)
		judge_say(
			judge,
			"%u of %u known places (ssh, cloud, git, history...) are on this host; %u "
			"tries to open them failed",
			outside->places_here, outside->places_known, tries);
}

void judge_projects(struct judge *judge)
{
	const struct checklist_outside *outside = judge->input->outside;
	char text[JUDGE_TEXT_BYTES];
	unsigned int tries;

	if (!judge_has_probes(judge))
		return;
	judge->seen = true;
	if (cJSON_GetArraySize(outside->shared_projects))
		judge_fail(judge, "a share holds other repositories: %s",
			   judge_list(outside->shared_projects, text));
	tries = judge_refused(judge);
	if (!judge->fault)
		judge_say(judge, "%d repositor%s beside the shares%s%s; %u tries failed",
			  cJSON_GetArraySize(outside->projects),
			  cJSON_GetArraySize(outside->projects) == 1 ? "y" : "ies",
			  cJSON_GetArraySize(outside->projects) ? ": " : "",
			  judge_list(outside->projects, text), tries);
}

/* Whether a line of the record is the refusal of this path in the guest. */
static bool is_refusal(const struct judge *judge, const cJSON *line, const char *path)
{
	const cJSON *share;
	char refused[2 * PATH_MAX];

	if (strcmp(judge_text(line, "event"), "refusal") != 0)
		return false;
	cJSON_ArrayForEach(share, judge_policy(judge, "shares"))
	{
		if (strcmp(judge_text(share, "host"), judge_text(line, "share")) != 0)
			continue;
		snprintf(refused, sizeof(refused), "%s/%s", judge_text(share, "guest"),
			 judge_text(line, "path"));
		canonical_unescape(refused);
		if (strcmp(refused, path) == 0)
			return true;
	}
	return false;
}

/* The refusal of a protected name is on record, by the server's own word. */
static void check_refusals(struct judge *judge)
{
	const cJSON *line;
	unsigned int found = 0, wanted = 0;

	for (int item = judge_find(judge, TRY_PROTECTED, 0); item >= 0;
	     item = judge_find(judge, TRY_PROTECTED, (unsigned int)item + 1)) {
		const char *path = strchr(judge->input->outside->items[item].text, ':') + 1;
		bool seen = false;

		wanted++;
		cJSON_ArrayForEach(line, judge->input->record)
		{
			seen |= is_refusal(judge, line, path);
		}
		found += seen;
	}
	if (found < wanted)
		judge_fail(judge, "only %u of %u refusals of protected names are on record", found,
			   wanted);
	else if (wanted)
		judge_say(judge, "protected names refused: on record");
}

void judge_changes(struct judge *judge)
{
	const cJSON *share;
	bool direct = false; /* a share whose names are tried; changes under review wait outside */

	judge->seen = true;
	open_patterns(judge, "unprotect", "--unprotect");
	cJSON_ArrayForEach(share, judge_policy(judge, "shares"))
	{
		direct |= strcmp(judge_text(share, "mode"), "review") != 0;
		if (strcmp(judge_text(share, "mode"), "rw") == 0)
			judge_open(judge, "--share", judge_text(share, "host"));
		else
			judge_say(judge, "%s is %s", judge_text(share, "guest"),
				  judge_text(share, "mode"));
	}
	if (!cJSON_GetArraySize(judge_policy(judge, "shares"))) {
		judge_say(judge, "no share: nothing of this host can be changed");
		return;
	}
	if (!direct || !judge->input->findings)
		return;
	judge_refused(judge);
	check_refusals(judge);
}

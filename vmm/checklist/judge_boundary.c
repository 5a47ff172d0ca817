/* SPDX-License-Identifier: Apache-2.0 */
/* Lines about the machine itself, and about who answers for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/number.h"
#include "vmm/checklist/judge.h"
#include "vmm/jail/capabilities.h"

#define CLOCK_HOURS_MAX (3650UL * 24)

/* Started by root, the file server passes by modes and owners as root does (capabilities.h). */
static void check_capabilities(struct judge *judge, const char *name, const char *text)
{
	const uint64_t may = strcmp(name, "mvagent-fs") == 0 ? CAPABILITIES_FILE_SERVER : 0;
	char *end;
	const uint64_t has = strtoull(text, &end, 16);

	if (!*text || *end)
		judge_fail(judge, "cannot be told: the capabilities of %s", name);
	else if (has & ~may)
		judge_fail(judge, "%s has capabilities: %s", name, text);
}

/* "mvagent-vmm" as "vmm": there are six of them. */
static const char *short_name(const char *process)
{
	return strncmp(process, "mvagent-", 8) == 0 ? process + 8 : process;
}

static void check_process(struct judge *judge, const cJSON *process, bool degraded)
{
	const cJSON *missing = cJSON_GetObjectItemCaseSensitive(process, "missing");
	const cJSON *not_told = cJSON_GetObjectItemCaseSensitive(process, "not_told");
	const char *name = judge_text(process, "process");
	char text[JUDGE_TEXT_BYTES];

	if (cJSON_GetArraySize(missing) && degraded)
		judge_say(judge, "missing around %s: %s", short_name(name),
			  judge_list(missing, text));
	else if (cJSON_GetArraySize(missing))
		judge_fail(judge, "missing around %s: %s", short_name(name),
			   judge_list(missing, text));
	check_capabilities(judge, name, judge_text(process, "capabilities"));
	if (cJSON_GetArraySize(not_told))
		judge_fail(judge, "cannot be told of %s: %s", name, judge_list(not_told, text));
}

/* "vmm", and "fs 0 (passes by file modes)": whose it is, and what it may of root's rights. */
static void write_process(const cJSON *process, char names[JUDGE_TEXT_BYTES / 2],
			  char users[JUDGE_TEXT_BYTES / 2])
{
	const cJSON *uid = cJSON_GetObjectItemCaseSensitive(process, "uid");
	const char *name = short_name(judge_text(process, "process"));
	const uint64_t has = strtoull(judge_text(process, "capabilities"), NULL, 16);
	size_t length = strlen(names), user_length = strlen(users);

	snprintf(names + length, JUDGE_TEXT_BYTES / 2 - length, "%s%.40s", length ? ", " : "",
		 name);
	if (cJSON_IsNumber(uid))
		snprintf(users + user_length, JUDGE_TEXT_BYTES / 2 - user_length, "%s%.40s %.0f%s",
			 user_length ? ", " : "; users: ", name, uid->valuedouble,
			 has ? " (passes by file modes)" : "");
}

void judge_walls(struct judge *judge)
{
	const cJSON *processes =
		cJSON_GetObjectItemCaseSensitive(judge_event(judge, "walls"), "processes");
	const bool degraded = cJSON_IsTrue(judge_policy(judge, "allow_degraded"));
	const cJSON *process;
	char names[JUDGE_TEXT_BYTES / 2] = "", users[JUDGE_TEXT_BYTES / 2] = "";
	bool machine = false, missing = false;

	judge->seen = true;
	if (degraded)
		judge_open(judge, "--allow-degraded", "");
	cJSON_ArrayForEach(process, processes)
	{
		missing |= cJSON_GetArraySize(
				   cJSON_GetObjectItemCaseSensitive(process, "missing")) > 0;
		machine |= strcmp(judge_text(process, "process"), "mvagent-vmm") == 0;
		write_process(process, names, users);
		check_process(judge, process, degraded);
	}
	if (!machine)
		judge_fail(judge, "cannot be told: the machine was never started");
	else if (!judge->fault)
		judge_say(judge,
			  "%s: %s (told before the guest spoke), filtered system calls, "
			  "no_new_privs, no other capabilities (as the kernel says)%s",
			  names,
			  missing ? "what else the host allows" : "namespaces, mounts, Landlock",
			  users);
}

void judge_machine(struct judge *judge)
{
	const cJSON *host = cJSON_GetObjectItemCaseSensitive(judge_event(judge, "start"), "host");
	const cJSON *machine =
		cJSON_GetObjectItemCaseSensitive(judge_event(judge, "end"), "machine");
	const struct finding *finding;

	judge->seen = true;
	if (strcmp(judge_text(host, "kvm"), "hardware") != 0)
		judge_fail(judge, "the record does not say that KVM used the processor");
	if (judge_number(machine, "exits") < 1)
		judge_fail(judge, "no exit of a machine was counted");
	else
		judge_say(judge, "KVM by hardware; %.0f exits counted outside",
			  judge_number(machine, "exits"));
	if (!judge->input->findings)
		return;
	finding = judge_answer(judge, FINDINGS_AGENT, judge_find(judge, TRY_BOOT, 0));
	if (!finding)
		return;
	if (finding->result < 36 || !judge->input->outside->boot[0])
		judge_fail(judge, "cannot be told: no number of its kernel's boot came back");
	else if (findings_contain(judge->input->findings, judge->input->outside->boot, 36))
		judge_fail(judge, "it runs on this host's own kernel");
	else
		judge_say(judge, "its kernel's boot_id is not this host's");
}

void judge_terminal(struct judge *judge)
{
	const struct checklist_outside *outside = judge->input->outside;
	const struct finding *finding;

	judge->seen = true;
	if (cJSON_IsTrue(judge_policy(judge, "terminal_passthrough"))) {
		judge_open(judge, "--terminal-passthrough", "");
		return;
	}
	if (!judge_has_probes(judge))
		return;
	finding = judge_answer(judge, FINDINGS_AGENT, judge_find(judge, TRY_TERMINAL, 0));
	if (!finding)
		return;
	if (!outside->filtered || !finding->length)
		judge_fail(judge, "cannot be told: no sequence came back");
	else if (outside->filter_left)
		judge_fail(judge, "%zu bytes of its sequences pass the filter",
			   outside->filter_left);
	else
		judge_say(judge, "clipboard (OSC 52) and title (OSC 2) from the guest: the filter "
				 "left nothing of them");
}

static void judge_given(struct judge *judge, const char *value)
{
	if (value && *value)
		judge_say(judge, "%s", value);
	else
		judge_fail(judge, "unset");
}

void judge_owner(struct judge *judge)
{
	judge_given(judge, judge->input->given.owner);
}

void judge_clock(struct judge *judge)
{
	judge_given(judge, judge->input->given.clock);
}

/* "24h", "7d", "2w" in hours; 0: it is none. */
static uint64_t hours(const char *text)
{
	static const struct number_unit units[] = {{'h', 1}, {'d', 24}, {'w', 168}, {0}};
	uint64_t number = 0;

	if (!text || number_parse_scaled(text, units, CLOCK_HOURS_MAX, &number) < 0)
		return 0;
	return number;
}

void judge_kind(struct judge *judge)
{
	const struct checklist_register *given = &judge->input->given;
	const uint64_t clock = hours(given->clock), wanted = hours(given->kind);

	if (!given->clock || !given->kind)
		judge_fail(judge, "unset: the clock for broken authentication (--auth-clock)%s",
			   given->clock ? "" : ", and --clock");
	else if (!clock || !wanted)
		judge_fail(judge, "cannot be told: '%s' and '%s' are not both times like 24h or 7d",
			   given->clock, given->kind);
	else if (clock > wanted)
		judge_fail(judge, "%s is slower than %s for broken authentication", given->clock,
			   given->kind);
	else
		judge_say(judge, "%s; broken authentication has %s", given->clock, given->kind);
}

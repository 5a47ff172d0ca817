/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/checklist/judge.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "vmm/record/canonical.h"

/* So many names are told of a list, and of each 100 bytes: half of a text. */
#define LISTED_NAMES 5

/* And of what was tried, which is short: so many, and of each so much. */
#define LISTED_TARGETS 9
#define TARGET_BYTES   80
static_assert(LISTED_TARGETS * (TARGET_BYTES + 2) + 32 < JUDGE_TEXT_BYTES, "a list fits a text");

static const char *const role_names[FINDINGS_ROLES] = {
	[FINDINGS_AGENT] = "the agent's user",
	[FINDINGS_ROOT] = "guest root",
};

static void add(char text[JUDGE_TEXT_BYTES], const char *format, va_list arguments)
{
	size_t length = strlen(text);

	if (length && length + 2 < JUDGE_TEXT_BYTES) {
		memcpy(text + length, "; ", 3);
		length += 2;
	}
	vsnprintf(text + length, JUDGE_TEXT_BYTES - length, format, arguments);
}

void judge_say(struct judge *judge, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	add(judge->evidence, format, arguments);
	va_end(arguments);
}

void judge_fail(struct judge *judge, const char *format, ...)
{
	va_list arguments;

	judge->fault = true;
	va_start(arguments, format);
	add(judge->faults, format, arguments);
	va_end(arguments);
}

const char *judge_text(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	return text ? text : "";
}

const char *judge_string(const cJSON *item)
{
	return cJSON_IsString(item) ? item->valuestring : "";
}

bool judge_has(const cJSON *array, const char *text)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, array)
	{
		if (cJSON_IsString(item) && strcmp(item->valuestring, text) == 0)
			return true;
	}
	return false;
}

const char *judge_list(const cJSON *array, char text[JUDGE_TEXT_BYTES])
{
	const int count = cJSON_GetArraySize(array);
	size_t length = 0;

	*text = '\0';
	for (int i = 0; i < count && i < LISTED_NAMES; i++)
		length +=
			(size_t)snprintf(text + length, JUDGE_TEXT_BYTES - length, "%s%.100s",
					 i ? ", " : "", judge_string(cJSON_GetArrayItem(array, i)));
	if (count > LISTED_NAMES)
		snprintf(text + length, JUDGE_TEXT_BYTES - length, " and %d more",
			 count - LISTED_NAMES);
	return text;
}

/* What an item is about: without its kind, and addresses without their port. */
static int target_length(const struct checklist_item *item, const char **target)
{
	const bool has_port = strncmp(item->text, "tcp:", 4) == 0;

	*target = strchr(item->text, ':') + 1;
	return (int)(has_port ? strcspn(*target, "/") : strlen(*target));
}

static bool was_listed(const struct judge *judge, int item)
{
	const struct checklist_outside *outside = judge->input->outside;
	const char *target, *other;
	const int length = target_length(&outside->items[item], &target);

	for (int i = judge_find(judge, TRY_REFUSED, 0); i < item;
	     i = judge_find(judge, TRY_REFUSED, (unsigned int)i + 1)) {
		if (target_length(&outside->items[i], &other) == length &&
		    strncmp(target, other, (size_t)length) == 0)
			return true;
	}
	return false;
}

const char *judge_targets(const struct judge *judge, char text[JUDGE_TEXT_BYTES])
{
	size_t length = 0;
	int count = 0;

	*text = '\0';
	for (int item = judge_find(judge, TRY_REFUSED, 0); item >= 0;
	     item = judge_find(judge, TRY_REFUSED, (unsigned int)item + 1)) {
		const char *target;
		const int size = target_length(&judge->input->outside->items[item], &target);

		if (was_listed(judge, item) || count++ >= LISTED_TARGETS)
			continue;
		length += (size_t)snprintf(text + length, JUDGE_TEXT_BYTES - length, "%s%.*s",
					   count > 1 ? ", " : "",
					   size < TARGET_BYTES ? size : TARGET_BYTES, target);
	}
	if (count > LISTED_TARGETS)
		snprintf(text + length, JUDGE_TEXT_BYTES - length, " and %d more",
			 count - LISTED_TARGETS);
	return text;
}

double judge_number(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

const cJSON *judge_event(const struct judge *judge, const char *event)
{
	const cJSON *line;

	cJSON_ArrayForEach(line, judge->input->record)
	{
		if (strcmp(judge_text(line, "event"), event) == 0)
			return line;
	}
	return NULL;
}

const cJSON *judge_policy(const struct judge *judge, const char *name)
{
	const cJSON *start = judge_event(judge, "start");

	return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(start, "policy"),
						name);
}

/* Whether a reason is about "OPTION VALUE" with or without more behind it. */
static bool reason_fits(const cJSON *reason, const char *option, const char *value)
{
	const char *given = judge_text(reason, "value");
	size_t length = strlen(given);

	return strcmp(judge_text(reason, "option"), option) == 0 &&
	       strncmp(value, given, length) == 0 && (!value[length] || value[length] == ',');
}

void judge_open(struct judge *judge, const char *option, const char *value)
{
	judge_open_what(judge, option, value, "");
}

void judge_open_what(struct judge *judge, const char *option, const char *value, const char *what)
{
	const cJSON *start = judge_event(judge, "start"), *reason;
	cJSON *object = cJSON_CreateObject();
	char by[JUDGE_TEXT_BYTES];

	snprintf(by, sizeof(by), "%s%s%s%s%s", option, *value ? " " : "", value, *what ? ": " : "",
		 what);
	cJSON_AddItemToObject(object, "by", canonical_text(by, sizeof(by)));
	cJSON_ArrayForEach(reason, cJSON_GetObjectItemCaseSensitive(start, "reasons"))
	{
		if (!reason_fits(reason, option, value))
			continue;
		cJSON_AddItemToObject(object, "why",
				      canonical_text(judge_text(reason, "why"), sizeof(by)));
		break;
	}
	if (!cJSON_HasObjectItem(object, "why"))
		cJSON_AddNullToObject(object, "why");
	cJSON_AddItemToArray(judge->opened, object);
}

bool judge_has_probes(struct judge *judge)
{
	if (judge->input->findings)
		return true;
	judge->asked = false;
	return false;
}

int judge_find(const struct judge *judge, enum checklist_purpose purpose, unsigned int from)
{
	const struct checklist_outside *outside = judge->input->outside;

	for (unsigned int i = from; i < outside->item_count; i++) {
		if (outside->items[i].line == judge->line && outside->items[i].purpose == purpose)
			return (int)i;
	}
	return -1;
}

const struct finding *judge_answer(struct judge *judge, enum findings_role role, int item)
{
	const struct findings *findings = judge->input->findings;
	const struct finding *finding;

	if (item < 0 || !findings->complete[role]) {
		judge_fail(judge, "cannot be told: %s did not account for what it tried",
			   role_names[role]);
		return NULL;
	}
	finding = findings_of(findings, role, (unsigned int)item);
	judge->guest = true;
	if (finding->told && finding->result != -ENOSYS)
		return finding;
	judge_fail(judge, "cannot be told: %s did not try %s", role_names[role],
		   judge->input->outside->items[item].text);
	return NULL;
}

/* A root image may have files of the same names as this host. */
static bool is_another(const struct judge *judge, int item, const struct finding *finding)
{
	const char *same = judge->input->outside->items[item].same;

	return same && *finding->data && strcmp(finding->data, same) != 0;
}

/* Those of this purpose. Returns how many tries there were. */
static unsigned int refused_of(struct judge *judge, enum checklist_purpose purpose)
{
	unsigned int tries = 0;

	for (int item = judge_find(judge, purpose, 0); item >= 0 && !judge->fault;
	     item = judge_find(judge, purpose, (unsigned int)item + 1)) {
		for (int role = 0; role < FINDINGS_ROLES; role++) {
			const struct finding *finding =
				judge_answer(judge, (enum findings_role)role, item);

			tries++;
			if (finding && finding->result >= 0 && !is_another(judge, item, finding))
				judge_fail(judge, "%s succeeded with %s", role_names[role],
					   judge->input->outside->items[item].text);
		}
	}
	return tries;
}

unsigned int judge_refused(struct judge *judge)
{
	unsigned int tries = refused_of(judge, TRY_REFUSED) + refused_of(judge, TRY_DENIED) +
			     refused_of(judge, TRY_PROTECTED);

	if (!tries && !judge->fault)
		judge_fail(judge, "cannot be told: nothing was tried");
	return tries;
}

static judge_line *const judges[LINE_COUNT] = {
	[LINE_ROOT] = judge_root,
	[LINE_ABOVE] = judge_above,
	[LINE_ROUTES] = judge_routes,
	[LINE_KEYS] = judge_keys,
	[LINE_PROJECTS] = judge_projects,
	[LINE_CHANGES] = judge_changes,
	[LINE_OUTSIDE] = judge_outside,
	[LINE_LOG] = judge_log,
	[LINE_INSIDE] = judge_inside,
	[LINE_RAW] = judge_raw,
	[LINE_ENVIRONMENT] = judge_environment,
	[LINE_SOCKETS] = judge_sockets,
	[LINE_CLOUD] = judge_cloud,
	[LINE_SECRETS] = judge_secrets,
	[LINE_AFTER] = judge_after,
	[LINE_WALLS] = judge_walls,
	[LINE_MACHINE] = judge_machine,
	[LINE_TERMINAL] = judge_terminal,
	[LINE_OWNER] = judge_owner,
	[LINE_CLOCK] = judge_clock,
	[LINE_KIND] = judge_kind,
};

static bool has_reasons(const cJSON *opened)
{
	const cJSON *opening;

	cJSON_ArrayForEach(opening, opened)
	{
		if (!*judge_text(opening, "why"))
			return false;
	}
	return true;
}

static cJSON *make_line(struct judge *judge)
{
	const struct checklist_text *text = &checklist_texts[judge->line];
	const bool open = judge->fault || cJSON_GetArraySize(judge->opened);
	cJSON *line = cJSON_CreateObject();
	char evidence[2 * JUDGE_TEXT_BYTES + 4];

	snprintf(evidence, sizeof(evidence), "%s%s%s", judge->faults,
		 *judge->faults && *judge->evidence ? "; " : "", judge->evidence);
	cJSON_AddStringToObject(line, "id", text->id);
	cJSON_AddStringToObject(line, "section", text->section);
	cJSON_AddStringToObject(line, "question", text->question);
	cJSON_AddStringToObject(line, "answer",
				!judge->asked ? "NOT ASKED"
				: open        ? "OPEN"
					      : "HOLDS");
	cJSON_AddBoolToObject(line, "on_purpose",
			      judge->asked && open && !judge->fault && has_reasons(judge->opened));
	cJSON_AddItemToObject(line, "evidence", canonical_text(evidence, sizeof(evidence)));
	cJSON_AddStringToObject(line, "seen_by",
				judge->guest && judge->seen ? "guest and outside"
				: judge->guest              ? "guest"
				: judge->seen               ? "outside"
							    : "you");
	cJSON_AddStringToObject(line, "mechanism", text->mechanism);
	cJSON_AddStringToObject(line, "not_enforced", text->not_enforced);
	cJSON_AddItemToObject(line, "opened", judge->opened);
	if (judge->printed)
		cJSON_AddItemToObject(line, "printed", judge->printed);
	return line;
}

bool checklist_passes(const cJSON *line)
{
	return strcmp(judge_text(line, "answer"), "OPEN") != 0 ||
	       cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(line, "on_purpose"));
}

cJSON *checklist_judge(const struct checklist_input *input)
{
	cJSON *lines = cJSON_CreateArray();

	for (int i = 0; lines && i < LINE_COUNT; i++) {
		struct judge judge = {
			.input = input,
			.line = (enum checklist_line)i,
			.asked = true,
			.opened = cJSON_CreateArray(),
		};

		judges[i](&judge);
		if (!input->record_holds && judge.line != LINE_OWNER && judge.line != LINE_CLOCK &&
		    judge.line != LINE_KIND && judge.asked)
			judge_fail(&judge, "the record does not hold: %s", input->record_sentence);
		cJSON_AddItemToArray(lines, make_line(&judge));
	}
	return lines;
}

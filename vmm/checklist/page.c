/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/checklist/page.h"

#include <string.h>

#include "vmm/base/sha256.h"
#include "vmm/base/version.h"
#include "vmm/record/canonical.h"

#define TEXT_LIMIT 4096U

const char *page_text(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	return text ? text : "";
}

bool page_is_unset(const cJSON *line)
{
	return strcmp(page_text(line, "answer"), "OPEN") == 0 &&
	       strcmp(page_text(line, "seen_by"), "you") == 0 &&
	       strncmp(page_text(line, "evidence"), "unset", 5) == 0;
}

static const cJSON *find_event(const cJSON *record, const char *event)
{
	const cJSON *line;

	cJSON_ArrayForEach(line, record)
	{
		if (strcmp(page_text(line, "event"), event) == 0)
			return line;
	}
	return NULL;
}

/* Copies a member; what is not there becomes null. */
static void copy(cJSON *page, const cJSON *from, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, name);

	cJSON_AddItemToObject(page, name, item ? cJSON_Duplicate(item, true) : cJSON_CreateNull());
}

/* Of a record from elsewhere, too. */
static void copy_text(cJSON *page, const cJSON *from, const char *name)
{
	cJSON_AddItemToObject(page, name, canonical_text(page_text(from, name), 128));
}

/* What the built-in rules are goes without saying. */
static void copy_policy(cJSON *page, const cJSON *start)
{
	copy(page, start, "policy");
	cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItem(page, "policy"),
						"default_rules");
}

static void copy_hashes(cJSON *page, const cJSON *record)
{
	static const char *const head[] = {"n", "previous", "time", "event"};
	const cJSON *line = find_event(record, "hashes");
	cJSON *hashes = line ? cJSON_Duplicate(line, true) : cJSON_CreateNull();

	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
		cJSON_DeleteItemFromObjectCaseSensitive(hashes, head[i]);
	cJSON_AddItemToObject(page, "hashes", hashes);
}

static void add_row(cJSON *rows, const char *name, const char *value)
{
	cJSON *row = cJSON_CreateObject();

	cJSON_AddStringToObject(row, "row", name);
	if (value && *value)
		cJSON_AddItemToObject(row, "value", canonical_text(value, TEXT_LIMIT));
	else
		cJSON_AddNullToObject(row, "value");
	cJSON_AddItemToArray(rows, row);
}

/* The worst answer of a section: that is what a register is told. */
static const char *answer_of(const cJSON *lines, const char *section)
{
	const char *answer = "NOT ASKED";
	const cJSON *line;

	cJSON_ArrayForEach(line, lines)
	{
		const char *given = page_text(line, "answer");

		if (strcmp(page_text(line, "section"), section) != 0)
			continue;
		if (!checklist_passes(line))
			return "OPEN";
		if (strcmp(given, "OPEN") == 0)
			answer = "OPEN on purpose";
		else if (strcmp(given, "HOLDS") == 0 && strcmp(answer, "NOT ASKED") == 0)
			answer = "HOLDS";
	}
	return answer;
}

static void add_register(cJSON *page, const struct checklist_register *given)
{
	const cJSON *lines = cJSON_GetObjectItem(page, "lines");
	cJSON *rows = cJSON_AddArrayToObject(page, "register");

	add_row(rows, "Agent", given->agent);
	add_row(rows, "Owner of an escape", given->owner);
	add_row(rows, "Patch clock", given->clock);
	add_row(rows, "Auth-bug clock", given->kind);
	add_row(rows, "Identity", given->identity);
	add_row(rows, "Data class", given->data_class);
	add_row(rows, "Allowed actions", given->allowed_actions);
	add_row(rows, "Filesystem boundary", answer_of(lines, "Filesystem"));
	add_row(rows, "Network boundary", answer_of(lines, "Network"));
	add_row(rows, "Credentials boundary", answer_of(lines, "Credentials"));
	add_row(rows, "Enforced by", "a virtual machine (KVM) and mvagent " MVAGENT_VERSION);
}

static void add_result(cJSON *page)
{
	unsigned int holds = 0, open = 0, purpose = 0, not_asked = 0;
	cJSON *result = cJSON_AddObjectToObject(page, "result");
	const cJSON *line;

	cJSON_ArrayForEach(line, cJSON_GetObjectItem(page, "lines"))
	{
		const char *answer = page_text(line, "answer");

		if (!checklist_passes(line))
			open++;
		else if (strcmp(answer, "OPEN") == 0)
			purpose++;
		else if (strcmp(answer, "HOLDS") == 0)
			holds++;
		else
			not_asked++;
	}
	canonical_add_count(result, "holds", holds);
	canonical_add_count(result, "open", open);
	canonical_add_count(result, "on_purpose", purpose);
	canonical_add_count(result, "not_asked", not_asked);
	cJSON_AddBoolToObject(result, "good", open == 0 && holds > 0);
}

static void add_hash(cJSON *page, const char *name, const void *bytes, size_t length)
{
	uint8_t digest[SHA256_BYTES];
	char text[SHA256_HEX_SIZE];

	sha256_of(bytes, length, digest);
	sha256_format(digest, text);
	cJSON_AddStringToObject(page, name, text);
}

/* The words of the command that makes the page anew. */
static void add_words(cJSON *page, const cJSON *start, const char *const *words)
{
	cJSON *list;

	if (!words) {
		const cJSON *line = cJSON_GetObjectItem(start, "command_line");

		cJSON_AddItemToObject(page, "command",
				      line ? cJSON_Duplicate(line, true) : cJSON_CreateArray());
		return;
	}
	list = cJSON_AddArrayToObject(page, "command");
	for (; *words; words++)
		cJSON_AddItemToArray(list, canonical_text(*words, TEXT_LIMIT));
}

cJSON *page_make(const struct checklist_input *input, const char *record_text, size_t record_length,
		 const char *time, const char *const *words)
{
	const cJSON *start = find_event(input->record, "start");
	cJSON *page = cJSON_CreateObject(), *lines = checklist_judge(input);

	if (!page || !lines) {
		cJSON_Delete(page);
		cJSON_Delete(lines);
		return NULL;
	}
	cJSON_AddNumberToObject(page, "review", 1);
	cJSON_AddStringToObject(page, "mvagent", MVAGENT_VERSION);
	cJSON_AddStringToObject(page, "time", time);
	cJSON_AddStringToObject(page, "from", input->findings ? "probes" : "record");
	copy_text(page, start, "run");
	copy(page, start, "user");
	copy(page, start, "host");
	copy_text(page, start, "policy_sha256");
	copy_policy(page, start);
	copy_hashes(page, input->record);
	add_hash(page, "record_sha256", record_text, record_length);
	cJSON_AddStringToObject(page, "record", input->record_sentence);
	add_words(page, start, words);
	/* Relative paths in the words begin there. */
	if (!words)
		copy(page, start, "directory");
	cJSON_AddItemToObject(page, "lines", lines);
	add_register(page, &input->given);
	add_result(page);
	return page;
}

bool page_is_good(const cJSON *page)
{
	return cJSON_IsTrue(cJSON_GetObjectItem(cJSON_GetObjectItem(page, "result"), "good"));
}

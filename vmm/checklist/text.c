/* SPDX-License-Identifier: Apache-2.0 */
/* A review for a terminal, and as rows of a register. */
#include <stdlib.h>
#include <string.h>

#include "vmm/checklist/page.h"
#include "vmm/record/canonical.h"

#define RED    "\033[31m"
#define GREEN  "\033[32m"
#define YELLOW "\033[33m"
#define BOLD   "\033[1m"
#define PLAIN  "\033[0m"

static void print_openings(const cJSON *line, FILE *stream)
{
	const cJSON *opening;

	cJSON_ArrayForEach(opening, cJSON_GetObjectItem(line, "opened"))
	{
		const char *why = page_text(opening, "why");

		fprintf(stream, "          opened: %s (%s)\n", page_text(opening, "by"),
			*why ? why : "no reason given: --why");
	}
}

static void print_line(const cJSON *line, FILE *stream, bool colour)
{
	const char *answer = page_text(line, "answer");
	const bool good = checklist_passes(line), open = strcmp(answer, "OPEN") == 0;
	const bool unset = colour && page_is_unset(line);
	const cJSON *printed;
	const char *tint = !good ? RED : open ? YELLOW : strcmp(answer, "HOLDS") ? "" : GREEN;

	fprintf(stream, "%s%-9s%s %s%s\n", colour ? tint : "", answer, colour ? PLAIN : "",
		page_text(line, "question"), good && open ? "  (on purpose)" : "");
	if (*page_text(line, "evidence"))
		fprintf(stream, "          %s%s%s [%s]\n", unset ? RED : "",
			page_text(line, "evidence"), unset ? PLAIN : "",
			page_text(line, "seen_by"));
	cJSON_ArrayForEach(printed, cJSON_GetObjectItem(line, "printed"))
	{
		fprintf(stream, "            %s\n", cJSON_GetStringValue(printed));
	}
	print_openings(line, stream);
	fprintf(stream, "          by: %s\n          not enforced: %s\n",
		page_text(line, "mechanism"), page_text(line, "not_enforced"));
}

static void print_register(const cJSON *page, FILE *stream, bool colour)
{
	const cJSON *row;

	fprintf(stream, "\n%sRegister%s\n", colour ? BOLD : "", colour ? PLAIN : "");
	cJSON_ArrayForEach(row, cJSON_GetObjectItem(page, "register"))
	{
		const char *value = page_text(row, "value");

		fprintf(stream, "  %-22s %s%s%s\n", page_text(row, "row"),
			*value || !colour ? "" : RED, *value ? value : "unset",
			*value || !colour ? "" : PLAIN);
	}
}

static int count_of(const cJSON *page, const char *name)
{
	return (int)cJSON_GetNumberValue(
		cJSON_GetObjectItem(cJSON_GetObjectItem(page, "result"), name));
}

void page_print(const cJSON *page, FILE *stream, bool colour)
{
	const char *section = "";
	const cJSON *line;

	cJSON_ArrayForEach(line, cJSON_GetObjectItem(page, "lines"))
	{
		if (strcmp(section, page_text(line, "section")) != 0) {
			section = page_text(line, "section");
			fprintf(stream, "\n%s%s%s\n", colour ? BOLD : "", section,
				colour ? PLAIN : "");
		}
		print_line(line, stream, colour);
	}
	print_register(page, stream, colour);
	fprintf(stream,
		"\n%d hold, %d open, %d open on purpose, %d not asked. Run %s, policy "
		"%.12s, signed by %.12s\n",
		count_of(page, "holds"), count_of(page, "open"), count_of(page, "on_purpose"),
		count_of(page, "not_asked"), page_text(page, "run"),
		page_text(page, "policy_sha256"), page_text(page, "key"));
}

/* A field as RFC 4180 has it. What a spreadsheet would take for a formula gets a quote before it.
 */
static void write_field(FILE *stream, const char *text)
{
	fputc('"', stream);
	if (*text && strchr("=+-@\t\r", *text))
		fputc('\'', stream);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', stream);
		fputc(*text, stream);
	}
	fputc('"', stream);
}

char *page_register_csv(const cJSON *page)
{
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);
	const cJSON *row;

	if (!stream)
		return NULL;
	fputs("row,value,set,time,run,policy_sha256\r\n", stream);
	cJSON_ArrayForEach(row, cJSON_GetObjectItem(page, "register"))
	{
		write_field(stream, page_text(row, "row"));
		fputc(',', stream);
		write_field(stream, page_text(row, "value"));
		fprintf(stream, ",%s,", *page_text(row, "value") ? "yes" : "no");
		write_field(stream, page_text(page, "time"));
		fputc(',', stream);
		write_field(stream, page_text(page, "run"));
		fprintf(stream, ",%s\r\n", page_text(page, "policy_sha256"));
	}
	return fclose(stream) ? NULL : text;
}

char *page_register_json(const cJSON *page)
{
	static const char *const members[] = {"register", "time", "run", "policy_sha256"};
	cJSON *object = cJSON_CreateObject();
	char *text, *line = NULL;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		cJSON_AddItemToObject(object, members[i],
				      cJSON_Duplicate(cJSON_GetObjectItem(page, members[i]), true));
	text = canonical_print(object);
	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	free(text);
	cJSON_Delete(object);
	return line;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One page, A4 or Letter: no script, nothing from elsewhere, and without colour as good as with it.
 * Texts are cut to what their column holds in so many lines; the object that is signed, and
 * 'mvagent review --json', have them whole.
 */
#include <stdlib.h>
#include <string.h>

#include "vmm/base/text.h"
#include "vmm/checklist/page.h"
#include "vmm/checklist/seal.h"
#include "vmm/record/canonical.h"

#define QUESTION_LIMIT  60U
#define EVIDENCE_LIMIT  215U
#define MECHANISM_LIMIT 112U
#define NOT_LIMIT       76U
#define OPENED_LIMIT    110U
#define VALUE_LIMIT     60U
#define TEXT_LIMIT      160U
#define HASH_BEGIN      12U
#define COMMAND_LIMIT   440U

/* Nothing grows: a cell has three lines (.k), a line of the foot two, so that the page is one page
 * whatever is in it. */
static const char style[] =
	"@page{margin:7mm}*{box-sizing:border-box}"
	"body{font:6pt/1.14 'DejaVu Sans','Liberation Sans',Arial,sans-serif;color:#000;"
	"background:#fff;width:190mm;margin:0 auto}"
	"h1{font-size:11pt;line-height:1.1;margin:0}p{margin:.4mm 0}"
	"code{font:5.6pt/1.14 'DejaVu Sans Mono','Liberation Mono',monospace}"
	"table{border-collapse:collapse;width:100%;table-layout:fixed}"
	"td,th{border:.2mm solid #999;padding:.2mm .7mm;text-align:left;vertical-align:top}"
	"th{background:#eee}td.s{background:#eee;font-weight:bold;writing-mode:vertical-rl;"
	"text-align:center;padding:0;vertical-align:middle}"
	".k,.l{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:3;overflow:"
	"hidden;"
	"overflow-wrap:anywhere}.l{-webkit-line-clamp:2}"
	".a{text-align:center;font-weight:bold;vertical-align:middle;padding:0}"
	".HOLDS{color:#060}.OPEN{background:#000;color:#fff}.PURPOSE{border:.5mm dashed #000}"
	".NOT{color:#555;font-weight:normal}.u{color:#c00;font-weight:bold;text-transform:"
	"uppercase}"
	"svg{width:100%;display:block;margin:.6mm 0}"
	"svg text{font:6.4px 'DejaVu Sans',Arial,sans-serif}svg .m{text-anchor:middle}"
	"svg .t{font-weight:bold}svg .mt{text-anchor:middle;font-weight:bold}"
	"svg .h{fill:#f4f4f4;stroke:#000;stroke-width:.6}svg "
	".i{fill:#fff;stroke:#777;stroke-width:.6}"
	"svg .g{fill:#fff;stroke:#000;stroke-width:2.4}svg "
	".o{stroke:#000;stroke-width:1.1;fill:none}"
	"svg .c{stroke:#777;stroke-width:.8;stroke-dasharray:3 3;fill:none}svg .b{stroke:#000;"
	"stroke-width:2.4}"
	"@media print{*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}";

static void write_text(FILE *stream, const char *text)
{
	page_escape(stream, text, TEXT_LIMIT);
}

static void write_cell(FILE *stream, const char *text, size_t limit)
{
	fputs("<td><div class=\"k\">", stream);
	page_escape(stream, text, limit);
	fputs("</div></td>", stream);
}

/* What was opened, with the reasons, before the evidence. */
static void write_evidence(FILE *stream, const cJSON *line)
{
	const cJSON *opened = cJSON_GetObjectItem(line, "opened");
	const int count = cJSON_GetArraySize(opened);
	const char *evidence = page_text(line, "evidence");

	fputs("<td><div class=\"k\">", stream);
	if (strcmp(page_text(line, "answer"), "NOT ASKED") != 0)
		fprintf(stream, "<i>[%s]</i> ", page_text(line, "seen_by"));
	for (int i = 0; i < count && i < 2; i++) {
		const cJSON *opening = cJSON_GetArrayItem(opened, i);
		const char *why = page_text(opening, "why");

		fputs("<b>opened: ", stream);
		page_escape(stream, page_text(opening, "by"), OPENED_LIMIT / 2);
		fputs("</b> ", stream);
		if (*why)
			page_escape(stream, why, OPENED_LIMIT / 2);
		else
			fputs("<span class=\"u\">no reason given</span>", stream);
		fputs("; ", stream);
	}
	if (count > 2)
		fprintf(stream, "<b>and %d more</b>; ", count - 2);
	if (page_is_unset(line)) {
		fputs("<span class=\"u\">unset</span>", stream);
		evidence += strlen("unset");
	}
	page_escape(stream, evidence, count ? EVIDENCE_LIMIT - OPENED_LIMIT / 2 : EVIDENCE_LIMIT);
	fputs("</div></td>", stream);
}

static void write_line(FILE *stream, const cJSON *line)
{
	const char *answer = page_text(line, "answer");
	const bool purpose = strcmp(answer, "OPEN") == 0 && checklist_passes(line);
	const char *class = purpose ? "PURPOSE" : strcmp(answer, "NOT ASKED") == 0 ? "NOT" : answer;

	write_cell(stream, page_text(line, "question"), QUESTION_LIMIT);
	fprintf(stream, "<td class=\"a %s\">%s%s</td>", class, answer,
		purpose ? "<br>on purpose" : "");
	write_evidence(stream, line);
	write_cell(stream, page_text(line, "mechanism"), MECHANISM_LIMIT);
	write_cell(stream, page_text(line, "not_enforced"), NOT_LIMIT);
	fputs("</tr>\n", stream);
}

static int count_section(const cJSON *lines, const char *section)
{
	const cJSON *line;
	int count = 0;

	cJSON_ArrayForEach(line, lines)
	{
		count += strcmp(section, page_text(line, "section")) == 0;
	}
	return count;
}

static void write_lines(FILE *stream, const cJSON *page)
{
	const cJSON *lines = cJSON_GetObjectItem(page, "lines"), *line;
	const char *section = "";

	fputs("<table><colgroup><col style=\"width:2%\"><col style=\"width:17%\"><col "
	      "style=\"width:8%\"><col style=\"width:37%\"><col style=\"width:20%\"><col "
	      "style=\"width:16%\"></colgroup><tr><th></th><th>Question</th><th>Answer</th>"
	      "<th>[Whose word it is] Evidence</th><th>Mechanism</th><th>Not enforced</th></tr>\n",
	      stream);
	cJSON_ArrayForEach(line, lines)
	{
		fputs("<tr>", stream);
		if (strcmp(section, page_text(line, "section")) != 0) {
			section = page_text(line, "section");
			fprintf(stream, "<td class=\"s\" rowspan=\"%d\">%s</td>",
				count_section(lines, section), section);
		}
		write_line(stream, line);
	}
	fputs("</table>\n", stream);
}

/* Three rows to a line. */
static void write_register(FILE *stream, const cJSON *page)
{
	const cJSON *row;
	int count = 0;

	fputs("<table style=\"margin-top:.8mm\">", stream);
	cJSON_ArrayForEach(row, cJSON_GetObjectItem(page, "register"))
	{
		const char *value = page_text(row, "value");

		fputs(count++ % 3 ? "" : "<tr>", stream);
		fprintf(stream, "<td><div class=\"l\"><b>%s:</b> ", page_text(row, "row"));
		if (*value)
			page_escape(stream, value, VALUE_LIMIT);
		else
			fputs("<span class=\"u\">unset</span>", stream);
		fputs(count % 3 ? "</div></td>" : "</div></td></tr>\n", stream);
	}
	fputs(count % 3 ? "</tr></table>\n" : "</table>\n", stream);
}

/* The command that makes the page again, from where it was given. Allocated. */
static char *make_command(const cJSON *page)
{
	const char *directory = page_text(page, "directory");
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);
	const cJSON *word;

	if (!stream)
		return NULL;
	if (*directory) {
		fputs("cd ", stream);
		text_print_word(stream, directory);
		fputs(" && ", stream);
	}
	fputs("mvagent", stream);
	cJSON_ArrayForEach(word, cJSON_GetObjectItem(page, "command"))
	{
		const char *value = cJSON_GetStringValue(word);

		fputc(' ', stream);
		text_print_word(stream, value ? value : "");
	}
	return fclose(stream) ? NULL : text;
}

static int count_of(const cJSON *page, const char *name)
{
	return (int)cJSON_GetNumberValue(
		cJSON_GetObjectItem(cJSON_GetObjectItem(page, "result"), name));
}

static void write_head(FILE *stream, const cJSON *page)
{
	const cJSON *host = cJSON_GetObjectItem(page, "host");

	fprintf(stream,
		"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Sandbox "
		"review</title><style>%s</style></head><body>\n",
		style);
	fprintf(stream,
		"<h1>Sandbox review: %s</h1>\n<p class=\"l\"><b>%d hold, %d open, %d open on "
		"purpose, %d not asked.</b> ",
		!page_is_good(page) ? "not all questions are answered well"
		: count_of(page, "on_purpose")
			? "the boundary holds, but for what was opened on purpose"
			: "the boundary holds",
		count_of(page, "holds"), count_of(page, "open"), count_of(page, "on_purpose"),
		count_of(page, "not_asked"));
	fputs(strcmp(page_text(page, "from"), "probes") == 0
		      ? "Tried in a guest under this very policy, "
		      : "From the record of a run, without trying anything, ",
	      stream);
	write_text(stream, page_text(page, "time"));
	fputs("; run ", stream);
	write_text(stream, page_text(page, "run"));
	fputs("; host ", stream);
	write_text(stream, page_text(host, "name"));
	fputs(", Linux ", stream);
	write_text(stream, page_text(host, "kernel"));
	fputs("; mvagent ", stream);
	write_text(stream, page_text(page, "mvagent"));
	fputs(". Policy <code>", stream);
	write_text(stream, page_text(page, "policy_sha256"));
	fputs("</code>.</p>\n", stream);
}

static void write_foot(FILE *stream, const cJSON *page)
{
	const cJSON *hashes = cJSON_GetObjectItem(page, "hashes"), *hash;
	char *command = make_command(page);

	fputs("<p class=\"k\"><b>Made of</b> (SHA-256): <code>record ", stream);
	write_text(stream, page_text(page, "record_sha256"));
	fputs("</code> (", stream);
	write_text(stream, page_text(page, "record"));
	fputs("); and, begun: <code>", stream);
	cJSON_ArrayForEach(hash, hashes)
	{
		/* Of an array, as whoever signs a page of their own may have it, none has a name.
		 */
		if (!cJSON_IsString(hash) || !hash->string)
			continue;
		write_text(stream, hash->string);
		fputc(' ', stream);
		page_escape(stream, hash->valuestring, HASH_BEGIN);
		fputs("; ", stream);
	}
	fputs("</code></p>\n<p class=\"k\"><b>Again:</b> <code>", stream);
	page_escape(stream, command ? command : "", COMMAND_LIMIT);
	free(command);
	fputs("</code></p>\n<p class=\"k\"><b>Signed</b> (Ed25519) by <code>", stream);
	write_text(stream, page_text(page, "key"));
	fputs("</code>: <code>", stream);
	write_text(stream, page_text(page, "signature"));
	fputs("</code>. <code>mvagent review verify FILE</code> tells whether this file shows what "
	      "was signed.</p>\n",
	      stream);
}

char *page_html(const cJSON *page)
{
	char *text = NULL, *object = canonical_print(page);
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	if (!stream || !object) {
		if (stream)
			fclose(stream);
		free(text);
		free(object);
		return NULL;
	}
	write_head(stream, page);
	page_picture(page, stream);
	write_lines(stream, page);
	write_register(stream, page);
	write_foot(stream, page);
	fputs(SEAL_BEGIN, stream);
	for (const char *byte = object; *byte; byte++)
		fprintf(stream, "%02x", (unsigned char)*byte);
	fputs(SEAL_END "\n</body></html>\n", stream);
	free(object);
	return fclose(stream) ? NULL : text;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each line says its own number and the hash of the line before, so there are two witnesses of
 * every line: itself, and the next one. A line that both of its neighbours fit was not touched; the
 * first place where they do not fit is where somebody was at work, and the numbers tell what was
 * done.
 */
#include "vmm/record/verify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/sha256.h"
#include "vmm/record/canonical.h"
#include "vmm/record/line.h"
#include "vmm/record/signed.h"

struct line {
	const char *text;
	size_t length;
	bool good; /* it is canonical and has what each line has */
	bool end;  /* the signed one */
	uint64_t number;
	char previous[SHA256_HEX_SIZE];
	char hash[SHA256_HEX_SIZE];
};

struct lines {
	struct line *list; /* [0] is before the first: number 0, no hash */
	size_t count;      /* without that one */
};

static bool is_hex(const char *text, size_t digits)
{
	return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

static const char *text_member(const cJSON *object, const char *name)
{
	const cJSON *member = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(member) ? member->valuestring : "";
}

static void read_line(struct line *line, const char *text, size_t length)
{
	uint8_t digest[SHA256_BYTES];
	cJSON *object = cJSON_ParseWithLength(text, length);
	char *canonical = object ? canonical_print(object) : NULL;
	const cJSON *number = cJSON_GetObjectItemCaseSensitive(object, LINE_NUMBER);
	const char *previous = text_member(object, LINE_PREVIOUS);

	*line = (struct line){.text = text, .length = length};
	sha256_of(text, length, digest);
	sha256_format(digest, line->hash);
	line->good = canonical && strlen(canonical) == length &&
		     memcmp(canonical, text, length) == 0 && cJSON_IsNumber(number) &&
		     number->valuedouble >= 1 && is_hex(previous, SHA256_HEX_SIZE - 1) &&
		     *text_member(object, LINE_EVENT) && *text_member(object, LINE_TIME);
	if (line->good) {
		line->number = (uint64_t)number->valuedouble;
		memcpy(line->previous, previous, SHA256_HEX_SIZE);
		line->end = strcmp(text_member(object, LINE_EVENT), SIGNED_SIGNATURE) == 0 ||
			    cJSON_HasObjectItem(object, SIGNED_SIGNATURE);
	}
	free(canonical);
	cJSON_Delete(object);
}

/* Lines that end; what comes after the last end is no line. */
static int split(struct lines *lines, const char *text, size_t length)
{
	const char *end = text + length, *newline;

	for (const char *at = text; at < end && (newline = memchr(at, '\n', (size_t)(end - at)));
	     at = newline + 1)
		lines->count++;
	lines->list = calloc(lines->count + 1, sizeof(*lines->list));
	if (!lines->list)
		return -ENOMEM;
	lines->list[0] = (struct line){.good = true, .hash = LINE_NO_HASH};
	for (size_t i = 1; i <= lines->count; i++) {
		newline = memchr(text, '\n', (size_t)(end - text));
		read_line(&lines->list[i], text, (size_t)(newline - text));
		text = newline + 1;
	}
	return 0;
}

/* Whether @next was written right after @line. */
static bool follows(const struct line *line, const struct line *next)
{
	return line->good && next->good && next->number == line->number + 1 &&
	       strcmp(next->previous, line->hash) == 0;
}

/* Whether some line from @first on follows @line. */
static bool is_followed(const struct lines *lines, const struct line *line, size_t first)
{
	for (size_t i = first; i <= lines->count; i++) {
		if (follows(line, &lines->list[i]))
			return true;
	}
	return false;
}

/* Whether some line but @line itself is followed by it. */
static bool has_predecessor(const struct lines *lines, const struct line *line)
{
	for (size_t i = 0; i <= lines->count; i++) {
		if (follows(&lines->list[i], line))
			return true;
	}
	return false;
}

static bool is_copy(const struct lines *lines, size_t index)
{
	for (size_t i = 1; i <= lines->count; i++) {
		if (i != index && strcmp(lines->list[i].hash, lines->list[index].hash) == 0)
			return true;
	}
	return false;
}

static bool signature_holds(const struct line *line, uint8_t key[KEY_BYTES])
{
	cJSON *object = cJSON_ParseWithLength(line->text, line->length);
	bool good = signed_holds(object, LINE_SIGNED_WORDS, key);

	cJSON_Delete(object);
	return good;
}

/* Whether the line is as it was written, as far as the rest can tell. */
static bool is_intact(const struct lines *lines, size_t index)
{
	const struct line *line = &lines->list[index];
	uint8_t key[KEY_BYTES];

	return line->end ? signature_holds(line, key) : is_followed(lines, line, index + 1);
}

__attribute__((format(printf, 3, 4))) static void alter(struct record_check *check, size_t line,
							const char *format, ...)
{
	va_list arguments;
	int length = snprintf(check->sentence, sizeof(check->sentence), "line %zu ", line);

	check->verdict = RECORD_ALTERED;
	check->line = line;
	va_start(arguments, format);
	vsnprintf(check->sentence + length, sizeof(check->sentence) - (size_t)length, format,
		  arguments);
	va_end(arguments);
}

/* Line @i does not follow the one before it: what was done? */
static void explain(struct record_check *check, const struct lines *lines, size_t i)
{
	const struct line *line = &lines->list[i], *before = &lines->list[i - 1];
	bool later = is_followed(lines, before, i + 1);

	if (later && line->good && !is_copy(lines, i) && has_predecessor(lines, line))
		alter(check, i, "is not where it was written: lines were reordered");
	else if (later)
		alter(check, i, "was added");
	else if (i > 1 && follows(&lines->list[i - 2], line))
		alter(check, i - 1, "was added");
	else if (!line->good || !is_intact(lines, i))
		alter(check, i, "was changed");
	else if (line->number > i)
		alter(check, i, "was removed%s", line->number > i + 1 ? ", and more after it" : "");
	else if (line->number < i)
		alter(check, i, "is not where it was written: lines were added or reordered");
	else
		alter(check, i - 1, "was changed");
}

static void cut(struct record_check *check, const struct lines *lines, bool piece)
{
	check->verdict = RECORD_CUT;
	snprintf(check->sentence, sizeof(check->sentence),
		 "it was cut after line %zu%s: there is no signature, so nothing tells how much is "
		 "missing",
		 lines->count, piece ? ", within the next" : "");
}

static void judge_end(struct record_check *check, const struct lines *lines, bool piece,
		      const uint8_t trusted[KEY_BYTES])
{
	const struct line *last = &lines->list[lines->count];

	if (!last->end) {
		cut(check, lines, piece);
		return;
	}
	if (piece) {
		alter(check, lines->count + 1, "was added, after the end");
		return;
	}
	if (!signature_holds(last, check->key)) {
		alter(check, lines->count,
		      "was changed, or a line before it and all hashes after "
		      "that: its signature is not of these lines");
		return;
	}
	check->verdict = memcmp(check->key, trusted, KEY_BYTES) ? RECORD_OTHER_KEY : RECORD_WHOLE;
	snprintf(check->sentence, sizeof(check->sentence),
		 check->verdict == RECORD_WHOLE
			 ? "%zu lines, each as it was written, and signed"
			 : "%zu lines that fit each other, but signed by another key",
		 lines->count);
}

int record_verify(struct record_check *check, const char *text, size_t length,
		  const uint8_t trusted[KEY_BYTES])
{
	struct lines lines = {0};
	int error = split(&lines, text, length);
	size_t i = 1;

	*check = (struct record_check){.lines = lines.count};
	if (error)
		return error;
	while (i <= lines.count && follows(&lines.list[i - 1], &lines.list[i]) &&
	       !lines.list[i - 1].end)
		i++;
	if (i > lines.count)
		judge_end(check, &lines, length && text[length - 1] != '\n', trusted);
	else if (lines.list[i - 1].end)
		alter(check, i, "was added, after the end");
	else
		explain(check, &lines, i);
	free(lines.list);
	return 0;
}

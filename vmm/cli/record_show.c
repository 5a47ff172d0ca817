/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/record_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/text.h"
#include "vmm/record/canonical.h"

static const cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const char *text(const cJSON *object, const char *name)
{
	const cJSON *value = member(object, name);

	return cJSON_IsString(value) ? value->valuestring : "";
}

static long long number(const cJSON *object, const char *name)
{
	const cJSON *value = member(object, name);

	return cJSON_IsNumber(value) ? (long long)value->valuedouble : 0;
}

/* A text of the record as it was, but harmless on a terminal, and on one line. Allocated. */
static char *printable(const char *recorded)
{
	char *copy = strdup(recorded);

	if (!copy)
		return NULL;
	canonical_unescape(copy);
	for (char *at = copy; (at = strpbrk(at, "\n\t\r"));)
		*at = ' ';
	text_make_printable(copy, strlen(copy));
	return copy;
}

static void print_text(const char *before, const char *recorded)
{
	char *copy = printable(recorded);

	printf("%s%s", before, copy ? copy : "?");
	free(copy);
}

/* So many characters of it, in a column of as many. */
static void print_column(const char *recorded, int width)
{
	char *copy = printable(recorded);

	printf("%-*.*s", width, width, copy ? copy : "?");
	free(copy);
}

/* The begin of a number. */
static void print_begin(const char *before, const char *recorded, int length)
{
	char *copy = printable(recorded);

	printf("%s%.*s...", before, length, copy ? copy : "?");
	free(copy);
}

char *record_show_words(const cJSON *array)
{
	char *words = strdup("");
	const cJSON *word;

	cJSON_ArrayForEach(word, array)
	{
		char *copy = cJSON_IsString(word) ? printable(word->valuestring) : NULL;
		char *longer = NULL;

		if (!words || !copy ||
		    asprintf(&longer, "%s%s%s", words, *words ? " " : "", copy) < 0)
			longer = NULL;
		free(copy);
		free(words);
		words = longer;
	}
	return words;
}

static void show_start(const cJSON *line)
{
	const cJSON *share, *host = member(line, "host");
	char *command = record_show_words(member(line, "command_line"));

	printf("mvagent %s\n", command ? command : "?");
	free(command);
	print_text("    by ", text(member(line, "user"), "name"));
	print_text(" on ", text(host, "name"));
	print_text(": Linux ", text(host, "kernel"));
	print_text(", KVM ", text(host, "kvm"));
	print_text(", ", text(host, "processor"));
	cJSON_ArrayForEach(share, member(member(line, "policy"), "shares"))
	{
		print_text("\n    share ", text(share, "host"));
		print_text(" (", text(share, "mode"));
		putchar(')');
	}
	print_text("\n    policy ", text(line, "policy_sha256"));
}

static void show_walls(const cJSON *line)
{
	const cJSON *process;
	const char *between = "";

	cJSON_ArrayForEach(process, member(line, "processes"))
	{
		char *missing = record_show_words(member(process, "missing"));
		char *walls = record_show_words(member(process, "in_force"));

		print_text(between, text(process, "process"));
		printf(": %s%s%s", walls ? walls : "?", missing && *missing ? "; missing: " : "",
		       missing ? missing : "?");
		between = "\n    ";
		free(missing);
		free(walls);
	}
}

static void show_hashes(const cJSON *line)
{
	static const char *const common[] = {"n", "time", "previous", "event"};
	const cJSON *hash;
	const char *between = "";

	cJSON_ArrayForEach(hash, line)
	{
		bool is_common = false;

		for (unsigned int i = 0; i < ARRAY_SIZE(common); i++)
			is_common |= strcmp(hash->string, common[i]) == 0;
		if (is_common)
			continue;
		print_text(between, hash->string);
		print_text(" ", cJSON_IsString(hash) ? hash->valuestring : "(not known)");
		between = "\n    ";
	}
}

static void show_share(const cJSON *line)
{
	print_text("", text(line, "host"));
	printf(": %lld names hidden, %lld protected", number(line, "hidden"),
	       number(line, "protected"));
}

static void show_change(const cJSON *line)
{
	print_column(text(line, "change"), 8);
	if (*text(line, "from"))
		print_text(" ", text(line, "from")), fputs(" to", stdout);
	print_text(" ", text(line, "path"));
	if (*text(line, "after_sha256"))
		print_begin("  ", text(line, "after_sha256"), 12);
}

static void show_counts(const cJSON *counts)
{
	const cJSON *kind;

	cJSON_ArrayForEach(kind, counts)
	{
		if (number(kind, "seen") > number(kind, "written"))
			printf("\n    of %lld events ", number(kind, "seen"));
		print_text("'", kind->string);
		printf("' %lld are written out", number(kind, "written"));
	}
}

static void show_end(const cJSON *line)
{
	print_text("", text(line, "outcome"));
	printf(", exit status %lld, %.1f s", number(line, "exit_status"),
	       (double)number(member(line, "microseconds"), "total") / 1e6);
	if (*text(line, "message"))
		print_text("\n    ", text(line, "message"));
	show_counts(member(line, "counts"));
}

/* Whatever else a line says: its members in short. */
static void show_rest(const cJSON *line)
{
	static const char *const members[] = {"phase",    "rule",   "finding", "path",
					      "decision", "what",   "limit",   "secret",
					      "host",     "notice", "share"};
	const char *between = "";

	for (unsigned int i = 0; i < ARRAY_SIZE(members); i++) {
		if (!*text(line, members[i]))
			continue;
		print_text(between, text(line, members[i]));
		between = ": ";
	}
	if (number(line, "count") > 1)
		printf(" (%lld times)", number(line, "count"));
}

static void show_signature(const cJSON *line)
{
	print_begin("by key ", text(line, "key"), 16);
}

void record_show_line(const cJSON *line)
{
	static const struct {
		const char *event;
		void (*show)(const cJSON *line);
	} kinds[] = {
		{"start", show_start},   {"walls", show_walls}, {"hashes", show_hashes},
		{"share", show_share},   {"end", show_end},     {"signature", show_signature},
		{"change", show_change},
	};
	void (*show)(const cJSON *line) = show_rest;

	/* The time of the day: the date is in the name of the run. */
	print_column(strlen(text(line, "time")) > 11 ? text(line, "time") + 11 : "?", 12);
	fputs("  ", stdout);
	print_column(text(line, "event"), 10);
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].event, text(line, "event")) == 0)
			show = kinds[i].show;
	}
	show(line);
	putchar('\n');
}

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

static void make_harmless(char *text)
{
	canonical_unescape(text);
	for (char *at = text; (at = strpbrk(at, "\n\t\r"));)
		*at = ' ';
	text_make_printable(text, strlen(text));
}

void record_show_make_harmless(cJSON *value)
{
	cJSON *item;

	if (!value)
		return;
	if (value->string)
		make_harmless(value->string);
	if (cJSON_IsString(value))
		make_harmless(value->valuestring);
	cJSON_ArrayForEach(item, value)
	{
		record_show_make_harmless(item);
	}
}

static char *join(const cJSON *array, bool quoted)
{
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);
	const char *between = "";
	const cJSON *word;

	if (!stream)
		return NULL;
	cJSON_ArrayForEach(word, array)
	{
		if (!cJSON_IsString(word))
			continue;
		fputs(between, stream);
		if (quoted)
			text_print_word(stream, word->valuestring);
		else
			fputs(word->valuestring, stream);
		between = " ";
	}
	return fclose(stream) ? NULL : text;
}

char *record_show_words(const cJSON *array)
{
	return join(array, true);
}

static void show_start(const cJSON *line)
{
	const cJSON *share, *host = member(line, "host");
	char *command = record_show_words(member(line, "command_line"));

	printf("mvagent %s\n", command ? command : "?");
	free(command);
	printf("    by %s on %s", text(member(line, "user"), "name"), text(host, "name"));
	printf(": Linux %s, KVM %s, %s", text(host, "kernel"), text(host, "kvm"),
	       text(host, "processor"));
	cJSON_ArrayForEach(share, member(member(line, "policy"), "shares"))
	{
		printf("\n    share %s (%s)", text(share, "host"), text(share, "mode"));
	}
	printf("\n    policy %s", text(line, "policy_sha256"));
}

static void show_walls(const cJSON *line)
{
	const cJSON *process;
	const char *between = "";

	cJSON_ArrayForEach(process, member(line, "processes"))
	{
		char *missing = join(member(process, "missing"), false);
		char *walls = join(member(process, "in_force"), false);

		printf("%s%s: %s%s%s", between, text(process, "process"), walls ? walls : "?",
		       missing && *missing ? "; missing: " : "", missing ? missing : "?");
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
		printf("%s%s %s", between, hash->string,
		       cJSON_IsString(hash) ? hash->valuestring : "(not known)");
		between = "\n    ";
	}
}

static void show_share(const cJSON *line)
{
	printf("%s: %lld names hidden, %lld protected", text(line, "share"), number(line, "hidden"),
	       number(line, "protected"));
}

static void show_change(const cJSON *line)
{
	printf("%-8s", text(line, "change"));
	if (*text(line, "from"))
		printf(" %s to", text(line, "from"));
	printf(" %s", text(line, "path"));
	if (*text(line, "after_sha256"))
		printf("  %.12s...", text(line, "after_sha256"));
}

static void show_counts(const cJSON *counts)
{
	const cJSON *kind;

	cJSON_ArrayForEach(kind, counts)
	{
		if (number(kind, "seen") > number(kind, "written"))
			printf("\n    of %lld events '%s' %lld are written out",
			       number(kind, "seen"), kind->string, number(kind, "written"));
	}
}

static void show_end(const cJSON *line)
{
	printf("%s, exit status %lld, %.1f s", text(line, "outcome"), number(line, "exit_status"),
	       (double)number(member(line, "microseconds"), "total") / 1e6);
	if (*text(line, "message"))
		printf("\n    %s", text(line, "message"));
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
		printf("%s%s", between, text(line, members[i]));
		between = ": ";
	}
	if (number(line, "count") > 1)
		printf(" (%lld times)", number(line, "count"));
}

static void show_signature(const cJSON *line)
{
	printf("by key %.16s...", text(line, "key"));
}

void record_show_line(cJSON *line)
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

	record_show_make_harmless(line);
	/* The time of the day: the date is in the name of the run. */
	printf("%.12s  ", strlen(text(line, "time")) > 11 ? text(line, "time") + 11 : "?");
	printf("%-9s ", text(line, "event"));
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].event, text(line, "event")) == 0)
			show = kinds[i].show;
	}
	show(line);
	putchar('\n');
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/checklist/findings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const roles[FINDINGS_ROLES] = {
	[FINDINGS_AGENT] = "agent",
	[FINDINGS_ROOT] = "root",
};

static int find_role(const char *word)
{
	for (int i = 0; i < FINDINGS_ROLES; i++) {
		if (word && strcmp(word, roles[i]) == 0)
			return i;
	}
	return -1;
}

static int hex_digit(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* In place. Returns the length, or -1 when it is not written as it should be. */
static long decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		int high, low;

		if (*from != '%') {
			*to++ = *from;
			continue;
		}
		high = hex_digit(from[1]);
		low = high < 0 ? -1 : hex_digit(from[2]);
		if (low < 0)
			return -1;
		*to++ = (char)(high << 4 | low);
		from += 2;
	}
	*to = '\0';
	return to - text;
}

/* A decimal number with nothing else around it. */
static bool take_number(const char *text, long *number)
{
	char *end;

	errno = 0;
	*number = text && *text ? strtol(text, &end, 10) : 0;
	return text && *text && !*end && !errno;
}

/* "end NUMBER ROLE COUNT" */
static void take_end(struct findings *findings, const char *number, char **rest)
{
	const char *given = strsep(rest, " ");
	int role = find_role(strsep(rest, " "));
	long count;

	if (role >= 0 && given && strcmp(given, number) == 0 && take_number(*rest, &count) &&
	    count == (long)findings->count)
		findings->complete[role] = true;
}

/* "ROLE INDEX RESULT DATA"; who answers one item twice has accounted for none. */
static void take_answer(struct findings *findings, int role, char **rest)
{
	long index, result, length;
	const char *first = strsep(rest, " "), *second = strsep(rest, " ");
	struct finding *finding;

	if (!take_number(first, &index) || !take_number(second, &result) || !*rest || index < 0 ||
	    index >= (long)findings->count)
		return;
	length = decode(*rest);
	finding = &findings->all[(size_t)role * findings->count + (size_t)index];
	if (length < 0 || finding->told) {
		findings->broken[role] = true;
		return;
	}
	*finding = (struct finding){true, result, *rest, (size_t)length};
}

int findings_read(struct findings *findings, unsigned int count, const char *number, char *text,
		  size_t length)
{
	char *rest = text, *line;

	*findings = (struct findings){.count = count, .length = length};
	/* Decoding takes bytes away: what came is kept as it came. */
	findings->text = malloc(length + 1);
	findings->all = calloc((size_t)count * FINDINGS_ROLES + 1, sizeof(*findings->all));
	if (!findings->text || !findings->all) {
		free(text);
		return -ENOMEM;
	}
	memcpy(findings->text, text, length + 1);
	while ((line = strsep(&rest, "\n"))) {
		const char *word = strsep(&line, " ");
		int role = find_role(word);

		if (role >= 0 && line)
			take_answer(findings, role, &line);
		else if (word && strcmp(word, "end") == 0 && line)
			take_end(findings, number, &line);
	}
	for (int role = 0; role < FINDINGS_ROLES; role++)
		findings->complete[role] &= !findings->broken[role];
	findings->decoded = text;
	return 0;
}

void findings_destroy(struct findings *findings)
{
	free(findings->text);
	free(findings->decoded);
	free(findings->all);
	*findings = (struct findings){0};
}

const struct finding *findings_of(const struct findings *findings, enum findings_role role,
				  unsigned int item)
{
	return &findings->all[(size_t)role * findings->count + item];
}

bool findings_contain(const struct findings *findings, const char *bytes, size_t length)
{
	if (memmem(findings->text, findings->length, bytes, length))
		return true;
	for (size_t i = 0; i < (size_t)findings->count * FINDINGS_ROLES; i++) {
		const struct finding *finding = &findings->all[i];

		if (finding->told && memmem(finding->data, finding->length, bytes, length))
			return true;
	}
	return false;
}

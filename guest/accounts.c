/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/accounts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line of either file, which both begin name:password:id. */
struct line {
	const char *text;
	size_t length; /* without the newline */
};

/* Takes the next line from *@text. False at the end. */
static bool next_line(const char **text, struct line *line)
{
	if (!**text)
		return false;
	line->text = *text;
	line->length = strcspn(*text, "\n");
	*text += line->length + ((*text)[line->length] == '\n');
	return true;
}

static bool line_has_name(const struct line *line, const char *name)
{
	size_t length = strlen(name);

	return line->length > length && !memcmp(line->text, name, length) &&
	       line->text[length] == ':';
}

static bool line_has_id(const struct line *line, uint32_t id)
{
	const char *end = line->text + line->length;
	const char *field = memchr(line->text, ':', line->length);
	char *rest;

	if (field)
		field = memchr(field + 1, ':', (size_t)(end - field - 1));
	if (!field || field[1] < '0' || field[1] > '9')
		return false;
	return strtoull(field + 1, &rest, 10) == id && *rest == ':';
}

/* Replaces the lines that have the account's name or @id by @entry, at the place of the first. */
static int replace_lines(const char *old, const char *name, uint32_t id, const char *entry,
			 char **edited)
{
	bool placed = false;
	struct line line;
	size_t size;
	FILE *out = open_memstream(edited, &size);

	if (!out)
		return -ENOMEM;
	while (next_line(&old, &line)) {
		if (!line_has_name(&line, name) && !line_has_id(&line, id)) {
			fwrite(line.text, 1, line.length, out);
			fputc('\n', out);
		} else if (!placed) {
			fputs(entry, out);
			placed = true;
		}
	}
	if (!placed)
		fputs(entry, out);
	if (!fclose(out))
		return 0;
	free(*edited);
	*edited = NULL;
	return -ENOMEM;
}

int accounts_edit_passwd(const char *old, const struct account *account, char **edited)
{
	char *entry;
	int error;

	if (asprintf(&entry, "%s:x:%u:%u:%s:%s:%s\n", account->name, account->uid, account->gid,
		     account->name, account->home, account->shell) < 0)
		return -ENOMEM;
	error = replace_lines(old, account->name, account->uid, entry, edited);
	free(entry);
	return error;
}

int accounts_edit_group(const char *old, const struct account *account, char **edited)
{
	const char *rest = old;
	struct line line;
	char *entry;
	int error;

	while (next_line(&rest, &line)) {
		if (line_has_id(&line, account->gid)) {
			*edited = strdup(old);
			return *edited ? 0 : -ENOMEM;
		}
	}
	if (asprintf(&entry, "%s:x:%u:\n", account->name, account->gid) < 0)
		return -ENOMEM;
	error = replace_lines(old, account->name, account->gid, entry, edited);
	free(entry);
	return error;
}

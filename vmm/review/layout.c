/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/layout.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "vmm/base/bytes.h"

static const struct {
	mode_t type;
	const char *name;
} types[] = {
	{S_IFREG, "file"}, {S_IFDIR, "directory"}, {S_IFLNK, "symlink"},
	{S_IFIFO, "fifo"}, {S_IFSOCK, "socket"},
};

bool review_is_whiteout(mode_t mode, dev_t device)
{
	return S_ISCHR(mode) && device == makedev(0, 0);
}

bool review_is_temporary(const char *name)
{
	static const char prefix[] = ".mvagent-", apply[] = "apply-";

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return false;
	name += sizeof(prefix) - 1;
	if (strncmp(name, apply, sizeof(apply) - 1) == 0)
		name += sizeof(apply) - 1;
	return strspn(name, "0123456789abcdef") == 16 && name[16] == '\0';
}

bool review_is_run_name(const char *text)
{
	static const char form[] = "dddddddd-dddddd-xxxx";

	if (strlen(text) != sizeof(form) - 1)
		return false;
	for (size_t i = 0; form[i]; i++) {
		char c = text[i];

		if (form[i] == '-'
			    ? c != '-'
			    : !(c >= '0' && c <= '9') && !(form[i] == 'x' && c >= 'a' && c <= 'f'))
			return false;
	}
	return true;
}

ssize_t review_escape(const char *text, char *escaped, size_t size)
{
	size_t length = 0;

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool plain = c >= 0x20 && c < 0x7f && c != '%' && c != '"' && c != '\\';

		if (size - length < 4)
			return -ENAMETOOLONG;
		if (plain)
			escaped[length++] = (char)c;
		else
			length += (size_t)sprintf(escaped + length, "%%%02x", c);
	}
	if (length >= size)
		return -ENAMETOOLONG;
	escaped[length] = '\0';
	return (ssize_t)length;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int review_unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		int high, low;

		if ((unsigned char)*from < 0x20 || (unsigned char)*from >= 0x7f)
			return -EINVAL;
		if (*from != '%') {
			*to++ = *from;
			continue;
		}
		high = hex_digit(from[1]);
		low = high < 0 ? -1 : hex_digit(from[2]);
		if (low < 0 || (high == 0 && low == 0))
			return -EINVAL;
		*to++ = (char)(high << 4 | low);
		from += 2;
	}
	*to = '\0';
	return 0;
}

ssize_t review_base_format(const char *path, const struct review_base *base, char *line,
			   size_t size)
{
	static const char start[] = "{\"path\":\"";
	const char *type = NULL;
	size_t length = sizeof(start) - 1;
	ssize_t escaped;
	int rest;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if ((base->mode & S_IFMT) == types[i].type)
			type = types[i].name;
	}
	if (!type)
		return -EINVAL;
	if (size < sizeof(start))
		return -ENAMETOOLONG;
	memcpy(line, start, sizeof(start));
	escaped = review_escape(path, line + length, size - length);
	if (escaped < 0)
		return escaped;
	length += (size_t)escaped;
	rest = snprintf(line + length, size - length,
			"\",\"type\":\"%s\",\"mode\":%u,\"size\":%" PRIu64 ",\"mtime_ns\":%" PRId64
			",\"ctime_ns\":%" PRId64 ",\"inode\":%" PRIu64 "}\n",
			type, base->mode & 07777, base->size, base->mtime_ns, base->ctime_ns,
			base->inode);
	if (rest < 0 || (size_t)rest >= size - length)
		return -ENAMETOOLONG;
	return (ssize_t)length + rest;
}

static char *skip_blanks(char *text)
{
	return text + strspn(text, " \t\r");
}

/* Takes a string at *@next, which has no escapes of JSON: review_escape leaves none to make. */
static char *take_string(char **next)
{
	char *text, *end;

	*next = skip_blanks(*next);
	if (**next != '"')
		return NULL;
	text = *next + 1;
	end = text + strcspn(text, "\"\\");
	if (*end != '"')
		return NULL;
	*end = '\0';
	*next = end + 1;
	return text;
}

static bool take_character(char **next, char wanted)
{
	*next = skip_blanks(*next);
	if (**next != wanted)
		return false;
	++*next;
	return true;
}

/* Digits, with a minus sign before them if @is_signed. Both kinds end up in the 64 bits of @value.
 */
static bool take_number(char **next, bool is_signed, uint64_t *value)
{
	char *end;

	*next = skip_blanks(*next);
	if (!isdigit((unsigned char)**next) && !(is_signed && **next == '-'))
		return false;
	errno = 0;
	*value = is_signed ? (uint64_t)strtoll(*next, &end, 10) : strtoull(*next, &end, 10);
	if (errno || end == *next)
		return false;
	*next = end;
	return true;
}

enum base_field {
	FIELD_PATH,
	FIELD_TYPE,
	FIELD_MODE,
	FIELD_SIZE,
	FIELD_MTIME,
	FIELD_CTIME,
	FIELD_INODE,
	FIELD_COUNT
};

static const char *const field_names[FIELD_COUNT] = {
	"path", "type", "mode", "size", "mtime_ns", "ctime_ns", "inode",
};

/* The value of a field. Each comes once, so that no two readers can differ about it. */
static bool take_field(char **next, unsigned int *seen, const char **path, mode_t *type,
		       uint64_t numbers[FIELD_COUNT])
{
	const char *name = take_string(next);
	unsigned int field = 0;
	char *text;

	if (!name || !take_character(next, ':'))
		return false;
	while (field < FIELD_COUNT && strcmp(name, field_names[field]) != 0)
		field++;
	if (field == FIELD_COUNT || *seen & 1U << field)
		return false;
	*seen |= 1U << field;
	if (field != FIELD_PATH && field != FIELD_TYPE)
		return take_number(next, field == FIELD_MTIME || field == FIELD_CTIME,
				   &numbers[field]);
	text = take_string(next);
	if (!text)
		return false;
	if (field == FIELD_PATH) {
		*path = text;
		return review_unescape(text) == 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strcmp(text, types[i].name) == 0)
			*type = types[i].type;
	}
	return *type != 0;
}

int review_base_parse(char *line, const char **path, struct review_base *base)
{
	uint64_t numbers[FIELD_COUNT] = {0};
	unsigned int seen = 0;
	mode_t type = 0;

	if (!take_character(&line, '{'))
		return -EINVAL;
	do {
		if (!take_field(&line, &seen, path, &type, numbers))
			return -EINVAL;
	} while (take_character(&line, ','));
	if (!take_character(&line, '}') || *skip_blanks(line) || seen != (1U << FIELD_COUNT) - 1 ||
	    numbers[FIELD_MODE] > 07777)
		return -EINVAL;
	*base = (struct review_base){
		.mode = type | (mode_t)numbers[FIELD_MODE],
		.inode = numbers[FIELD_INODE],
		.size = numbers[FIELD_SIZE],
		.mtime_ns = (int64_t)numbers[FIELD_MTIME],
		.ctime_ns = (int64_t)numbers[FIELD_CTIME],
	};
	return 0;
}

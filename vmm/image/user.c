/* SPDX-License-Identifier: Apache-2.0 */
/* Users and groups of an image, as its own passwd(5) and group(5) have them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vmm/base/number.h"
#include "vmm/image/settings.h"

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

/* Who has a number but no name there. */
#define NAMELESS      "agent"
#define NAMELESS_HOME "/home/agent"

#define FIELDS 7U

/* A line and where its fields are. */
struct record {
	const char *fields[FIELDS];
	size_t lengths[FIELDS];
	unsigned int count;
};

/* Takes the next line from *@text. False at the end. */
static bool next_record(const char **text, struct record *record)
{
	const char *place = *text, *end;

	if (!*place)
		return false;
	end = place + strcspn(place, "\n");
	*text = *end ? end + 1 : end;
	record->count = 0;
	while (record->count < FIELDS) {
		size_t length = strcspn(place, ":\n");

		record->fields[record->count] = place;
		record->lengths[record->count++] = length;
		if (place[length] != ':')
			break;
		place += length + 1;
	}
	return true;
}

static bool field_is(const struct record *record, unsigned int index, const char *text,
		     size_t length)
{
	return index < record->count && record->lengths[index] == length &&
	       memcmp(record->fields[index], text, length) == 0;
}

static bool field_number(const struct record *record, unsigned int index, uint32_t *number)
{
	char text[16];
	uint64_t value;

	if (index >= record->count || record->lengths[index] >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)record->lengths[index], record->fields[index]);
	if (number_parse(text, 0, UINT32_MAX - 1, &value))
		return false;
	*number = (uint32_t)value;
	return true;
}

/* A number, as which users and groups may be given. */
static bool text_number(const char *text, size_t length, uint32_t *number)
{
	const struct record record = {.fields = {text}, .lengths = {length}, .count = 1};

	return field_number(&record, 0, number);
}

static void copy_field(char *copy, size_t size, const struct record *record, unsigned int index,
		       const char *otherwise)
{
	snprintf(copy, size, "%s", otherwise);
	if (index < record->count && record->lengths[index] && record->lengths[index] < size)
		snprintf(copy, size, "%.*s", (int)record->lengths[index], record->fields[index]);
}

/* Whoever has that name, or that number. */
static int find_user(const char *text, size_t length, const char *passwd, struct image_user *found)
{
	struct record record;
	uint32_t wanted = 0, uid = 0, gid = 0;
	bool is_number = text_number(text, length, &wanted);

	while (next_record(&passwd, &record)) {
		if (!field_number(&record, 2, &uid) || !field_number(&record, 3, &gid))
			continue;
		if (!field_is(&record, 0, text, length) && !(is_number && uid == wanted))
			continue;
		found->uid = uid;
		found->gid = gid;
		copy_field(found->name, sizeof(found->name), &record, 0, NAMELESS);
		copy_field(found->home, sizeof(found->home), &record, 5, NAMELESS_HOME);
		if (found->name[strspn(found->name, NAME_LETTERS)])
			snprintf(found->name, sizeof(found->name), NAMELESS);
		if (found->home[0] != '/')
			snprintf(found->home, sizeof(found->home), NAMELESS_HOME);
		return 0;
	}
	if (!is_number)
		return -ENOENT;
	*found = (struct image_user){.uid = wanted, .gid = 0};
	snprintf(found->name, sizeof(found->name), "%s", wanted ? NAMELESS : "root");
	snprintf(found->home, sizeof(found->home), "%s", wanted ? NAMELESS_HOME : "/root");
	return 0;
}

static int find_group(const char *text, const char *group, uint32_t *gid)
{
	struct record record;

	if (text_number(text, strlen(text), gid))
		return 0;
	while (next_record(&group, &record)) {
		if (field_is(&record, 0, text, strlen(text)) && field_number(&record, 2, gid))
			return 0;
	}
	return -ENOENT;
}

int image_user_find(const char *user, const char *passwd, const char *group,
		    struct image_user *found)
{
	size_t length = strcspn(user, ":");
	int error;

	*found = (struct image_user){0};
	if (!length || (user[length] && !user[length + 1]))
		return -EINVAL;
	error = find_user(user, length, passwd, found);
	if (!error && user[length])
		error = find_group(user + length + 1, group, &found->gid);
	return error;
}

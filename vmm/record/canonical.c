/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/record/canonical.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/text.h"

#define MEMBERS_MAX 4096U              /* of one object */
#define DEPTH_MAX   32U                /* of objects and arrays in each other */
#define WHOLE_MAX   9007199254740991.0 /* 2^53 - 1: what every reader of JSON knows exactly */

/* Text under construction. */
struct buffer {
	char *text;
	size_t length;
	size_t room;
	bool failed;
};

static void add_bytes(struct buffer *buffer, const char *bytes, size_t length)
{
	if (buffer->room - buffer->length <= length) {
		size_t room = 2 * (buffer->room + length) + 64;
		char *grown = buffer->failed ? NULL : realloc(buffer->text, room);

		if (!grown) {
			buffer->failed = true;
			return;
		}
		buffer->text = grown;
		buffer->room = room;
	}
	memcpy(buffer->text + buffer->length, bytes, length);
	buffer->length += length;
	buffer->text[buffer->length] = '\0';
}

static void add_string(struct buffer *buffer, const char *string)
{
	static const char special[] = "\b\t\n\f\r\"\\";
	static const char letters[] = "btnfr\"\\";

	add_bytes(buffer, "\"", 1);
	for (; *string; string++) {
		const char *found = strchr(special, *string);
		char escape[8];

		if (found) {
			escape[0] = '\\';
			escape[1] = letters[found - special];
			add_bytes(buffer, escape, 2);
		} else if ((unsigned char)*string < ' ') {
			snprintf(escape, sizeof(escape), "\\u%04x", (unsigned int)*string);
			add_bytes(buffer, escape, 6);
		} else {
			add_bytes(buffer, string, 1);
		}
	}
	add_bytes(buffer, "\"", 1);
}

static void add_number(struct buffer *buffer, double number)
{
	char text[32];

	if (!(number >= -WHOLE_MAX && number <= WHOLE_MAX) || (double)(long long)number != number) {
		buffer->failed = true;
		return;
	}
	/* No "-0". */
	snprintf(text, sizeof(text), "%lld", (long long)number);
	add_bytes(buffer, text, strlen(text));
}

static void add_value(struct buffer *buffer, const cJSON *value, unsigned int depth);

struct member {
	const cJSON *item;
};

static int compare_names(const void *a, const void *b)
{
	const struct member *left = a, *right = b;

	return strcmp(left->item->string, right->item->string);
}

static void add_object(struct buffer *buffer, const cJSON *object, unsigned int depth)
{
	size_t count = 0;
	struct member *members;
	const cJSON *member;

	cJSON_ArrayForEach(member, object) count++;
	members = count <= MEMBERS_MAX ? malloc((count + 1) * sizeof(*members)) : NULL;
	if (!members) {
		buffer->failed = true;
		return;
	}
	count = 0;
	cJSON_ArrayForEach(member, object) members[count++].item = member;
	qsort(members, count, sizeof(*members), compare_names);
	add_bytes(buffer, "{", 1);
	for (size_t i = 0; i < count && !buffer->failed; i++) {
		if (i && strcmp(members[i - 1].item->string, members[i].item->string) == 0)
			buffer->failed = true;
		if (i)
			add_bytes(buffer, ",", 1);
		add_string(buffer, members[i].item->string);
		add_bytes(buffer, ":", 1);
		add_value(buffer, members[i].item, depth + 1);
	}
	add_bytes(buffer, "}", 1);
	free(members);
}

static void add_array(struct buffer *buffer, const cJSON *array, unsigned int depth)
{
	const cJSON *item;
	bool first = true;

	add_bytes(buffer, "[", 1);
	cJSON_ArrayForEach(item, array)
	{
		if (!first)
			add_bytes(buffer, ",", 1);
		first = false;
		add_value(buffer, item, depth + 1);
	}
	add_bytes(buffer, "]", 1);
}

static void add_value(struct buffer *buffer, const cJSON *value, unsigned int depth)
{
	if (depth > DEPTH_MAX)
		buffer->failed = true;
	else if (cJSON_IsObject(value))
		add_object(buffer, value, depth);
	else if (cJSON_IsArray(value))
		add_array(buffer, value, depth);
	else if (cJSON_IsString(value))
		add_string(buffer, value->valuestring);
	else if (cJSON_IsNumber(value))
		add_number(buffer, value->valuedouble);
	else if (cJSON_IsBool(value))
		add_bytes(buffer, cJSON_IsTrue(value) ? "true" : "false",
			  cJSON_IsTrue(value) ? 4 : 5);
	else if (cJSON_IsNull(value))
		add_bytes(buffer, "null", 4);
	else
		buffer->failed = true;
}

char *canonical_print(const cJSON *value)
{
	struct buffer buffer = {0};

	add_value(&buffer, value, 0);
	if (!buffer.failed)
		return buffer.text;
	free(buffer.text);
	return NULL;
}

cJSON *canonical_text(const char *bytes, size_t limit)
{
	size_t length = strnlen(bytes, limit + 1), at = 0;
	bool cut = length > limit;
	struct buffer buffer = {0};
	cJSON *string = NULL;
	char escape[8];

	add_bytes(&buffer, "", 0);
	if (cut)
		length = limit;
	while (at < length) {
		size_t character = text_character_length(bytes + at, length - at);
		unsigned char first = (unsigned char)bytes[at];

		if (text_is_visible(bytes + at, character) && first != '%') {
			add_bytes(&buffer, bytes + at, character);
			at += character;
			continue;
		}
		snprintf(escape, sizeof(escape), "%%%02X", first);
		add_bytes(&buffer, escape, 3);
		at++;
	}
	if (cut)
		add_bytes(&buffer, "%...", 4);
	if (!buffer.failed)
		string = cJSON_CreateString(buffer.text);
	free(buffer.text);
	return string;
}

static int hex_value(char digit)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *found = digit ? strchr(digits, digit) : NULL;

	return found ? (int)(found - digits) : -1;
}

void canonical_unescape(char *text)
{
	char *to = text;

	while (*text) {
		int high = *text == '%' ? hex_value(text[1]) : -1;
		int low = high < 0 ? -1 : hex_value(text[2]);

		/* Never a NUL: there is none in what was escaped. */
		if (low >= 0 && (high | low)) {
			*to++ = (char)(high << 4 | low);
			text += 3;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

void canonical_add_count(cJSON *object, const char *name, double count)
{
	double whole = !(count > 0) ? 0 : count > WHOLE_MAX ? WHOLE_MAX : (double)(int64_t)count;

	cJSON_AddNumberToObject(object, name, whole);
}

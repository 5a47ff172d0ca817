/* SPDX-License-Identifier: Apache-2.0 */
/* The signature under a review, and whether a file is what it was made of. */
#include "vmm/checklist/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/version.h"
#include "vmm/checklist/page.h"
#include "vmm/record/canonical.h"

#define SIGNED_PREFIX "mvagent review 1\n"

/* What is signed: the prefix, and the object without its signature. Allocated. */
static char *signed_text(cJSON *page)
{
	char *text, *whole = NULL;

	cJSON_DeleteItemFromObjectCaseSensitive(page, "signature");
	text = canonical_print(page);
	if (text && asprintf(&whole, SIGNED_PREFIX "%s", text) < 0)
		whole = NULL;
	free(text);
	return whole;
}

static bool add_hex(cJSON *page, const char *name, const uint8_t *bytes, size_t length)
{
	char text[2 * SIGNATURE_BYTES + 1] = "";

	for (size_t i = 0; i < length; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	cJSON_DeleteItemFromObjectCaseSensitive(page, name);
	return cJSON_AddStringToObject(page, name, text);
}

int page_sign(cJSON *page, const struct record_key *key)
{
	uint8_t signature[SIGNATURE_BYTES] = {0};
	char *text = NULL;
	int error = -ENOMEM;

	if (add_hex(page, "key", key->public_key, KEY_BYTES))
		text = signed_text(page);
	if (text)
		error = record_key_sign(key, text, strlen(text), signature);
	free(text);
	if (!error && !add_hex(page, "signature", signature, SIGNATURE_BYTES))
		error = -ENOMEM;
	return error;
}

static bool take_hex(const cJSON *page, const char *name, uint8_t *bytes, size_t length)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(page, name));

	if (!text || strlen(text) != 2 * length || strspn(text, "0123456789abcdef") != 2 * length)
		return false;
	for (size_t i = 0; i < length; i++) {
		unsigned int value;

		sscanf(text + 2 * i, "%2x", &value);
		bytes[i] = (uint8_t)value;
	}
	return true;
}

/* Whether the object is signed by the key that it names. */
static bool signature_holds(const cJSON *page, uint8_t key[KEY_BYTES])
{
	uint8_t signature[SIGNATURE_BYTES];
	cJSON *unsigned_page = cJSON_Duplicate(page, true);
	bool good = take_hex(page, "key", key, KEY_BYTES) &&
		    take_hex(page, "signature", signature, SIGNATURE_BYTES);
	char *text = good && unsigned_page ? signed_text(unsigned_page) : NULL;

	good = text && record_key_verify(key, text, strlen(text), signature) == 0;
	free(text);
	cJSON_Delete(unsigned_page);
	return good;
}

static int hex_value(char digit)
{
	const char *digits = "0123456789abcdef", *found = digit ? strchr(digits, digit) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* The object in a page of HTML: hexadecimal, between the two marks. Allocated; NULL: there is none.
 */
static char *find_object(const char *text, size_t length)
{
	const char *from = memmem(text, length, SEAL_BEGIN, strlen(SEAL_BEGIN));
	const char *to;
	char *object, *at;

	if (!from)
		return NULL;
	from += strlen(SEAL_BEGIN);
	to = memmem(from, (size_t)(text + length - from), SEAL_END, strlen(SEAL_END));
	if (!to)
		return NULL;
	object = at = calloc(1, (size_t)(to - from) / 2 + 1);
	for (; object && from + 1 < to; from += 2) {
		int high = hex_value(from[0]), low = hex_value(from[1]);

		if (high < 0 || low < 0)
			break;
		*at++ = (char)(high << 4 | low);
	}
	if (object)
		*at = '\0';
	return object;
}

char *page_json(const cJSON *page)
{
	char *text = canonical_print(page), *line = NULL;

	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	free(text);
	return line;
}

static void judge(struct page_check *check, const char *text, size_t length, bool html,
		  const uint8_t trusted[KEY_BYTES])
{
	const char *version;
	char *again;
	bool same;

	check->verdict = PAGE_ALTERED;
	check->sentence = "it is no review, or was altered: there is nothing signed in it";
	if (!cJSON_IsObject(check->page))
		return;
	check->sentence = "it was altered: its signature is not of what it says";
	if (!signature_holds(check->page, check->key))
		return;
	version = cJSON_GetStringValue(cJSON_GetObjectItem(check->page, "mvagent"));
	check->verdict = PAGE_OTHER_VERSION;
	check->sentence = "what is signed in it is whole, but another version of mvagent made the "
			  "page: use that one to compare what it shows";
	if (html && (!version || strcmp(version, MVAGENT_VERSION) != 0))
		return;
	again = html ? page_html(check->page) : page_json(check->page);
	same = again && strlen(again) == length && memcmp(again, text, length) == 0;
	free(again);
	check->verdict = PAGE_ALTERED;
	check->sentence = "it was altered: it shows something else than what was signed";
	if (!same)
		return;
	check->verdict = memcmp(check->key, trusted, KEY_BYTES) ? PAGE_OTHER_KEY : PAGE_WHOLE;
	check->sentence = check->verdict == PAGE_WHOLE
				  ? "as it was made, and signed"
				  : "whole in itself, but signed by another key";
}

int page_verify(struct page_check *check, const char *text, size_t length,
		const uint8_t trusted[KEY_BYTES])
{
	const bool html = length && text[0] == '<';
	char *object = html ? find_object(text, length) : NULL;

	*check = (struct page_check){0};
	if (html)
		check->page = object ? cJSON_Parse(object) : NULL;
	else
		check->page = cJSON_ParseWithLength(text, length);
	free(object);
	judge(check, text, length, html, trusted);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The signature under a review, and whether a file is what it was made of. */
#include "vmm/checklist/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/version.h"
#include "vmm/checklist/page.h"
#include "vmm/record/canonical.h"
#include "vmm/record/signed.h"

/* What comes before the object in what is signed. */
#define SIGNED_WORDS "mvagent review 1\n"

int page_sign(cJSON *page, const struct record_key *key)
{
	return signed_add(page, SIGNED_WORDS, key);
}

static int hex_value(char digit)
{
	const char *digits = "0123456789abcdef", *found = digit ? strchr(digits, digit) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* The object in a page of HTML: hexadecimal, between the two marks. *@object is allocated; NULL:
 * there is none. 0 or -ENOMEM. */
static int find_object(const char *text, size_t length, char **object)
{
	const char *from = memmem(text, length, SEAL_BEGIN, strlen(SEAL_BEGIN));
	const char *to;
	char *at;

	*object = NULL;
	if (!from)
		return 0;
	from += strlen(SEAL_BEGIN);
	to = memmem(from, (size_t)(text + length - from), SEAL_END, strlen(SEAL_END));
	if (!to)
		return 0;
	*object = at = calloc(1, (size_t)(to - from) / 2 + 1);
	if (!at)
		return -ENOMEM;
	for (; from + 1 < to; from += 2) {
		int high = hex_value(from[0]), low = hex_value(from[1]);

		if (high < 0 || low < 0)
			break;
		*at++ = (char)(high << 4 | low);
	}
	*at = '\0';
	return 0;
}

char *page_json(const cJSON *page)
{
	char *text = canonical_print(page), *line = NULL;

	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	free(text);
	return line;
}

/* 0 or -ENOMEM: a page that could not be made anew is not one that was altered. */
static int judge(struct page_check *check, const char *text, size_t length, bool html,
		 const uint8_t trusted[KEY_BYTES])
{
	const char *version;
	char *again;
	bool same;

	check->verdict = PAGE_ALTERED;
	check->sentence = "it is no review, or was altered: there is nothing signed in it";
	if (!cJSON_IsObject(check->page))
		return 0;
	check->sentence = "it was altered: its signature is not of what it says";
	if (!signed_holds(check->page, SIGNED_WORDS, check->key))
		return 0;
	version = cJSON_GetStringValue(cJSON_GetObjectItem(check->page, "mvagent"));
	check->verdict = PAGE_OTHER_VERSION;
	check->sentence = "what is signed in it is whole, but another version of mvagent made the "
			  "page: use that one to compare what it shows";
	if (html && (!version || strcmp(version, MVAGENT_VERSION) != 0))
		return 0;
	again = html ? page_html(check->page) : page_json(check->page);
	if (!again)
		return -ENOMEM;
	same = strlen(again) == length && memcmp(again, text, length) == 0;
	free(again);
	check->verdict = PAGE_ALTERED;
	check->sentence = "it was altered: it shows something else than what was signed";
	if (!same)
		return 0;
	check->verdict = memcmp(check->key, trusted, KEY_BYTES) ? PAGE_OTHER_KEY : PAGE_WHOLE;
	check->sentence = check->verdict == PAGE_WHOLE
				  ? "as it was made, and signed"
				  : "whole in itself, but signed by another key";
	return 0;
}

int page_verify(struct page_check *check, const char *text, size_t length,
		const uint8_t trusted[KEY_BYTES])
{
	const bool html = length && text[0] == '<';
	char *object = NULL;
	int error = html ? find_object(text, length, &object) : 0;

	*check = (struct page_check){0};
	if (html)
		check->page = object ? cJSON_Parse(object) : NULL;
	else
		check->page = cJSON_ParseWithLength(text, length);
	free(object);
	return error ? error : judge(check, text, length, html, trusted);
}

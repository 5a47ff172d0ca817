/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/record/signed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/record/canonical.h"

/* What is signed; allocated. NULL: no memory. The object is left without a signature. */
static char *signed_text(cJSON *object, const char *words)
{
	char *text, *whole = NULL;

	cJSON_DeleteItemFromObjectCaseSensitive(object, SIGNED_SIGNATURE);
	text = canonical_print(object);
	if (text && asprintf(&whole, "%s%s", words, text) < 0)
		whole = NULL;
	free(text);
	return whole;
}

static bool add_hex(cJSON *object, const char *name, const uint8_t *bytes, size_t length)
{
	char text[2 * SIGNATURE_BYTES + 1] = "";

	for (size_t i = 0; i < length; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	cJSON_DeleteItemFromObjectCaseSensitive(object, name);
	return cJSON_AddStringToObject(object, name, text);
}

int signed_add(cJSON *object, const char *words, const struct record_key *key)
{
	uint8_t signature[SIGNATURE_BYTES] = {0};
	char *text = NULL;
	int error = -ENOMEM;

	if (add_hex(object, SIGNED_KEY, key->public_key, KEY_BYTES))
		text = signed_text(object, words);
	if (text)
		error = record_key_sign(key, text, strlen(text), signature);
	free(text);
	if (!error && !add_hex(object, SIGNED_SIGNATURE, signature, SIGNATURE_BYTES))
		error = -ENOMEM;
	return error;
}

static bool take_hex(const cJSON *object, const char *name, uint8_t *bytes, size_t length)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	if (!text || strlen(text) != 2 * length || strspn(text, "0123456789abcdef") != 2 * length)
		return false;
	for (size_t i = 0; i < length; i++) {
		unsigned int value;

		sscanf(text + 2 * i, "%2x", &value);
		bytes[i] = (uint8_t)value;
	}
	return true;
}

bool signed_holds(const cJSON *object, const char *words, uint8_t key[KEY_BYTES])
{
	uint8_t signature[SIGNATURE_BYTES];
	cJSON *unsigned_object = cJSON_Duplicate(object, true);
	bool good = take_hex(object, SIGNED_KEY, key, KEY_BYTES) &&
		    take_hex(object, SIGNED_SIGNATURE, signature, SIGNATURE_BYTES);
	char *text = good && unsigned_object ? signed_text(unsigned_object, words) : NULL;

	good = text && record_key_verify(key, text, strlen(text), signature) == 0;
	free(text);
	cJSON_Delete(unsigned_object);
	return good;
}

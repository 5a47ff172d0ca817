/* SPDX-License-Identifier: Apache-2.0 */
/* When a token ends, where it says so: a JSON Web Token (RFC 7519) has it in its second part. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vmm/cli/checklist_host.h"

#define CLAIMS_BYTES 8192U

/* base64url without padding (RFC 4648, section 5). Returns the length, 0 when it is none. */
static size_t decode(const char *text, size_t length, char bytes[CLAIMS_BYTES])
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789-_";
	uint32_t bits = 0;
	unsigned int count = 0;
	size_t made = 0;

	for (size_t i = 0; i < length && made < CLAIMS_BYTES - 1; i++) {
		const char *letter = text[i] ? strchr(letters, text[i]) : NULL;

		if (!letter)
			return 0;
		bits = bits << 6 | (uint32_t)(letter - letters);
		count += 6;
		if (count >= 8) {
			count -= 8;
			bytes[made++] = (char)(bits >> count & 0xff);
		}
	}
	bytes[made] = '\0';
	return made;
}

/* Adds what a token says, if it is one. */
static void add_expiry(cJSON *expiries, const char *name, const char *token)
{
	const char *first = strchr(token, '.'), *second = first ? strchr(first + 1, '.') : NULL;
	char claims[CLAIMS_BYTES], text[64];
	cJSON *object = NULL;
	const cJSON *expiry;
	struct tm parts;
	time_t when;

	if (second && decode(first + 1, (size_t)(second - first - 1), claims))
		object = cJSON_Parse(claims);
	expiry = cJSON_GetObjectItemCaseSensitive(object, "exp");
	if (cJSON_IsNumber(expiry) && expiry->valuedouble > 0 && expiry->valuedouble < 1e11) {
		when = (time_t)expiry->valuedouble;
		gmtime_r(&when, &parts);
		if (strftime(text, sizeof(text), "valid until %Y-%m-%dT%H:%M:%SZ", &parts))
			cJSON_AddStringToObject(expiries, name, text);
	}
	cJSON_Delete(object);
}

cJSON *checklist_expiries(const struct run_variables *variables)
{
	cJSON *expiries = cJSON_CreateObject();

	for (unsigned int i = 0; expiries && i < variables->count; i++) {
		const struct run_variable *variable = &variables->list[i];
		const char *value = run_variable_value(variable);
		char *name = strndup(variable->text, strcspn(variable->text, "="));

		if (name && value)
			add_expiry(expiries, name, value);
		free(name);
	}
	return expiries;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/limits.h"
#include "vmm/image/settings.h"

cJSON *json_parse(const char *text, size_t length)
{
	const char *end = NULL;
	cJSON *json = cJSON_ParseWithLengthOpts(text, length, &end, false);

	if (json && !cJSON_IsObject(json) && !cJSON_IsArray(json)) {
		cJSON_Delete(json);
		return NULL;
	}
	for (; json && end < text + length; end++) {
		if (strchr(" \t\r\n", *end))
			continue;
		cJSON_Delete(json);
		return NULL;
	}
	return json;
}

const char *json_text(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	return text && *text ? text : NULL;
}

bool json_number(const cJSON *object, const char *name, uint64_t maximum, uint64_t *number)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
	double value;

	if (!cJSON_IsNumber(item))
		return false;
	value = cJSON_GetNumberValue(item);
	if (!(value >= 0 && value <= (double)maximum))
		return false;
	*number = (uint64_t)value;
	return (double)*number == value; /* NOLINT: exact below 2^53 */
}

int json_texts(const cJSON *object, const char *name, char ***list)
{
	const cJSON *array = cJSON_GetObjectItemCaseSensitive(object, name), *item;
	unsigned int count = 0;
	char **texts;
	int error = 0;

	if (array && !cJSON_IsNull(array) && !cJSON_IsArray(array))
		return -EINVAL;
	if (cJSON_GetArraySize(array) > (int)LIMIT_IMAGE_STRINGS)
		return -EINVAL;
	texts = calloc((size_t)cJSON_GetArraySize(array) + 1, sizeof(char *));
	if (!texts)
		return -ENOMEM;
	cJSON_ArrayForEach(item, array)
	{
		const char *text = cJSON_GetStringValue(item);

		if (!text || strlen(text) >= LIMIT_IMAGE_STRING_BYTES)
			error = -EINVAL;
		else if (!(texts[count++] = strdup(text)))
			error = -ENOMEM;
		if (error)
			break;
	}
	if (error) {
		image_strings_free(texts);
		return error;
	}
	image_strings_free(*list);
	*list = texts;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of images, as archives have them, as the store has them, and accounts. The first
 * byte says which. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/silent_log.h"
#include "vmm/image/container_json.h"
#include "vmm/image/descriptor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)        \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static void parse_plan(uint8_t what, const char *text, size_t length)
{
	static struct container_plan plan;
	int error;

	memset(&plan, 0, sizeof(plan));
	REQUIRE(image_settings_init(&plan.settings) == 0);
	plan.layer_count = what == 3 && length ? (unsigned char)text[0] % 4 : 0;
	error = what == 1   ? container_parse_manifest(text, length, &plan)
		: what == 2 ? container_parse_docker(text, length, &plan)
			    : container_parse_config(text, length, &plan);
	REQUIRE(error || plan.layer_count <= LIMIT_IMAGE_LAYERS);
	for (unsigned int i = 0; !error && i < plan.layer_count; i++)
		REQUIRE(memchr(plan.layers[i].name, 0, sizeof(plan.layers[i].name)));
	image_settings_free(&plan.settings);
	free(plan.user);
}

/* A text that was read is written and read again. */
static void parse_descriptor(const char *text, size_t length)
{
	struct image_descriptor descriptor, again;
	char *written;

	if (image_descriptor_parse(text, length, &descriptor) == 0) {
		REQUIRE(image_descriptor_format(&descriptor, &written) == 0);
		REQUIRE(image_descriptor_parse(written, strlen(written), &again) == 0);
		REQUIRE(again.bytes == descriptor.bytes);
		free(written);
		image_descriptor_free(&again);
	}
	image_descriptor_free(&descriptor);
}

/* A line is the user, all else both files. */
static void find_user(const char *text)
{
	char user[64];
	struct image_user found;
	size_t line = strcspn(text, "\n");

	if (line >= sizeof(user))
		return;
	memcpy(user, text, line);
	user[line] = '\0';
	if (image_user_find(user, text + line, text + line, &found) == 0)
		REQUIRE(found.name[0] && found.home[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct container_part part;
	char *text;

	if (size < 1)
		return 0;
	text = calloc(1, size);
	REQUIRE(text);
	memcpy(text, data + 1, size - 1);
	switch (data[0] % 6) {
	case 0:
		container_parse_index(text, size - 1, &part);
		container_is_index(text, size - 1);
		break;
	case 4:
		parse_descriptor(text, size - 1);
		break;
	case 5:
		find_user(text);
		break;
	default:
		parse_plan(data[0] % 6, text, size - 1);
		break;
	}
	free(text);
	return 0;
}

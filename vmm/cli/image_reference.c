/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "vmm/cli/image_store.h"

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* What can be a file's name, and is neither an option nor a digest. */
static bool is_name(const char *text, size_t length)
{
	return length && length <= LIMIT_IMAGE_NAME_BYTES &&
	       strspn(text, NAME_LETTERS "._:+-") >= length && strchr(NAME_LETTERS, text[0]) &&
	       strncmp(text, DIGEST_PREFIX, strlen(DIGEST_PREFIX)) != 0;
}

bool image_reference_parse(const char *text, struct image_reference *reference)
{
	size_t length = strcspn(text, "@");

	*reference = (struct image_reference){0};
	if (digest_from_text(text, reference->digest)) {
		reference->is_pinned = true;
		return true;
	}
	if (!is_name(text, length))
		return false;
	memcpy(reference->name, text, length);
	reference->is_pinned = text[length] == '@';
	return !reference->is_pinned || digest_from_text(text + length + 1, reference->digest);
}

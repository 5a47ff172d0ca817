/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/base/stream_search.h"

#include <string.h>

#include "vmm/base/bytes.h"

/* Whether @text ends within @bytes and begins before them. */
static bool crosses(const struct stream_search *search, const struct stream_text *text,
		    const uint8_t *bytes, size_t length)
{
	for (size_t before = bytes_minimum(text->length - 1, search->kept); before > 0; before--) {
		const size_t after = text->length - before;

		if (after <= length &&
		    memcmp(search->end + search->kept - before, text->text, before) == 0 &&
		    memcmp(bytes, text->text + before, after) == 0)
			return true;
	}
	return false;
}

static void keep(struct stream_search *search, const uint8_t *bytes, size_t length)
{
	size_t stays;

	if (length >= sizeof(search->end)) {
		memcpy(search->end, bytes + length - sizeof(search->end), sizeof(search->end));
		search->kept = sizeof(search->end);
		return;
	}
	stays = bytes_minimum(search->kept, sizeof(search->end) - length);
	memmove(search->end, search->end + search->kept - stays, stays);
	memcpy(search->end + stays, bytes, length);
	search->kept = stays + length;
}

int stream_search_piece(struct stream_search *search, const struct stream_text *texts,
			unsigned int count, const void *bytes, size_t length)
{
	int found = -1;

	if (!length)
		return -1;
	for (unsigned int i = 0; found < 0 && i < count; i++) {
		if (crosses(search, &texts[i], bytes, length) ||
		    memmem(bytes, length, texts[i].text, texts[i].length))
			found = (int)i;
	}
	keep(search, bytes, length);
	return found;
}

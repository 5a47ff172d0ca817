/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/masker.h"

#include <string.h>

static struct mask_match match_at(const struct masker *masker, size_t at)
{
	return mask_table_match(masker->table, masker->bytes + at, masker->length - at);
}

/* A start of one that is cut short at @at: how much of it is not the start of another that goes on
 * behind it. */
static size_t length_alone(const struct masker *masker, size_t at, size_t length)
{
	for (size_t next = at + 1; next < at + length; next++) {
		if (next + match_at(masker, next).length > at + length)
			return next - at;
	}
	return length;
}

/* Whether the one at @at was counted when its beginning had to leave. */
static bool is_counted(const struct masker *masker, size_t at)
{
	return at == 0 && masker->passed &&
	       mask_table_match(masker->table, masker->bytes, masker->passed).telling;
}

/* Replaces what is there of secrets. Returns where one begins of which more may come, or the end.
 */
static size_t replace_all(struct masker *masker)
{
	size_t at = 0;

	while (at < masker->length) {
		struct mask_match match = match_at(masker, at);

		/* Also a whole one, if it is the start of another. */
		if (match.open)
			break;
		if (!match.telling) {
			at++;
			continue;
		}
		if (!match.whole)
			match.length = length_alone(masker, at, match.length);
		/* What all such secrets begin with is the same in the placeholder. */
		masker->masked[match.secret] +=
			!is_counted(masker, at) &&
			memcmp(masker->bytes + at, match.instead, match.length) != 0;
		memcpy(masker->bytes + at, match.instead, match.length);
		at += match.length;
	}
	return at;
}

size_t masker_put(struct masker *masker, const void *bytes, size_t length, char *out)
{
	size_t held, ready;

	memcpy(masker->bytes + masker->length, bytes, length);
	masker->length += length;
	ready = replace_all(masker);
	held = masker->length - ready;
	/* What has left is not given again; what was held may turn out to be nothing. */
	if (ready > masker->passed) {
		memcpy(out, masker->bytes + masker->passed, ready - masker->passed);
		length = ready - masker->passed;
	} else {
		length = 0;
	}
	masker->passed = masker->passed > ready ? masker->passed - ready : 0;
	memmove(masker->bytes, masker->bytes + ready, held);
	masker->length = held;
	return length;
}

bool masker_is_holding(const struct masker *masker)
{
	return masker->length > masker->passed;
}

size_t masker_flush(struct masker *masker, char *out)
{
	const size_t length = masker->length - masker->passed;
	struct mask_match match;

	if (!length)
		return 0;
	/* All that is held is the start of one. */
	match = match_at(masker, 0);
	masker->masked[match.secret] += match.telling && !is_counted(masker, 0) &&
					memcmp(masker->bytes, match.instead, masker->length) != 0;
	memcpy(out, (match.telling ? match.instead : masker->bytes) + masker->passed, length);
	masker->passed = masker->length;
	return length;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/masker.h"

#include <string.h>

#include "vmm/base/bytes.h"

/* So many bytes at the end of what is there may happen to be the start of a secret. */
#define CHANCE_BYTES 8U

/* How many of the last bytes are the start of @secret, but not all of it. */
static size_t start_at_end(const struct masker *masker, const struct secret *secret)
{
	size_t longest = (size_t)bytes_minimum(masker->length, secret->length - 1);
	const char *end = masker->bytes + masker->length;

	for (const char *at = end - longest; at < end; at++) {
		at = memchr(at, secret->value[0], (size_t)(end - at));
		if (!at)
			return 0;
		if (memcmp(at, secret->value, (size_t)(end - at)) == 0)
			return (size_t)(end - at);
	}
	return 0;
}

/* The secret of which most is at the end; NULL: of none there is any. */
static const struct secret *longest_start(const struct masker *masker, size_t *length)
{
	const struct secret *found = NULL;

	*length = 0;
	for (unsigned int i = 0; i < masker->secrets->count; i++) {
		const struct secret *secret = &masker->secrets->secrets[i];
		const size_t start = start_at_end(masker, secret);

		if (start > *length) {
			*length = start;
			found = secret;
		}
	}
	return found;
}

static void replace_all(struct masker *masker)
{
	for (unsigned int i = 0; i < masker->secrets->count; i++) {
		const struct secret *secret = &masker->secrets->secrets[i];
		char *at = masker->bytes, *end = masker->bytes + masker->length;

		while ((at = memmem(at, (size_t)(end - at), secret->value, secret->length))) {
			memcpy(at, secret->placeholder, secret->length);
			at += secret->length;
			masker->masked[i]++;
		}
	}
}

size_t masker_put(struct masker *masker, const void *bytes, size_t length, char *out)
{
	size_t held, ready;

	memcpy(masker->bytes + masker->length, bytes, length);
	masker->length += length;
	replace_all(masker);
	longest_start(masker, &held);
	/* What has left is not given again; what was held may turn out to be nothing. */
	ready = masker->length - held;
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
	size_t start, length = masker->length - masker->passed;
	const struct secret *secret = longest_start(masker, &start);

	if (!length)
		return 0;
	/* All that is held is the start of this one. */
	memcpy(out,
	       (secret && start > CHANCE_BYTES ? secret->placeholder : masker->bytes) +
		       masker->passed,
	       length);
	masker->passed = masker->length;
	return length;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest says to a server that a secret is for. It leaves as long as it came and the same
 * however it is cut; a secret is only where its placeholder was, in the fields of a head; what is
 * said twice about where a request ends does not leave. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/fuzz/secret_fixture.h"
#include "vmm/base/bytes.h"
#include "vmm/secret/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What leaves, in pieces of @piece bytes. Whether it was refused. */
static bool pass(const uint8_t *data, size_t size, size_t piece, char *out, size_t room,
		 size_t *length)
{
	struct request_stream *request = calloc(1, sizeof(*request));
	ssize_t taken = 0;

	if (!request)
		abort();
	request->target = (struct http_target){"a.test", 443, the_set()};
	*length = 0;
	for (size_t done = 0; done < size && taken >= 0 && !request_is_full(request);) {
		size_t count = bytes_minimum(piece, size - done);

		request_add(request, data + done, count);
		done += count;
		while ((taken = request_take(request, out + *length, room - *length)) > 0)
			*length += (size_t)taken;
	}
	if (taken < 0 && !request->reason[0])
		abort();
	free(request);
	return taken < 0;
}

static bool has_word(const uint8_t *data, size_t length, const char *word)
{
	for (size_t i = 0; i + strlen(word) <= length; i++) {
		if (strncasecmp((const char *)data + i, word, strlen(word)) == 0)
			return true;
	}
	return false;
}

/* A secret is where a placeholder was, or where the guest had it itself. Base64 is left out, and so
 * are extensions of WebSockets, in whose place is what nobody knows. */
static void check(const uint8_t *data, const char *out, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (out[i] == (char)data[i] || out[i] == ' ')
			continue;
		/* In one that was put in, or in what is encoded. */
		if (has_word(data, length, "basic") || has_word(data, length, "extensions"))
			return;
		for (size_t j = i >= strlen(VALUE) ? i - strlen(VALUE) + 1 : 0;; j++) {
			if (j > i)
				abort();
			if (j + strlen(VALUE) <= length &&
			    memcmp(out + j, VALUE, strlen(VALUE)) == 0 &&
			    memcmp(data + j, PLACE, strlen(PLACE)) == 0)
				break;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t room = size + LIMIT_SECRET_HEAD_BYTES + 1, length, other_length;
	char *out, *other;
	bool refused, other_refused;

	if (size > 100000)
		return 0;
	out = malloc(room);
	other = malloc(room);
	if (!out || !other)
		abort();
	refused = pass(data, size, REQUEST_PIECE_BYTES, out, room, &length);
	other_refused = pass(data, size, 1 + size % 13, other, room, &other_length);
	if (refused != other_refused || length > size)
		abort();
	/* Of a body that is refused more may have left when it came in small pieces. */
	if (memcmp(out, other, bytes_minimum(length, other_length)) != 0 ||
	    (!refused && length != other_length))
		abort();
	check(data, out, length);
	free(out);
	free(other);
	return 0;
}

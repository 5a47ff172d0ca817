/* SPDX-License-Identifier: Apache-2.0 */
/* Session messages of the other side. The first byte chooses the decoder, the rest is its input.
 * What is accepted has one encoding only, so that it must encode to the same bytes again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/wire/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const uint8_t *data, size_t size, uint8_t *bytes, size_t length)
{
	const size_t header = sizeof(struct session_header);

	if (length != header + size || memcmp(bytes + header, data, size))
		abort();
	free(bytes);
}

static void fuzz_start(const uint8_t *data, size_t size)
{
	struct session_start *start;
	uint8_t *bytes;
	size_t length;

	if (session_decode_start(data, size, &start))
		return;
	if (session_encode_start(start, &bytes, &length))
		abort();
	check_same(data, size, bytes, length);
	session_start_free(start);
}

static void fuzz_failure(const uint8_t *data, size_t size)
{
	char text[SESSION_FAILURE_TEXT_BYTES + 1];
	struct session_failure failure;
	uint8_t *bytes;
	size_t length;

	if (session_decode_failure(data, size, &failure, text))
		return;
	if (session_encode_failure(&failure, &bytes, &length))
		abort();
	check_same(data, size, bytes, length);
}

static void fuzz_value(const uint8_t *data, size_t size)
{
	uint8_t *bytes;
	size_t length;
	uint32_t value;

	if (session_decode_value(data, size, &value))
		return;
	if (session_encode_value(SESSION_WINDOW, value, &bytes, &length))
		abort();
	check_same(data, size, bytes, length);
}

/* A stream of messages, from a pipe that holds them all. */
static void fuzz_receive(const uint8_t *data, size_t size)
{
	struct session_message message;
	int ends[2];

	if (size > 4096 || pipe(ends) < 0)
		return;
	if (fd_write_full(ends[1], data, size))
		abort();
	fd_close(&ends[1]);
	while (session_receive(ends[0], &message) == 1)
		free(message.payload);
	fd_close(&ends[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const targets[])(const uint8_t *, size_t) = {fuzz_start, fuzz_failure,
								   fuzz_value, fuzz_receive};

	if (size && data[0] < sizeof(targets) / sizeof(targets[0]))
		targets[data[0]](data + 1, size - 1);
	return 0;
}

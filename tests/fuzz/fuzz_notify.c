/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of notification records. What is accepted has one encoding only, so that it must encode
 * to the same bytes again; and no prefix of it may be refused. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/wire/notify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const uint8_t *data, size_t size, const struct notify_record *record)
{
	uint8_t bytes[NOTIFY_RECORD_BYTES];
	struct notify_record part;
	size_t length;

	if (notify_encode(record, bytes, &length) || length != size || memcmp(bytes, data, size))
		abort();
	for (size_t prefix = 0; prefix < size; prefix++) {
		if (notify_decode(data, prefix, &part))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct notify_record record;
	size_t done = 0;
	int result;

	while ((result = notify_decode(data + done, size - done, &record)) > 0) {
		check_record(data + done, (size_t)result, &record);
		done += (size_t)result;
	}
	if (size >= NOTIFY_READY_BYTES && !notify_decode_ready(data)) {
		uint8_t ready[NOTIFY_READY_BYTES];

		notify_encode_ready(ready);
		if (memcmp(ready, data, sizeof(ready)))
			abort();
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes of a connection. A verdict must not change when more bytes come, a name must be
 * one in its one form, and a message cut into other records must say the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/limits.h"
#include "vmm/relay/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum hello read_exact(const uint8_t *data, size_t size, char name[NAME_BYTES])
{
	uint8_t *exact = malloc(size ? size : 1);
	enum hello result;

	if (!exact)
		abort();
	if (size)
		memcpy(exact, data, size);
	memset(name, 'x', NAME_BYTES);
	result = hello_read(exact, size, name);
	free(exact);
	return result;
}

/* The handshake bytes of the first record, in records of @piece bytes each. */
static void check_in_pieces(const uint8_t *data, size_t size, size_t piece, enum hello expected,
			    const char *name)
{
	size_t length = (size_t)(data[3] << 8 | data[4]), made = 0;
	uint8_t *cut = malloc(6 * length + 1);
	char other[NAME_BYTES];

	if (!cut || 5 + length > size)
		abort();
	for (size_t at = 0; at < length; at += piece) {
		size_t now = length - at < piece ? length - at : piece;

		memcpy(cut + made, data, 3);
		cut[made + 3] = (uint8_t)(now >> 8);
		cut[made + 4] = (uint8_t)now;
		memcpy(cut + made + 5, data + 5 + at, now);
		made += 5 + now;
	}
	if (read_exact(cut, made, other) != expected || strcmp(other, name) != 0)
		abort();
	free(cut);
}

static int is_whole(enum hello result)
{
	return result == HELLO_NAMED || result == HELLO_UNNAMED || result == HELLO_ENCRYPTED;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[NAME_BYTES], again[NAME_BYTES], form[NAME_BYTES];
	enum hello result = read_exact(data, size, name), before;

	if (strnlen(name, sizeof(name)) == sizeof(name))
		abort();
	if (*name && (name_read(name, strlen(name), form) < 0 || strcmp(name, form) != 0))
		abort();
	for (size_t part = 0; part < size && size < 600; part++) {
		before = read_exact(data, part, again);
		if (before != HELLO_MORE && (before != result || strcmp(again, name) != 0))
			abort();
	}
	/* Only a message that was in one record: its length is the record's. */
	if (is_whole(result) && size >= 9 &&
	    4 + (size_t)(data[6] << 16 | data[7] << 8 | data[8]) ==
		    (size_t)(data[3] << 8 | data[4])) {
		check_in_pieces(data, size, 1, result, name);
		check_in_pieces(data, size, 7, result, name);
	}
	return 0;
}

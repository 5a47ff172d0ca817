/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/erofs_directory.h"

#include <endian.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/root/erofs_format.h"

int erofs_name_compare(const void *a, const void *b)
{
	const struct erofs_name *left = a, *right = b;
	int order = memcmp(left->text, right->text, bytes_minimum(left->length, right->length));

	return order ? order : (int)left->length - (int)right->length;
}

/* How many of the names fit into one block, at least one; @used: the bytes that they take. */
static size_t count_in_block(const struct erofs_name *names, size_t count, size_t *used)
{
	size_t fitting = 0;

	*used = 0;
	while (fitting < count) {
		size_t needed = sizeof(struct erofs_entry) + names[fitting].length;

		if (*used + needed > EROFS_BLOCK_BYTES)
			break;
		*used += needed;
		fitting++;
	}
	return fitting;
}

uint64_t erofs_directory_bytes(const struct erofs_name *names, size_t count)
{
	uint64_t bytes = 0;

	while (count) {
		size_t used, fitting = count_in_block(names, count, &used);

		names += fitting;
		count -= fitting;
		bytes += count ? EROFS_BLOCK_BYTES : used;
	}
	return bytes;
}

static void write_block(const struct erofs_name *names, size_t count, uint8_t *block)
{
	size_t place = count * sizeof(struct erofs_entry);

	for (size_t i = 0; i < count; i++) {
		const struct erofs_entry entry = {
			.nid = htole64(names[i].nid),
			.name_offset = htole16((uint16_t)place),
			.type = names[i].type,
		};

		memcpy(block + i * sizeof(entry), &entry, sizeof(entry));
		memcpy(block + place, names[i].text, names[i].length);
		place += names[i].length;
	}
}

void erofs_directory_write(const struct erofs_name *names, size_t count, uint8_t *blocks)
{
	while (count) {
		size_t used, fitting = count_in_block(names, count, &used);

		write_block(names, fitting, blocks);
		names += fitting;
		count -= fitting;
		if (!count)
			break;
		/* A reader finds the end of the last name by its NUL, or the end of the block. */
		memset(blocks + used, 0, EROFS_BLOCK_BYTES - used);
		blocks += EROFS_BLOCK_BYTES;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/sign/reader.h"

#include <string.h>

#include "vmm/base/bytes.h"

static struct bytes take(struct reader *reader, size_t length)
{
	struct bytes taken = {reader->rest.data, length};

	if (reader->failed || length > reader->rest.length) {
		reader->failed = true;
		return (struct bytes){reader->rest.data, 0};
	}
	reader->rest.data += length;
	reader->rest.length -= length;
	return taken;
}

uint8_t reader_byte(struct reader *reader)
{
	struct bytes taken = take(reader, 1);

	return taken.length ? taken.data[0] : 0;
}

uint32_t reader_uint32(struct reader *reader)
{
	struct bytes taken = take(reader, 4);

	if (!taken.length)
		return 0;
	return (uint32_t)taken.data[0] << 24 | (uint32_t)taken.data[1] << 16 |
	       (uint32_t)taken.data[2] << 8 | taken.data[3];
}

struct bytes reader_string(struct reader *reader)
{
	return take(reader, reader_uint32(reader));
}

bool reader_is_done(const struct reader *reader)
{
	return !reader->failed && !reader->rest.length;
}

bool bytes_equal(struct bytes one, struct bytes other)
{
	return one.length == other.length &&
	       (!one.length || memcmp(one.data, other.data, one.length) == 0);
}

bool bytes_equal_text(struct bytes bytes, const char *text)
{
	return bytes_equal(bytes, (struct bytes){(const uint8_t *)text, strlen(text)});
}

void bytes_copy_text(struct bytes bytes, char *to, size_t size)
{
	size_t length = bytes_minimum(bytes.length, size - 1);

	if (length)
		memcpy(to, bytes.data, length);
	to[length] = '\0';
	for (char *c = to; c < to + length; c++)
		*c = *c ? *c : '?';
}

uint8_t *put_uint32(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 24);
	to[1] = (uint8_t)(value >> 16);
	to[2] = (uint8_t)(value >> 8);
	to[3] = (uint8_t)value;
	return to + 4;
}

uint8_t *put_string(uint8_t *to, struct bytes string)
{
	to = put_uint32(to, (uint32_t)string.length);
	if (string.length)
		memcpy(to, string.data, string.length);
	return to + string.length;
}

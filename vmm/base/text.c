/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

size_t text_character_length(const char *text, size_t available)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const uint8_t *byte = (const uint8_t *)text;
	size_t length;
	uint32_t value;

	if (!available || (byte[0] >= 0x80 && byte[0] < 0xc0) || byte[0] >= 0xf8)
		return 0;
	if (byte[0] < 0x80)
		return 1;
	length = byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;
	if (length > available)
		return 0;
	value = byte[0] & (0x7fU >> length);
	for (size_t i = 1; i < length; i++) {
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (byte[i] & 0x3f);
	}
	if (value < smallest[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 0;
	return length;
}

bool text_is_visible(const char *text, size_t length)
{
	const uint8_t *byte = (const uint8_t *)text;

	switch (length) {
	case 1:
		return byte[0] >= 0x20 && byte[0] != 0x7f;
	case 2:
		/* U+0080 to U+009F are controls too: C2 9B does what ESC [ does. U+061C is a mark
		 * of direction. */
		return !(byte[0] == 0xc2 && byte[1] < 0xa0) &&
		       !(byte[0] == 0xd8 && byte[1] == 0x9c);
	case 3:
		/* U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069: marks of direction, and ends
		 * of lines that are none. */
		return !(byte[0] == 0xe2 &&
			 ((byte[1] == 0x80 && (byte[2] == 0x8e || byte[2] == 0x8f ||
					       (byte[2] >= 0xa8 && byte[2] <= 0xae))) ||
			  (byte[1] == 0x81 && byte[2] >= 0xa6 && byte[2] <= 0xa9)));
	default:
		return length != 0;
	}
}

static bool character_is_printable(const char *text, size_t length, size_t available)
{
	return text_is_visible(text, length) || text[0] == '\t' || text[0] == '\n' ||
	       (text[0] == '\r' && available > 1 && text[1] == '\n');
}

void text_make_printable(char *text, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t count = text_character_length(text + i, length - i);

		if (count == 0 || !character_is_printable(text + i, count, length - i)) {
			count = count ? count : 1;
			memset(text + i, '?', count);
		}
		i += count;
	}
}

void text_print_word(FILE *stream, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._/=:@,+%";

	if (*word && !word[strspn(word, plain)]) {
		fputs(word, stream);
		return;
	}
	fputc('\'', stream);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", stream);
		else
			fputc(*word, stream);
	}
	fputc('\'', stream);
}

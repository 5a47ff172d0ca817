/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/base64.h"

#include <stdint.h>
#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

long base64_decode(const char *text, size_t length, char *plain)
{
	size_t padding = 0, done = 0;

	if (length == 0 || length % 4)
		return -1;
	while (padding < 2 && text[length - 1 - padding] == '=')
		padding++;
	for (size_t i = 0; i < length; i += 4) {
		const size_t digits = i + 4 == length ? 4 - padding : 4;
		uint32_t group = 0;

		for (size_t j = 0; j < 4; j++) {
			const char *letter =
				j < digits && text[i + j] ? strchr(letters, text[i + j]) : letters;

			if (!letter)
				return -1;
			group = group << 6 | (uint32_t)(letter - letters);
		}
		/* Bits that are no byte's must be 0: another form of the same. */
		if (group & ((1U << (8 * (4 - digits))) - 1))
			return -1;
		for (size_t j = 0; j + 1 < digits; j++)
			plain[done++] = (char)(group >> (16 - 8 * j));
	}
	return (long)done;
}

void base64_encode(const char *plain, size_t length, char *text)
{
	for (size_t i = 0; i < length; i += 3) {
		const size_t bytes = length - i < 3 ? length - i : 3;
		uint32_t group = 0;

		for (size_t j = 0; j < 3; j++)
			group = group << 8 | (j < bytes ? (uint8_t)plain[i + j] : 0);
		for (size_t j = 0; j < 4; j++)
			*text++ = j <= bytes ? letters[group >> (18 - 6 * j) & 63] : '=';
	}
}

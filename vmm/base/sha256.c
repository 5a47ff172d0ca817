/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/base/sha256.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

void sha256_begin(struct sha256 *sum)
{
	sha256_init(&sum->state);
}

void sha256_add(struct sha256 *sum, const void *bytes, size_t length)
{
	if (length)
		sha256_update(&sum->state, length, bytes);
}

void sha256_end(struct sha256 *sum, uint8_t digest[SHA256_BYTES])
{
	sha256_digest(&sum->state, SHA256_BYTES, digest);
}

void sha256_of(const void *bytes, size_t length, uint8_t digest[SHA256_BYTES])
{
	struct sha256 sum;

	sha256_begin(&sum);
	sha256_add(&sum, bytes, length);
	sha256_end(&sum, digest);
}

void sha256_to_text(const uint8_t digest[SHA256_BYTES], char text[SHA256_TEXT])
{
	size_t place = strlen(SHA256_PREFIX);

	memcpy(text, SHA256_PREFIX, place);
	for (size_t i = 0; i < SHA256_BYTES; i++) {
		text[place++] = digits[digest[i] >> 4];
		text[place++] = digits[digest[i] & 15];
	}
	text[place] = '\0';
}

bool sha256_from_hex(const char *text, uint8_t digest[SHA256_BYTES])
{
	if (strlen(text) != SHA256_HEX || strspn(text, digits) != SHA256_HEX)
		return false;
	for (size_t i = 0; i < SHA256_BYTES; i++) {
		size_t high = (size_t)(strchr(digits, text[2 * i]) - digits);
		size_t low = (size_t)(strchr(digits, text[2 * i + 1]) - digits);

		digest[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

bool sha256_from_text(const char *text, uint8_t digest[SHA256_BYTES])
{
	size_t length = strlen(SHA256_PREFIX);

	return strncmp(text, SHA256_PREFIX, length) == 0 && sha256_from_hex(text + length, digest);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/base/digest.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

void digest_to_text(const uint8_t digest[SHA256_BYTES], char text[DIGEST_TEXT_BYTES])
{
	memcpy(text, DIGEST_PREFIX, sizeof(DIGEST_PREFIX));
	sha256_format(digest, text + sizeof(DIGEST_PREFIX) - 1);
}

bool digest_from_hex(const char *text, uint8_t digest[SHA256_BYTES])
{
	const size_t length = SHA256_HEX_SIZE - 1;

	if (strlen(text) != length || strspn(text, digits) != length)
		return false;
	for (size_t i = 0; i < SHA256_BYTES; i++) {
		size_t high = (size_t)(strchr(digits, text[2 * i]) - digits);
		size_t low = (size_t)(strchr(digits, text[2 * i + 1]) - digits);

		digest[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

bool digest_from_text(const char *text, uint8_t digest[SHA256_BYTES])
{
	size_t length = strlen(DIGEST_PREFIX);

	return strncmp(text, DIGEST_PREFIX, length) == 0 && digest_from_hex(text + length, digest);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), by Nettle, and its digests as text. */
#ifndef MVAGENT_BASE_SHA256_H
#define MVAGENT_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nettle/sha2.h>

#define SHA256_BYTES  32U
#define SHA256_HEX    64U             /* digits of a digest */
#define SHA256_PREFIX "sha256:"       /* of a digest as it is written */
#define SHA256_TEXT   (7U + 64U + 1U) /* bytes of that text, with its NUL */

struct sha256 {
	struct sha256_ctx state;
};

void sha256_begin(struct sha256 *sum);
void sha256_add(struct sha256 *sum, const void *bytes, size_t length);

/* Gives the digest; the sum must begin anew before it is used again. */
void sha256_end(struct sha256 *sum, uint8_t digest[SHA256_BYTES]);

/* All three in one. */
void sha256_of(const void *bytes, size_t length, uint8_t digest[SHA256_BYTES]);

/* Writes "sha256:" and 64 digits. */
void sha256_to_text(const uint8_t digest[SHA256_BYTES], char text[SHA256_TEXT]);

/* Reads 64 lower-case digits that are all of @text. Whether they are. */
bool sha256_from_hex(const char *text, uint8_t digest[SHA256_BYTES]);

/* The same with "sha256:" before them. */
bool sha256_from_text(const char *text, uint8_t digest[SHA256_BYTES]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Digests as people read and write them: "sha256:" and 64 digits. */
#ifndef MVAGENT_BASE_DIGEST_H
#define MVAGENT_BASE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/sha256.h"

#define DIGEST_PREFIX     "sha256:"
#define DIGEST_TEXT_BYTES (sizeof(DIGEST_PREFIX) + 2UL * SHA256_BYTES) /* with the NUL */

void digest_to_text(const uint8_t digest[SHA256_BYTES], char text[DIGEST_TEXT_BYTES]);

/* Reads 64 lower-case digits that are all of @text. Whether they are. */
bool digest_from_hex(const char *text, uint8_t digest[SHA256_BYTES]);

/* The same with "sha256:" before them. */
bool digest_from_text(const char *text, uint8_t digest[SHA256_BYTES]);

#endif

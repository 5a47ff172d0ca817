/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), of memory and of files. */
#ifndef MVAGENT_BASE_SHA256_H
#define MVAGENT_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES    32
#define SHA256_HEX_SIZE 65 /* two digits a byte, and the end of the string */

/* One under way. */
struct sha256 {
	_Alignas(8) uint8_t state[128];
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t length);
void sha256_end(struct sha256 *hash, uint8_t digest[SHA256_BYTES]);

/* All at once. */
void sha256_of(const void *bytes, size_t length, uint8_t digest[SHA256_BYTES]);

/* Lower case. */
void sha256_format(const uint8_t digest[SHA256_BYTES], char text[SHA256_HEX_SIZE]);

/* Of a file from its beginning to its end, without moving its position. 0, -EFBIG when it has more
 * than @limit bytes, or -errno. */
int sha256_of_file(int fd, uint64_t limit, uint8_t digest[SHA256_BYTES]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/base/sha256.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

/* The functions of one algorithm, which OpenSSL 3 would rather have reached through its providers:
 * a process that only hashes links these few and no configuration, no lookup by name. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#define READ_BYTES 65536U

static_assert(sizeof(SHA256_CTX) <= sizeof(((struct sha256 *)0)->state), "room for the state");

void sha256_begin(struct sha256 *hash)
{
	SHA256_Init((SHA256_CTX *)hash->state);
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length)
{
	SHA256_Update((SHA256_CTX *)hash->state, bytes, length);
}

void sha256_end(struct sha256 *hash, uint8_t digest[SHA256_BYTES])
{
	SHA256_Final(digest, (SHA256_CTX *)hash->state);
}

void sha256_of(const void *bytes, size_t length, uint8_t digest[SHA256_BYTES])
{
	struct sha256 hash;

	sha256_begin(&hash);
	sha256_add(&hash, bytes, length);
	sha256_end(&hash, digest);
}

void sha256_format(const uint8_t digest[SHA256_BYTES], char text[SHA256_HEX_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned int i = 0; i < SHA256_BYTES; i++) {
		*text++ = digits[digest[i] >> 4];
		*text++ = digits[digest[i] & 15];
	}
	*text = '\0';
}

int sha256_of_file(int fd, uint64_t limit, uint8_t digest[SHA256_BYTES])
{
	uint8_t buffer[READ_BYTES];
	struct sha256 hash;
	uint64_t at = 0;

	sha256_begin(&hash);
	for (;;) {
		ssize_t length = pread(fd, buffer, sizeof(buffer), (off_t)at);

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0)
			return -errno;
		if (length == 0)
			break;
		at += (uint64_t)length;
		if (at > limit)
			return -EFBIG;
		sha256_add(&hash, buffer, (size_t)length);
	}
	sha256_end(&hash, digest);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Ed25519 key that records are signed with (RFC 8032). Its files are what OpenSSL and others
 * read: the private one PKCS #8 (RFC 8410) in PEM, mode 0600; beside it, with ".pub" at the end of
 * its name, the public one.
 */
#ifndef MVAGENT_RECORD_KEY_H
#define MVAGENT_RECORD_KEY_H

#include <stddef.h>
#include <stdint.h>

#define KEY_BYTES       32
#define SIGNATURE_BYTES 64

struct record_key {
	uint8_t seed[KEY_BYTES]; /* secret */
	uint8_t public_key[KEY_BYTES];
};

/* Reads the private key @name of a directory, which must be a file of this user's that nobody else
 * can read; makes it, and its public half, when it is not there. @path: for messages. 0 or -errno
 * with the sentence printed. */
int record_key_open(struct record_key *key, int directory_fd, const char *name, const char *path);

/* Forgets the secret. */
void record_key_clear(struct record_key *key);

/* Reads a public key. 0 or -errno with the sentence printed; -ENOENT, without one, when it is not
 * there. */
int record_key_read_public(const char *path, uint8_t public_key[KEY_BYTES]);

/* 0 or -EIO. */
int record_key_sign(const struct record_key *key, const void *message, size_t length,
		    uint8_t signature[SIGNATURE_BYTES]);

/* 0, or -EKEYREJECTED: somebody else's, or of something else. */
int record_key_verify(const uint8_t public_key[KEY_BYTES], const void *message, size_t length,
		      const uint8_t signature[SIGNATURE_BYTES]);

#endif

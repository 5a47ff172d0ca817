/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/record/key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"

#define PEM_BYTES 512U /* more than a key file has */

/* What DER puts before the 32 bytes of a key (RFC 8410, section 4 and 7): nothing in it varies. */
struct encoding {
	const char *label;
	size_t prefix_length;
	uint8_t prefix[16];
};

static const struct encoding private_encoding = {
	"PRIVATE KEY",
	16,
	{0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20},
};
static const struct encoding public_encoding = {
	"PUBLIC KEY",
	12,
	{0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0},
};

static void encode(const struct encoding *encoding, const uint8_t bytes[KEY_BYTES],
		   char pem[PEM_BYTES])
{
	uint8_t der[sizeof(encoding->prefix) + KEY_BYTES];
	char base64[128];

	memcpy(der, encoding->prefix, encoding->prefix_length);
	memcpy(der + encoding->prefix_length, bytes, KEY_BYTES);
	EVP_EncodeBlock((uint8_t *)base64, der, (int)(encoding->prefix_length + KEY_BYTES));
	snprintf(pem, PEM_BYTES, "-----BEGIN %s-----\n%s\n-----END %s-----\n", encoding->label,
		 base64, encoding->label);
	OPENSSL_cleanse(der, sizeof(der));
	OPENSSL_cleanse(base64, sizeof(base64));
}

/* 0 or -EINVAL. Exactly what encode() writes, which is what OpenSSL writes as well. */
static int decode(const struct encoding *encoding, const char *pem, uint8_t bytes[KEY_BYTES])
{
	uint8_t der[128];
	char begin[64], again[PEM_BYTES], base64[129] = "";
	int length, error = -EINVAL;

	snprintf(begin, sizeof(begin), "-----BEGIN %s-----\n%%128[A-Za-z0-9+/=]", encoding->label);
	if (sscanf(pem, begin, base64) != 1 || strlen(base64) > 4 * (sizeof(der) / 3))
		return -EINVAL;
	length = EVP_DecodeBlock(der, (const uint8_t *)base64, (int)strlen(base64));
	if (length >= (int)(encoding->prefix_length + KEY_BYTES)) {
		memcpy(bytes, der + encoding->prefix_length, KEY_BYTES);
		encode(encoding, bytes, again);
		error = strcmp(again, pem) == 0 ? 0 : -EINVAL;
		OPENSSL_cleanse(again, sizeof(again));
	}
	OPENSSL_cleanse(der, sizeof(der));
	OPENSSL_cleanse(base64, sizeof(base64));
	return error;
}

static int read_text(int fd, char text[PEM_BYTES])
{
	ssize_t length = pread(fd, text, PEM_BYTES - 1, 0);

	text[length < 0 ? 0 : length] = '\0';
	return length < 0 ? -errno : 0;
}

static int find_public_key(struct record_key *key)
{
	EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key->seed, KEY_BYTES);
	size_t length = KEY_BYTES;
	int good = pkey && EVP_PKEY_get_raw_public_key(pkey, key->public_key, &length) == 1;

	EVP_PKEY_free(pkey);
	return good && length == KEY_BYTES ? 0 : -EIO;
}

static int read_private(struct record_key *key, int fd, const char *path)
{
	struct stat status;
	char pem[PEM_BYTES];
	int error;

	if (fstat(fd, &status))
		return log_errno(-errno, "cannot look at the key %s", path);
	if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
	    status.st_mode & (S_IRWXG | S_IRWXO)) {
		log_error("the key %s is not a file that you alone can read; 'chmod 600' it, or "
			  "give another with --record-key",
			  path);
		return -EPERM;
	}
	error = read_text(fd, pem);
	error = error ? error : decode(&private_encoding, pem, key->seed);
	OPENSSL_cleanse(pem, sizeof(pem));
	error = error ? error : find_public_key(key);
	if (error)
		log_error("%s is not a private key of Ed25519 in PEM (PKCS #8)", path);
	return error;
}

/* A new file that nobody can find before it is whole. 0 or -errno; -EEXIST: it is there. */
static int write_new(int directory_fd, const char *name, const char *text, mode_t mode)
{
	char temporary[NAME_MAX + 1];
	int error, FD_CLEANUP fd = -1;
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(temporary, sizeof(temporary), ".mvagent-%016llx", (unsigned long long)random);
	fd = openat(directory_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	error = fd_write_full(fd, text, strlen(text));
	if (!error && fsync(fd))
		error = -errno;
	if (!error && linkat(directory_fd, temporary, directory_fd, name, 0))
		error = -errno;
	unlinkat(directory_fd, temporary, 0);
	return error;
}

/* -EEXIST when another process has just made one. */
static int make_private(struct record_key *key, int directory_fd, const char *name,
			const char *public_name)
{
	char pem[PEM_BYTES];
	int error;

	if (getrandom(key->seed, KEY_BYTES, 0) != KEY_BYTES)
		return -EIO;
	error = find_public_key(key);
	if (error)
		return error;
	/* One that is left of a key that was deleted is no use any more. */
	if (unlinkat(directory_fd, public_name, 0) && errno != ENOENT)
		return -errno;
	encode(&private_encoding, key->seed, pem);
	error = write_new(directory_fd, name, pem, 0600);
	OPENSSL_cleanse(pem, sizeof(pem));
	return error;
}

/* One that is there stays. */
static int make_public(const struct record_key *key, int directory_fd, const char *public_name)
{
	char pem[PEM_BYTES];
	int error;

	if (faccessat(directory_fd, public_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	encode(&public_encoding, key->public_key, pem);
	error = write_new(directory_fd, public_name, pem, 0644);
	return error == -EEXIST ? 0 : error;
}

int record_key_open(struct record_key *key, int directory_fd, const char *name, const char *path)
{
	char public_name[NAME_MAX + 1];
	int error = -EEXIST;

	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	if ((size_t)snprintf(public_name, sizeof(public_name), "%s.pub", name) >=
	    sizeof(public_name))
		return log_errno(-ENAMETOOLONG, "cannot open the key %s", path);
	for (int attempt = 0; error == -EEXIST && attempt < 2; attempt++) {
		int FD_CLEANUP fd =
			openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		if (fd < 0 && errno != ENOENT)
			return log_errno(-errno, "cannot open the key %s", path);
		if (fd >= 0) {
			error = read_private(key, fd, path);
			/* Where nothing can be written the key is good without its public half. */
			if (!error)
				make_public(key, directory_fd, public_name);
			return error;
		}
		error = make_private(key, directory_fd, name, public_name);
		error = error ? error : make_public(key, directory_fd, public_name);
	}
	return error ? log_errno(error, "cannot make the key %s", path) : 0;
}

void record_key_clear(struct record_key *key)
{
	OPENSSL_cleanse(key, sizeof(*key));
}

int record_key_read_public(const char *path, uint8_t public_key[KEY_BYTES])
{
	int error, FD_CLEANUP fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char pem[PEM_BYTES];

	if (fd < 0)
		return errno == ENOENT ? -ENOENT
				       : log_errno(-errno, "cannot open the key %s", path);
	error = read_text(fd, pem);
	error = error ? error : decode(&public_encoding, pem, public_key);
	if (error)
		log_error("%s is not a public key of Ed25519 in PEM", path);
	return error;
}

int record_key_sign(const struct record_key *key, const void *message, size_t length,
		    uint8_t signature[SIGNATURE_BYTES])
{
	EVP_PKEY *pkey;
	EVP_MD_CTX *context;
	size_t size = SIGNATURE_BYTES;
	bool good;

	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key->seed, KEY_BYTES);
	context = EVP_MD_CTX_new();
	good = pkey && context && EVP_DigestSignInit(context, NULL, NULL, NULL, pkey) == 1 &&
	       EVP_DigestSign(context, signature, &size, message, length) == 1 &&
	       size == SIGNATURE_BYTES;
	EVP_MD_CTX_free(context);
	EVP_PKEY_free(pkey);
	return good ? 0 : -EIO;
}

int record_key_verify(const uint8_t public_key[KEY_BYTES], const void *message, size_t length,
		      const uint8_t signature[SIGNATURE_BYTES])
{
	EVP_PKEY *pkey;
	EVP_MD_CTX *context;
	bool good;

	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, KEY_BYTES);
	context = EVP_MD_CTX_new();
	good = pkey && context && EVP_DigestVerifyInit(context, NULL, NULL, NULL, pkey) == 1 &&
	       EVP_DigestVerify(context, signature, SIGNATURE_BYTES, message, length) == 1;
	EVP_MD_CTX_free(context);
	EVP_PKEY_free(pkey);
	return good ? 0 : -EKEYREJECTED;
}

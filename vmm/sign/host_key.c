/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/sign/host_key.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"

#define ED25519_KEY_BYTES       32U
#define ED25519_SIGNATURE_BYTES 64U
#define RSA_BITS_MIN            2048
#define RSA_BITS_MAX            16384
#define INTEGER_BYTES           (RSA_BITS_MAX / 8 + 1)

static const struct curve {
	const char *algorithm, *name, *group, *digest;
} curves[] = {
	{"ecdsa-sha2-nistp256", "nistp256", "P-256", "SHA256"},
	{"ecdsa-sha2-nistp384", "nistp384", "P-384", "SHA384"},
	{"ecdsa-sha2-nistp521", "nistp521", "P-521", "SHA512"},
};

/* A number that is not negative (RFC 4251, 5: mpint). NULL when it is, or too long. */
static BIGNUM *read_number(struct reader *reader)
{
	struct bytes number = reader_string(reader);

	if (reader->failed || !number.length || number.length > INTEGER_BYTES ||
	    number.data[0] & 0x80)
		return NULL;
	return BN_bin2bn(number.data, (int)number.length, NULL);
}

/* @build is freed. NULL when it makes no key. */
static EVP_PKEY *make_key(const char *type, OSSL_PARAM_BLD *build)
{
	EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	OSSL_PARAM *parameters = build ? OSSL_PARAM_BLD_to_param(build) : NULL;
	EVP_PKEY *key = NULL;

	if (context && parameters && EVP_PKEY_fromdata_init(context) == 1 &&
	    EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1)
		key = NULL;
	OSSL_PARAM_free(parameters);
	OSSL_PARAM_BLD_free(build);
	EVP_PKEY_CTX_free(context);
	return key;
}

static EVP_PKEY *read_rsa(struct reader *reader)
{
	BIGNUM *exponent = read_number(reader), *modulus = read_number(reader);
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	EVP_PKEY *key = NULL;
	const int bits = modulus ? BN_num_bits(modulus) : 0;

	if (build && exponent && reader_is_done(reader) && bits >= RSA_BITS_MIN &&
	    bits <= RSA_BITS_MAX && BN_num_bits(exponent) <= 64 &&
	    OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, modulus) &&
	    OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, exponent))
		key = make_key("RSA", build);
	else
		OSSL_PARAM_BLD_free(build);
	BN_free(exponent);
	BN_free(modulus);
	return key;
}

static EVP_PKEY *read_ecdsa(struct reader *reader, const struct curve *curve)
{
	struct bytes name = reader_string(reader), point = reader_string(reader);
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();

	if (build && reader_is_done(reader) && bytes_equal_text(name, curve->name) &&
	    OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, curve->group, 0) &&
	    OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point.data,
					     point.length))
		return make_key("EC", build);
	OSSL_PARAM_BLD_free(build);
	return NULL;
}

static EVP_PKEY *read_ed25519(struct reader *reader)
{
	struct bytes point = reader_string(reader);

	if (!reader_is_done(reader) || point.length != ED25519_KEY_BYTES)
		return NULL;
	return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, point.data, point.length);
}

/* r and s of SSH (RFC 5656, 3.1.2) as OpenSSL has them; freed by OPENSSL_free. 0 when they are
 * none. */
static int convert_ecdsa(struct bytes blob, unsigned char **der)
{
	struct reader reader = {.rest = blob};
	BIGNUM *r = read_number(&reader), *s = read_number(&reader);
	ECDSA_SIG *signature = ECDSA_SIG_new();
	int length = 0;

	if (r && s && signature && reader_is_done(&reader) && ECDSA_SIG_set0(signature, r, s)) {
		r = s = NULL; /* they are the signature's now */
		length = i2d_ECDSA_SIG(signature, der);
	}
	BN_free(r);
	BN_free(s);
	ECDSA_SIG_free(signature);
	return length > 0 ? length : 0;
}

/* @digest: NULL for what hashes by itself. */
static bool verify(EVP_PKEY *key, const char *digest, struct bytes signature, struct bytes data)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool right = key && context &&
		     EVP_DigestVerifyInit_ex(context, NULL, digest, NULL, NULL, key, NULL) == 1 &&
		     EVP_DigestVerify(context, signature.data, signature.length, data.data,
				      data.length) == 1;

	EVP_MD_CTX_free(context);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return right;
}

static bool verify_ecdsa(struct reader *key, const struct curve *curve, struct bytes blob,
			 struct bytes data)
{
	unsigned char *der = NULL;
	const int length = convert_ecdsa(blob, &der);
	bool right = length && verify(read_ecdsa(key, curve), curve->digest,
				      (struct bytes){der, (size_t)length}, data);

	OPENSSL_free(der);
	return right;
}

bool host_key_verify(struct bytes key, struct bytes signature, struct bytes data)
{
	struct reader key_reader = {.rest = key}, reader = {.rest = signature};
	struct bytes type = reader_string(&key_reader);
	struct bytes algorithm = reader_string(&reader), blob = reader_string(&reader);

	if (key_reader.failed || !reader_is_done(&reader))
		return false;
	if (bytes_equal_text(type, "ssh-ed25519"))
		return bytes_equal(algorithm, type) && blob.length == ED25519_SIGNATURE_BYTES &&
		       verify(read_ed25519(&key_reader), NULL, blob, data);
	if (bytes_equal_text(type, "ssh-rsa") && bytes_equal_text(algorithm, "rsa-sha2-256"))
		return verify(read_rsa(&key_reader), "SHA256", blob, data);
	if (bytes_equal_text(type, "ssh-rsa") && bytes_equal_text(algorithm, "rsa-sha2-512"))
		return verify(read_rsa(&key_reader), "SHA512", blob, data);
	for (size_t i = 0; i < ARRAY_SIZE(curves); i++) {
		if (bytes_equal_text(type, curves[i].algorithm))
			return bytes_equal(algorithm, type) &&
			       verify_ecdsa(&key_reader, &curves[i], blob, data);
	}
	return false;
}

void host_key_fingerprint(struct bytes key, char text[FINGERPRINT_BYTES])
{
	uint8_t hash[EVP_MAX_MD_SIZE];
	unsigned int length = 0;
	char *end = stpcpy(text, "SHA256:");

	if (EVP_Digest(key.data, key.length, hash, &length, EVP_sha256(), NULL) != 1)
		return;
	EVP_EncodeBlock((unsigned char *)end, hash, (int)length);
	end[strcspn(end, "=")] = '\0';
}

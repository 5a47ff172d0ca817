/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/authority.h"

#include <errno.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/log.h"
#include "vmm/secret/alpn.h"

/* Clocks differ, and no run is longer than a year (LIMIT_TIMEOUT_HOURS). */
#define DAY_SECONDS   86400L
#define SECONDS_PAST  DAY_SECONDS
#define SECONDS_AHEAD (380L * DAY_SECONDS)

struct authority {
	EVP_PKEY *key;
	X509 *certificate;
	EVP_PKEY *host_key; /* of all certificates for hosts */
};

static bool add_extension(X509 *certificate, X509 *issuer, int which, const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX context;
	bool added;

	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, which, value);
	added = extension && X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
	return added;
}

static bool set_serial(X509 *certificate)
{
	uint8_t bytes[16];
	BIGNUM *number;
	bool set;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] &= 0x7f; /* positive: RFC 5280, 4.1.2.2 */
	number = BN_bin2bn(bytes, sizeof(bytes), NULL);
	set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
	BN_free(number);
	return set;
}

/* What all certificates have in common: not yet signed. */
static X509 *begin_certificate(EVP_PKEY *key, const char *name)
{
	X509 *made = X509_new();
	X509_NAME *subject = made ? X509_get_subject_name(made) : NULL;

	if (made && X509_set_version(made, X509_VERSION_3) && set_serial(made) &&
	    X509_gmtime_adj(X509_getm_notBefore(made), -SECONDS_PAST) &&
	    X509_gmtime_adj(X509_getm_notAfter(made), SECONDS_AHEAD) &&
	    X509_set_pubkey(made, key) &&
	    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const uint8_t *)name, -1, -1,
				       0))
		return made;
	X509_free(made);
	return NULL;
}

static X509 *make_authority_certificate(EVP_PKEY *key)
{
	X509 *made = begin_certificate(key, "mvagent authority of one run");

	if (made && X509_set_issuer_name(made, X509_get_subject_name(made)) &&
	    add_extension(made, made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	    add_extension(made, made, NID_key_usage, "critical,keyCertSign") &&
	    add_extension(made, made, NID_subject_key_identifier, "hash") &&
	    X509_sign(made, key, EVP_sha256()))
		return made;
	X509_free(made);
	return NULL;
}

int authority_create(struct authority **authority)
{
	struct authority *made = calloc(1, sizeof(*made));

	if (made) {
		made->key = EVP_EC_gen("P-256");
		made->host_key = EVP_EC_gen("P-256");
		if (made->key && made->host_key)
			made->certificate = make_authority_certificate(made->key);
		if (made->certificate) {
			*authority = made;
			return 0;
		}
	}
	authority_destroy(made);
	return log_errno(-ENOMEM, "cannot make the authority of this run");
}

void authority_destroy(struct authority *authority)
{
	if (!authority)
		return;
	X509_free(authority->certificate);
	EVP_PKEY_free(authority->host_key);
	EVP_PKEY_free(authority->key);
	free(authority);
}

int authority_write(const struct authority *authority, char text[LIMIT_AUTHORITY_BYTES])
{
	BIO *memory = BIO_new(BIO_s_mem());
	int length = -1;

	if (memory && PEM_write_bio_X509(memory, authority->certificate))
		length = BIO_read(memory, text, LIMIT_AUTHORITY_BYTES - 1);
	text[length > 0 ? length : 0] = '\0';
	BIO_free(memory);
	return length > 0 ? 0 : -EIO;
}

static X509 *make_host_certificate(const struct authority *authority, const char *host)
{
	/* The name of a subject is at most 64 bytes long, and nobody looks at it. */
	X509 *made = begin_certificate(authority->host_key, "mvagent");
	char name[300];

	snprintf(name, sizeof(name), "DNS:%s", host);
	if (made && X509_set_issuer_name(made, X509_get_subject_name(authority->certificate)) &&
	    add_extension(made, authority->certificate, NID_basic_constraints,
			  "critical,CA:FALSE") &&
	    add_extension(made, authority->certificate, NID_key_usage,
			  "critical,digitalSignature") &&
	    add_extension(made, authority->certificate, NID_ext_key_usage, "serverAuth") &&
	    add_extension(made, authority->certificate, NID_subject_key_identifier, "hash") &&
	    add_extension(made, authority->certificate, NID_authority_key_identifier,
			  "keyid:always") &&
	    add_extension(made, authority->certificate, NID_subject_alt_name, name) &&
	    X509_sign(made, authority->key, EVP_sha256()))
		return made;
	X509_free(made);
	return NULL;
}

SSL_CTX *authority_certify(const struct authority *authority, const char *host)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	X509 *certificate = make_host_certificate(authority, host);
	bool made = context && certificate &&
		    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) &&
		    SSL_CTX_use_certificate(context, certificate) &&
		    SSL_CTX_use_PrivateKey(context, authority->host_key);

	X509_free(certificate);
	if (!made) {
		SSL_CTX_free(context);
		return NULL;
	}
	SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
					     SSL_OP_NO_COMPRESSION |
					     SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_num_tickets(context, 0);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	alpn_set_callbacks(context);
	return context;
}

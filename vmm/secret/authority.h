/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for the guest: an authority of this run alone, whose key is in this process's memory
 * and nowhere else, and what it certifies. */
#ifndef MVAGENT_SECRET_AUTHORITY_H
#define MVAGENT_SECRET_AUTHORITY_H

#include <openssl/ssl.h>

#include "vmm/base/limits.h"

struct authority;

/* Makes key and certificate. 0 or -errno with the sentence printed. */
int authority_create(struct authority **authority);
void authority_destroy(struct authority *authority);

/* The certificate as text (PEM), terminated. 0 or -errno. */
int authority_write(const struct authority *authority, char text[LIMIT_AUTHORITY_BYTES]);

/* A context for TLS with the guest in the name of @host: alpn_attach. NULL: no memory. */
SSL_CTX *authority_certify(const struct authority *authority, const char *host);

#endif

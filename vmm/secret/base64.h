/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 with padding (RFC 4648, 4). Pure. */
#ifndef MVAGENT_SECRET_BASE64_H
#define MVAGENT_SECRET_BASE64_H

#include <stddef.h>

/* Decodes what is encoded in its one form; @plain has room for 3/4 of @length. Returns its length,
 * or -1. */
long base64_decode(const char *text, size_t length, char *plain);

/* Writes 4 characters for each 3 bytes begun, no NUL. */
void base64_encode(const char *plain, size_t length, char *text);

#endif

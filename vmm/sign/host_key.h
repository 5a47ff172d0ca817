/* SPDX-License-Identifier: Apache-2.0 */
/* Public keys of SSH servers, and what they have signed. Pure. */
#ifndef MVAGENT_SIGN_HOST_KEY_H
#define MVAGENT_SIGN_HOST_KEY_H

#include "vmm/sign/reader.h"

/* Whether @signature is @key's over @data, both as SSH has them: ssh-ed25519 (RFC 8709),
 * rsa-sha2-256 and -512 (RFC 8332), ecdsa-sha2-nistp256, 384 and 521 (RFC 5656). Another kind, also
 * a certificate, is never right. */
bool host_key_verify(struct bytes key, struct bytes signature, struct bytes data);

/* "SHA256:" and 43 characters, as ssh-keygen -l says it. */
#define FINGERPRINT_BYTES 64
void host_key_fingerprint(struct bytes key, char text[FINGERPRINT_BYTES]);

#endif

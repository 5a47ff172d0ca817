/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates that the guest's programs trust. */
#ifndef MVAGENT_GUEST_TRUST_H
#define MVAGENT_GUEST_TRUST_H

#include "guest/message.h"

/* Makes them trust one authority more, which is text (PEM): adds it to the system's bundles, and
 * writes SESSION_AUTHORITY_FILE with it alone and SESSION_BUNDLE_FILE with all. 0 or -errno with
 * the failure set. */
int trust_add(const char *authority, struct failure *failure);

#endif

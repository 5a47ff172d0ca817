/* SPDX-License-Identifier: Apache-2.0 */
/* The key that must have signed what is verified. */
#ifndef MVAGENT_CLI_VERIFY_KEY_H
#define MVAGENT_CLI_VERIFY_KEY_H

#include "vmm/record/key.h"

/* Reads it: @given, as --key names it, or this user's. @what: that which is verified, for messages.
 * 0 or -errno with the sentence printed. */
int verify_key_find(const char *given, const char *what, uint8_t key[KEY_BYTES]);

#endif

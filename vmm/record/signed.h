/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of JSON that carry the key that signed them, as "key", and the signature, as "signature",
 * in hexadecimal digits. What is signed are words that say what it is, so that the signature of one
 * thing is none of another, and the object's canonical text without the signature.
 */
#ifndef MVAGENT_RECORD_SIGNED_H
#define MVAGENT_RECORD_SIGNED_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "vmm/record/key.h"

#define SIGNED_KEY       "key"
#define SIGNED_SIGNATURE "signature"

/* Signs it, in place of a signature that it has. 0, -ENOMEM or -EIO. */
int signed_add(cJSON *object, const char *words, const struct record_key *key);

/* Whether it is signed by the key that it names, which is in @key then. */
bool signed_holds(const cJSON *object, const char *words, uint8_t key[KEY_BYTES]);

#endif

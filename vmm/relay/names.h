/* SPDX-License-Identifier: Apache-2.0 */
/* Host names as a person or a guest gives them, made into the one form that is compared. */
#ifndef MVAGENT_RELAY_NAMES_H
#define MVAGENT_RELAY_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define NAME_BYTES 254 /* RFC 1035, 2.3.4, as text without the last dot; and a NUL */

/* Makes @name of @length bytes: small letters, no dot at the end, labels of 1 to 63 letters,
 * digits, hyphens and underscores. What ends in a number is an address or meant to pass for one,
 * and no name (inet_aton takes 127.1 and 0x7f.1). 0 or -EINVAL: then it is empty. */
int name_read(const char *bytes, size_t length, char name[NAME_BYTES]);

/* Whether @name lies below the domain @suffix; both in that form. */
bool name_is_below(const char *name, const char *suffix);

#endif

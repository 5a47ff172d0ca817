/* SPDX-License-Identifier: Apache-2.0 */
/* Text as URLs have it (RFC 3986, 2.1): all but what is unreserved as '%' and two digits. Pure. */
#ifndef MVAGENT_SECRET_PERCENT_H
#define MVAGENT_SECRET_PERCENT_H

#include <stdbool.h>
#include <stddef.h>

/* Writes @length bytes of @value, each encoded where that of @encoded must be: the two are the
 * same, or @value is to be as long as the other one. @small: the digits' letters. @text has room
 * for 3 * @length. Returns its length. */
size_t percent_write(const char *value, const char *encoded, size_t length, bool small, char *text);

#endif

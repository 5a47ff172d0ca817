/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON with one way to write each value, so that its bytes can be hashed: RFC 8785 with whole
 * numbers only. Members are in the order of their names' bytes, there are no blanks, and strings
 * escape what JSON demands and nothing else.
 */
#ifndef MVAGENT_RECORD_CANONICAL_H
#define MVAGENT_RECORD_CANONICAL_H

#include <cjson/cJSON.h>
#include <stddef.h>

/* The value as text; allocated. NULL: no memory, or it cannot be written so (a number that is not
 * whole or beyond 2^53, two members of one name). */
char *canonical_print(const cJSON *value);

/* A string for bytes from outside (names of files, arguments): well-formed UTF-8 stays, "%",
 * control characters and other bytes become % and two hex digits. Of more than @limit bytes the
 * rest is left out, and "%..." is at its end, which no escape is. NULL: no memory. */
cJSON *canonical_text(const char *bytes, size_t limit);

/* The reverse, in place, as far as it is one. */
void canonical_unescape(char *text);

/* Adds a count. What is below 0 or beyond 2^53, which no count is, becomes the nearest that can be
 * written: it may come from a process that lies. */
void canonical_add_count(cJSON *object, const char *name, double count);

#endif

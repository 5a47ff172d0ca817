/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in command lines, as far as they can be told: what the record has in their place. */
#ifndef MVAGENT_RECORD_MASK_H
#define MVAGENT_RECORD_MASK_H

#include <stdbool.h>
#include <stddef.h>

#define MASK_TEXT "***"

/* The argument with what looks like a secret replaced: the value of --token=..., of API_KEY=...,
 * the password of a URL, the rest of an Authorization header, and words of the forms that services
 * give to their tokens. @previous: the argument before it, or NULL: after --password the whole
 * argument is one. Allocated; NULL: no memory. */
char *mask_argument(const char *argument, const char *previous);

/* Whether a variable or an option of that name has a secret for its value, as names go. */
bool mask_names_secret(const char *name, size_t length);

/* The argument with every occurrence of @secret replaced, if that is long enough to be one.
 * Allocated. */
char *mask_value(const char *argument, const char *secret);

#endif

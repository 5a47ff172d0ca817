/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of lines of HTTP. */
#ifndef MVAGENT_SECRET_SPAN_H
#define MVAGENT_SECRET_SPAN_H

#include <stdbool.h>
#include <stddef.h>

/* A part of a line. */
struct span {
	char *at;
	size_t length;
};

/* Without the blanks (RFC 9110, 5.6.3: OWS) before and after it. */
struct span span_trim(struct span span);

/* Whether it is @text, in either case. */
bool span_is(struct span span, const char *text);

#endif

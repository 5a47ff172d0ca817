/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/secret/span.h"

#include <string.h>
#include <strings.h>

struct span span_trim(struct span span)
{
	while (span.length && strchr(" \t", span.at[0])) {
		span.at++;
		span.length--;
	}
	while (span.length && strchr(" \t", span.at[span.length - 1]))
		span.length--;
	return span;
}

bool span_is(struct span span, const char *text)
{
	return span.length == strlen(text) && strncasecmp(span.at, text, span.length) == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Text of the guest's on its way to the user: names quoted, and on a terminal nothing that acts on
 * it. */
#ifndef MVAGENT_REVIEW_OUTPUT_H
#define MVAGENT_REVIEW_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct review_output {
	FILE *file;
	bool terminal;  /* show what is no text as \xNN or \uNNNN */
	size_t pending; /* bytes of a character that is not complete */
	char bytes[4];
};

/* Writes @length bytes. On a terminal: control characters other than tab and newline, bytes that
 * are not UTF-8, and characters that change the direction of text are shown by their numbers. */
void output_write(struct review_output *output, const char *text, size_t length);

/* Writes what is pending. */
void output_finish(struct review_output *output);

/* Writes printf text of our own. */
void output_print(struct review_output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* @prefix and @path as git writes them: as they are, or in quotation marks with escapes when the
 * path has control characters, quotation marks, backslashes or bytes above 127. Allocated; NULL:
 * no memory. */
char *output_quote(const char *prefix, const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Text of unknown origin: names of files, words of a guest. */
#ifndef MVAGENT_BASE_TEXT_H
#define MVAGENT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The length of the well-formed UTF-8 character (RFC 3629) that @text begins with, of whose bytes
 * there are @available; 0 if it begins with none. */
size_t text_character_length(const char *text, size_t available);

/* Whether a character of @length bytes, as above, shows as itself, at its place: it is no control
 * (tab and ends of lines are), and does not turn the order of others around. */
bool text_is_visible(const char *text, size_t length);

/* Makes bytes harmless to print on a terminal: what is neither a printable character nor a tab nor
 * the end of a line (LF or CR LF) becomes question marks. In place. */
void text_make_printable(char *text, size_t length);

/* Writes a word as a shell takes it for one: in quotes unless it is plain, so also when it is
 * empty. */
void text_print_word(FILE *stream, const char *word);

#endif

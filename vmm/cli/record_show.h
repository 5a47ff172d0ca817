/* SPDX-License-Identifier: Apache-2.0 */
/* Records for people: a line of text for each line of one. */
#ifndef MVAGENT_CLI_RECORD_SHOW_H
#define MVAGENT_CLI_RECORD_SHOW_H

#include <cjson/cJSON.h>

/* Makes all names and texts of a value what they were before they were escaped for the record, but
 * harmless on a terminal, and each on one line. In place. */
void record_show_make_harmless(cJSON *value);

/* Prints one line, parsed, on standard output. Whoever wrote it: it is made harmless. */
void record_show_line(cJSON *line);

/* The words of a command as one would type them, in quotes where that is needed. Allocated; NULL:
 * no memory. */
char *record_show_words(const cJSON *array);

#endif

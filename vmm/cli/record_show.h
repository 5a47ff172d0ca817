/* SPDX-License-Identifier: Apache-2.0 */
/* Records for people: a line of text for each line of one. */
#ifndef MVAGENT_CLI_RECORD_SHOW_H
#define MVAGENT_CLI_RECORD_SHOW_H

#include <cjson/cJSON.h>

/* Prints one line, parsed, on standard output. What comes from files and guests is made harmless.
 */
void record_show_line(const cJSON *line);

/* The words of an array of strings with blanks between them, harmless to print. Allocated; NULL: no
 * memory. */
char *record_show_words(const cJSON *array);

#endif

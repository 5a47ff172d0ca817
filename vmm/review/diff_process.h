/* SPDX-License-Identifier: Apache-2.0 */
/* The program diff(1), which finds out what differs between two contents. */
#ifndef MVAGENT_REVIEW_DIFF_PROCESS_H
#define MVAGENT_REVIEW_DIFF_PROCESS_H

#include <stddef.h>

/* Takes pieces of the hunks, from the first "@@" on. */
typedef void diff_sink(void *context, const char *text, size_t length);

/* Compares what two descriptors (open for reading; -1: nothing) refer to as text, and gives the
 * hunks of a unified diff to @sink. 0 or -errno (-ENOPKG: there is no such program). */
int diff_process_run(int old_fd, int new_fd, diff_sink *sink, void *context);

/* The program that would be started, or NULL. */
const char *diff_process_find(void);

#endif

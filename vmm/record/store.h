/* SPDX-License-Identifier: Apache-2.0 */
/* Where records are: RUN.jsonl in a directory that is the user's alone. */
#ifndef MVAGENT_RECORD_STORE_H
#define MVAGENT_RECORD_STORE_H

#include <limits.h>
#include <stdbool.h>

#include "vmm/review/layout.h"
#include "vmm/review/tree.h"

#define RECORD_SUFFIX     ".jsonl"
#define RECORD_NAME_BYTES (REVIEW_RUN_NAME_BYTES + sizeof(RECORD_SUFFIX) - 1)
#define RECORD_KEY_NAME   "record.key"

/* Opens the directory of records: @given, or the user's own. @create: makes it when it is not
 * there. Its path, without links in it, is in @path. fd, -ENOENT without a sentence when the user
 * has none yet, or another -errno with the sentence printed, also when @given is not there. */
int record_store_open(const char *given, bool create, char path[PATH_MAX]);

/* The names of all runs on record, oldest first. 0 or -errno; destroy in every case. */
int record_store_list(int store_fd, struct tree_names *names);

/* Reads the record of a run. @running: whether its process still has it open. The text is
 * allocated. 0 or -errno; -EFBIG: more than a record can be. */
int record_store_read(int store_fd, const char *run, char **text, size_t *length, bool *running);

/* The same for the file @path, be it a record or not. */
int record_read_file(int directory_fd, const char *path, char **text, size_t *length,
		     bool *running);

/* Removes the record of a run, unless it still goes on. 0, -EBUSY or -errno. */
int record_store_remove(int store_fd, const char *run);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in directories that ignore case. The rules are about ASCII names, and such a directory may
 * take other names for them: the long s and the Kelvin sign are another case of ASCII letters,
 * "sharp s" is "ss", some characters count for nothing. Which ones is a matter of the file system's
 * tables; so names with any character that is not known to be none of that are not seen there.
 */
#ifndef MVAGENT_FS_CASE_FOLD_H
#define MVAGENT_FS_CASE_FOLD_H

#include <stdbool.h>

/* Whether a directory that ignores case might take @name for one that is all ASCII but is not. */
bool case_fold_may_be_ascii(const char *name);

/* Whether a directory may ignore case. @fd: O_PATH will do. */
bool case_fold_is_ignored(int proc_fd, int fd);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in directories that ignore case. The rules are about ASCII names, and such a directory may
 * take other names for them: the long s and the Kelvin sign are another case of ASCII letters,
 * "sharp s" is "ss", some characters count for nothing. Which ones is a matter of the file system's
 * tables; so names with any character that is not known to be none of that are not seen there. Nor
 * are names of the kinds that DOS and Windows have for files besides their own.
 */
#ifndef MVAGENT_FS_CASE_FOLD_H
#define MVAGENT_FS_CASE_FOLD_H

/* How a directory may take a name for another: a set. */
enum case_fold {
	CASE_FOLD_UNICODE = 1, /* beyond ASCII */
	CASE_FOLD_DOS = 2,     /* short names (GIT~1), dots and spaces at the end */
	CASE_FOLD_STREAM = 4,  /* NAME:STREAM */
};

/* In which ways @name might be another one that is all ASCII and none of this. */
unsigned int case_fold_of_name(const char *name);

/* In which ways a directory may take names for others. @fd: O_PATH will do. */
unsigned int case_fold_of_directory(int proc_fd, int fd);

#endif

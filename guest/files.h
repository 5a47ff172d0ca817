/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of /etc, read and replaced whole. */
#ifndef GUEST_FILES_H
#define GUEST_FILES_H

/* Reads the file into a terminated string that the caller frees; a file that is not there is an
 * empty one. 0, -EFBIG past a megabyte, -errno. */
int files_read(const char *path, char **text);

/* Replaces the file's content, or the symbolic link that is there by a file. 0 or -errno. */
int files_write(const char *path, const char *text);

/* Adds lines at the end of what is there, if anything is. 0 or -errno. */
int files_append(const char *path, const char *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MVAGENT_FS_DIRENT_H
#define MVAGENT_FS_DIRENT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* getdents64(2); the entry's name follows and ends with a NUL. */
struct linux_dirent64 {
	uint64_t d_ino;
	int64_t d_off; /* where the next one is */
	uint16_t d_reclen;
	uint8_t d_type;
	char d_name[];
};

static inline bool dirent_is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

#endif

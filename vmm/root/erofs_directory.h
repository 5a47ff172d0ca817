/* SPDX-License-Identifier: Apache-2.0 */
/* Packs the entries of a directory into its blocks. */
#ifndef MVAGENT_ROOT_EROFS_DIRECTORY_H
#define MVAGENT_ROOT_EROFS_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>

struct erofs_name {
	const char *text;
	uint8_t length; /* 1 to 255 */
	uint8_t type;   /* enum erofs_type */
	uint64_t nid;
};

/* The order of names in a directory: by their bytes, a prefix first. As qsort(3) wants it. */
int erofs_name_compare(const void *a, const void *b);

/* The size of a directory of these names (sorted, none twice): whole blocks, and what is used of
 * the last one. */
uint64_t erofs_directory_bytes(const struct erofs_name *names, size_t count);

/* Writes them; @blocks has erofs_directory_bytes bytes, all of which are set. */
void erofs_directory_write(const struct erofs_name *names, size_t count, uint8_t *blocks);

#endif

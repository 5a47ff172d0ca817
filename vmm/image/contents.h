/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of files on their way into an image: one after the other in a file that has no name.
 * What an archive claims, and what it really has, is counted against one bound.
 */
#ifndef MVAGENT_IMAGE_CONTENTS_H
#define MVAGENT_IMAGE_CONTENTS_H

#include <stddef.h>
#include <stdint.h>

struct contents {
	int fd;         /* the caller's; open for reading and writing */
	uint64_t limit; /* bytes that files may have in all */
	uint64_t next;  /* where the next file begins: whole blocks */
};

/* Makes room for a file of @size bytes, all zeros, and gives its place. 0 or -EFBIG with the
 * sentence printed. */
int contents_begin(struct contents *contents, uint64_t size, uint64_t *place);

/* Writes into a file; zeros become holes. 0 or -errno with the sentence printed. */
int contents_write(struct contents *contents, uint64_t offset, const void *bytes, size_t length);

#endif

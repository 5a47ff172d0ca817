/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a block device of ours is made of, as blk.c sees it: pieces, each of which is either in
 * memory or a range of an open file. A piece of a file is announced before and after it is read, so
 * that whoever provides it can see whether the file is still what it was.
 */
#ifndef MVAGENT_ROOT_CONTENT_H
#define MVAGENT_ROOT_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

struct content_piece {
	const uint8_t *memory; /* NULL: zeros, or a file */
	int fd;                /* -1: no file */
	uint32_t token;        /* the provider's own */
	uint64_t offset;       /* in the file */
	uint64_t length;       /* bytes, above 0 */
	bool *no_nowait;       /* of a file: set when its file system does not know RWF_NOWAIT */
};

struct content_ops {
	/* The piece at byte @offset, of @length bytes at most; both lie in the device. 0 or -EIO.
	 */
	int (*begin)(void *context, uint64_t offset, uint64_t length, struct content_piece *piece);
	/* It was read: @result is 0, -ENODATA (the file ended first) or -errno. Returns 0 when what
	 * was read may be given to the guest. Called once for each begin that returned 0. */
	int (*end)(void *context, const struct content_piece *piece, int result);
};

struct content {
	const struct content_ops *ops;
	void *context;
	uint64_t sectors; /* of 512 bytes */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of an archive, unpacked while it is read: what compresses it is found out, what comes out
 * is bounded and hashed. libarchive does the unpacking.
 */
#ifndef MVAGENT_IMAGE_STREAM_H
#define MVAGENT_IMAGE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/base/sha256.h"

/* A range of a file; or of a pipe, then from where it is, to its end. */
struct stream_source {
	int fd;
	bool is_pipe;
	uint64_t offset;
	uint64_t end; /* behind the last byte */
};

struct stream;

/* @left: how many bytes may come out, of this stream and others; what does is taken from it. 0 or
 * -errno with the sentence printed. */
int stream_open(struct stream **stream, const struct stream_source *source, uint64_t *left);
void stream_close(struct stream *stream);

/* The next bytes, good until the next call. Their count, 0 at the end, or -errno with the sentence
 * printed. */
int64_t stream_next(struct stream *stream, const void **bytes);

/* Reads on to the end of the source, so that all of it was hashed. 0 or -errno, as above. */
int stream_finish(struct stream *stream);

/* After the end: digests of the source and of what came out. */
void stream_digests(struct stream *stream, uint8_t packed[SHA256_BYTES],
		    uint8_t unpacked[SHA256_BYTES]);

/* Whether anything compresses it; known once it is open. */
bool stream_is_packed(const struct stream *stream);

#endif

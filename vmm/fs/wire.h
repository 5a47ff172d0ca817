/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FUSE messages as they lie in a descriptor chain (virtio 1.2, 5.11.6): a fuse_in_header and its
 * arguments in the readable part, a fuse_out_header and its payload in the writable part. Bounds
 * only: nothing here knows files, so it can be fuzzed as it stands. Numbers are the protocol's own
 * (linux/fuse.h), in the byte order of the host, which is the guest's.
 */
#ifndef MVAGENT_FS_WIRE_H
#define MVAGENT_FS_WIRE_H

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vmm/virtio/queue.h"

/* What 7.39 added; the structures are fixed for ever, the headers of older distributions lack them.
 */
/* Of our guest kernel (kernel-config/patches): the attributes sent before are no longer right; for
 * OPENDIR: names that READDIRPLUS does not give need not be looked up while its entries hold. */
#define FOPEN_INVAL_ATTR (1U << 30)
#define FOPEN_DIR_WHOLE  (1U << 29)

#ifndef FUSE_DIRECT_IO_ALLOW_MMAP /* 7.39: mappings of files that are not cached */
#define FUSE_DIRECT_IO_ALLOW_MMAP (1ULL << 36)
#endif

#if FUSE_KERNEL_MINOR_VERSION < 39
#define FUSE_STATX 52

struct fuse_sx_time {
	int64_t tv_sec;
	uint32_t tv_nsec;
	int32_t __reserved;
};

struct fuse_statx {
	uint32_t mask;
	uint32_t blksize;
	uint64_t attributes;
	uint32_t nlink;
	uint32_t uid;
	uint32_t gid;
	uint16_t mode;
	uint16_t __spare0[1];
	uint64_t ino;
	uint64_t size;
	uint64_t blocks;
	uint64_t attributes_mask;
	struct fuse_sx_time atime;
	struct fuse_sx_time btime;
	struct fuse_sx_time ctime;
	struct fuse_sx_time mtime;
	uint32_t rdev_major;
	uint32_t rdev_minor;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint64_t __spare2[14];
};

struct fuse_statx_in {
	uint32_t getattr_flags;
	uint32_t reserved;
	uint64_t fh;
	uint32_t sx_flags;
	uint32_t sx_mask;
};

struct fuse_statx_out {
	uint64_t attr_valid;
	uint32_t attr_valid_nsec;
	uint32_t flags;
	uint64_t spare[2];
	struct fuse_statx stat;
};
#endif

/* One past the last opcode that Linux knows; the tables are this long. */
#define WIRE_OPCODE_COUNT 53

/* The largest argument block but that of FUSE_WRITE: a 64 KiB extended attribute with its name. */
#define WIRE_ARGUMENTS_MAX (65536 + 1024)

/* One request: its header and arguments are copies, made once, that the guest cannot change. */
struct wire_request {
	const struct descriptor_chain *chain;
	struct fuse_in_header header;
	const uint8_t *arguments; /* a copy; of FUSE_WRITE, the fuse_write_in alone */
	uint32_t arguments_size;  /* bytes at @arguments */
	uint32_t data_size;       /* bytes of the chain after @arguments: what FUSE_WRITE writes */
	uint32_t reply_capacity;  /* bytes of payload that fit after the fuse_out_header */
	bool can_reply;           /* whether the chain has room for a fuse_out_header */
};

/* Decodes the request in @chain; @buffer (WIRE_ARGUMENTS_MAX bytes) receives the arguments and must
 * stay until the request is answered. Returns 0 or -EINVAL: header.len is not the size of the
 * readable part, or the arguments are too long. request->header and can_reply are then valid if the
 * chain holds a header at all (header.unique is 0 if not). */
int wire_decode(struct wire_request *request, const struct descriptor_chain *chain,
		uint8_t *buffer);

/* Reads arguments in order. */
struct wire_reader {
	const uint8_t *at;
	uint32_t left;
};

struct wire_reader wire_arguments(const struct wire_request *request);

/* Takes a structure of @size bytes. 0 or -EINVAL. */
int wire_take(struct wire_reader *reader, void *structure, size_t size);

/* Takes a string with its NUL; it points into the arguments. 0 or -EINVAL when no NUL follows. */
int wire_take_string(struct wire_reader *reader, const char **string);

/* Whether all arguments have been taken: anything left over is no valid request. */
bool wire_at_end(const struct wire_reader *reader);

/* Writes @size bytes of payload at @offset of the payload. Returns 0 or -EINVAL when they do not
 * fit. */
int wire_put(const struct wire_request *request, size_t offset, const void *data, size_t size);

/* As wire_put at 0; returns @size, for handlers whose payload is one structure. */
int wire_reply(const struct wire_request *request, const void *data, size_t size);

/* Completes the reply. @result: bytes of payload already put, or a negative errno, and then no
 * payload is announced. Returns the total that was written, 0 when the chain cannot take a reply.
 */
uint32_t wire_finish(const struct wire_request *request, int result);

/* The guest buffers of @size bytes of data to write (FUSE_WRITE) or of payload to read into.
 * Returns the count of iovecs or -EINVAL when they are not all there. */
int wire_data_iovec(const struct wire_request *request, size_t size, struct iovec *vector,
		    unsigned int capacity);
int wire_payload_iovec(const struct wire_request *request, size_t size, struct iovec *vector,
		       unsigned int capacity);

#endif

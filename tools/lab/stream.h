/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAB_STREAM_H
#define LAB_STREAM_H

#include <stddef.h>
#include <stdint.h>

/* Write all `length` bytes. Returns 0 or a negative errno. */
int stream_write_all(int fd, const void *data, size_t length);

/* Read exactly `length` bytes. Returns 0, -EPIPE at end of file, or a negative errno. */
int stream_read_all(int fd, void *data, size_t length);

/* Write one message (wire.h). Returns 0 or a negative errno. */
int stream_send(int port, const void *data, uint32_t length);

/*
 * Read one message of at most `limit` bytes into a new allocation, which the caller frees.
 * Returns 0, -EPIPE at end of file, -EPROTO when longer than the limit, or a negative errno.
 */
int stream_receive(int port, uint32_t limit, char **data, uint32_t *length);

/*
 * Copy `from` to the stream port until end of file, or until the other side says that its reader
 * is gone; closes `from`. Blocks while the other side does not read: nothing is queued here.
 */
void stream_copy_to_port(int from, int port);

/*
 * Copy the stream port to `to` until the end-of-file message; closes `to`. When the reader of `to`
 * goes away, says so to the other side and drops what still comes.
 */
void stream_copy_from_port(int port, int to);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a descriptor chain, wherever the driver has cut it into segments (2.7.4.2: a device
 * makes no assumption about the framing). */
#include "vmm/virtio/queue.h"

#include <string.h>

#include "vmm/base/bytes.h"

/* A walk over the bytes of one part of a chain. */
struct cursor {
	const struct iovec *segment;
	const struct iovec *end;
	size_t offset; /* within *segment */
};

static struct cursor cursor_at(const struct iovec *segments, unsigned int count, size_t offset)
{
	struct cursor cursor = {.segment = segments, .end = segments + count, .offset = offset};

	while (cursor.segment < cursor.end && cursor.offset >= cursor.segment->iov_len) {
		cursor.offset -= cursor.segment->iov_len;
		cursor.segment++;
	}
	return cursor;
}

/* The next contiguous piece, at most @length bytes; empty at the end of the part. */
static struct iovec cursor_next(struct cursor *cursor, size_t length)
{
	struct iovec piece = {0};

	if (cursor->segment == cursor->end)
		return piece;
	piece.iov_base = (uint8_t *)cursor->segment->iov_base + cursor->offset;
	piece.iov_len = bytes_minimum(cursor->segment->iov_len - cursor->offset, length);
	cursor->offset += piece.iov_len;
	if (cursor->offset == cursor->segment->iov_len) {
		cursor->segment++;
		cursor->offset = 0;
	}
	return piece;
}

size_t descriptor_chain_read(const struct descriptor_chain *chain, size_t offset, void *buffer,
			     size_t length)
{
	struct cursor cursor = cursor_at(chain->segments, chain->readable_count, offset);
	size_t done = 0;

	while (done < length) {
		struct iovec piece = cursor_next(&cursor, length - done);

		if (!piece.iov_len)
			break;
		memcpy((uint8_t *)buffer + done, piece.iov_base, piece.iov_len);
		done += piece.iov_len;
	}
	return done;
}

size_t descriptor_chain_write(const struct descriptor_chain *chain, size_t offset,
			      const void *buffer, size_t length)
{
	struct cursor cursor =
		cursor_at(chain->segments + chain->readable_count, chain->writable_count, offset);
	size_t done = 0;

	while (done < length) {
		struct iovec piece = cursor_next(&cursor, length - done);

		if (!piece.iov_len)
			break;
		memcpy(piece.iov_base, (const uint8_t *)buffer + done, piece.iov_len);
		done += piece.iov_len;
	}
	return done;
}

static unsigned int collect(struct cursor cursor, size_t length, struct iovec *vector,
			    unsigned int capacity)
{
	unsigned int count = 0;

	while (length) {
		struct iovec piece = cursor_next(&cursor, length);

		if (!piece.iov_len || count == capacity)
			return 0;
		vector[count++] = piece;
		length -= piece.iov_len;
	}
	return count;
}

unsigned int descriptor_chain_readable_iovec(const struct descriptor_chain *chain, size_t offset,
					     size_t length, struct iovec *vector,
					     unsigned int capacity)
{
	return collect(cursor_at(chain->segments, chain->readable_count, offset), length, vector,
		       capacity);
}

unsigned int descriptor_chain_writable_iovec(const struct descriptor_chain *chain, size_t offset,
					     size_t length, struct iovec *vector,
					     unsigned int capacity)
{
	return collect(
		cursor_at(chain->segments + chain->readable_count, chain->writable_count, offset),
		length, vector, capacity);
}

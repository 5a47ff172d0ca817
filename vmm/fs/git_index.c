/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/git_index.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#define INDEX_HEADER_BYTES  12U
#define INDEX_STATUS_BYTES  40U /* times, device, inode, mode, owner, size */
#define INDEX_EXTENDED_FLAG 0x4000U

struct index_reader {
	const uint8_t *bytes;
	size_t size;
	size_t at;
	uint32_t version;
	size_t hash_bytes; /* 20 (SHA-1) or 32 (SHA-256): only the repository's config knows */
	char path[PATH_MAX];
	size_t path_length;
};

static uint32_t read_be32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

/* Version 4: how many bytes of the path before are dropped, in base 128 with a carry. */
static int index_read_strip(struct index_reader *reader, size_t *strip)
{
	uint8_t byte;

	*strip = 0;
	do {
		if (reader->at >= reader->size || *strip > PATH_MAX)
			return -EPROTO;
		byte = reader->bytes[reader->at++];
		*strip = (*strip << 7) + (byte & 127);
		if (byte & 128)
			++*strip;
	} while (byte & 128);
	return 0;
}

static int index_read_path(struct index_reader *reader)
{
	const uint8_t *name;
	size_t strip = reader->path_length, length;

	if (reader->version == 4 && index_read_strip(reader, &strip))
		return -EPROTO;
	if (strip > reader->path_length)
		return -EPROTO;
	name = reader->bytes + reader->at;
	length = strnlen((const char *)name, reader->size - reader->at);
	reader->path_length -= strip;
	if (length == reader->size - reader->at ||
	    length >= sizeof(reader->path) - reader->path_length)
		return -EPROTO;
	memcpy(reader->path + reader->path_length, name, length + 1);
	reader->path_length += length;
	reader->at += length;
	return reader->path_length ? 0 : -EPROTO;
}

static int index_read_entry(struct index_reader *reader)
{
	size_t start = reader->at, end;
	bool extended;
	int error;

	if (reader->size - start < INDEX_STATUS_BYTES + reader->hash_bytes + 4)
		return -EPROTO;
	reader->at += INDEX_STATUS_BYTES + reader->hash_bytes;
	extended = (uint32_t)(reader->bytes[reader->at] << 8) & INDEX_EXTENDED_FLAG;
	reader->at += extended ? 4 : 2;
	error = index_read_path(reader);
	if (error)
		return error;
	/* A NUL ends the path; before version 4 there are more, to a multiple of 8. */
	end = reader->version == 4 ? reader->at + 1 : start + ((reader->at - start + 8) & ~7UL);
	if (end > reader->size)
		return -EPROTO;
	for (; reader->at < end; reader->at++)
		if (reader->bytes[reader->at])
			return -EPROTO;
	return 0;
}

static int index_read_all(struct index_reader *reader, uint32_t count, git_index_visit *visit,
			  void *context)
{
	reader->at = INDEX_HEADER_BYTES;
	reader->path_length = 0;
	for (uint32_t i = 0; i < count; i++) {
		int error = index_read_entry(reader);

		if (error)
			return error;
		if (visit)
			visit(context, reader->path);
	}
	return 0;
}

int git_index_read(const uint8_t *bytes, size_t size, git_index_visit *visit, void *context)
{
	struct index_reader reader = {.bytes = bytes, .size = size, .hash_bytes = 20};
	uint32_t count;

	if (size < INDEX_HEADER_BYTES || memcmp(bytes, "DIRC", 4) != 0)
		return -EPROTO;
	reader.version = read_be32(bytes + 4);
	count = read_be32(bytes + 8);
	if (reader.version < 2 || reader.version > 4)
		return -EPROTO;
	/* An index with hashes of the other size is not well-formed by this one. */
	if (index_read_all(&reader, count, NULL, NULL))
		reader.hash_bytes = 32;
	return index_read_all(&reader, count, visit, context);
}

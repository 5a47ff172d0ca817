/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/wire.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "vmm/base/limits.h"

static_assert(sizeof(struct fuse_in_header) == 40, "FUSE protocol 7.x");
static_assert(sizeof(struct fuse_out_header) == 16, "FUSE protocol 7.x");
static_assert(sizeof(struct fuse_statx_out) == 32 + 256, "FUSE protocol 7.39");
static_assert(sizeof(struct fuse_setxattr_in) == 16, "FUSE protocol 7.33");
static_assert(WIRE_ARGUMENTS_MAX >= FUSE_COMPAT_SETXATTR_IN_SIZE + 256 + 65536,
	      "the largest attribute and its name must fit");

int wire_decode(struct wire_request *request, const struct descriptor_chain *chain, uint8_t *buffer)
{
	const size_t header_size = sizeof(request->header);
	uint32_t arguments_size;

	memset(request, 0, sizeof(*request));
	request->chain = chain;
	if (chain->writable_bytes >= sizeof(struct fuse_out_header)) {
		request->can_reply = true;
		request->reply_capacity =
			chain->writable_bytes - (uint32_t)sizeof(struct fuse_out_header);
	}
	if (descriptor_chain_read(chain, 0, &request->header, header_size) != header_size) {
		memset(&request->header, 0, header_size);
		return -EINVAL;
	}
	if (request->header.len != chain->readable_bytes)
		return -EINVAL;

	arguments_size = request->header.len - (uint32_t)header_size;
	if (request->header.opcode == FUSE_WRITE && arguments_size > sizeof(struct fuse_write_in)) {
		request->data_size = arguments_size - (uint32_t)sizeof(struct fuse_write_in);
		arguments_size = sizeof(struct fuse_write_in);
	}
	if (arguments_size > WIRE_ARGUMENTS_MAX)
		return -EINVAL;
	if (descriptor_chain_read(chain, header_size, buffer, arguments_size) != arguments_size)
		return -EINVAL;
	request->arguments = buffer;
	request->arguments_size = arguments_size;
	return 0;
}

struct wire_reader wire_arguments(const struct wire_request *request)
{
	return (struct wire_reader){.at = request->arguments, .left = request->arguments_size};
}

int wire_take(struct wire_reader *reader, void *structure, size_t size)
{
	if (size > reader->left)
		return -EINVAL;
	memcpy(structure, reader->at, size);
	reader->at += size;
	reader->left -= (uint32_t)size;
	return 0;
}

int wire_take_string(struct wire_reader *reader, const char **string)
{
	const uint8_t *end = reader->left ? memchr(reader->at, '\0', reader->left) : NULL;

	if (!end)
		return -EINVAL;
	*string = (const char *)reader->at;
	reader->left -= (uint32_t)(end + 1 - reader->at);
	reader->at = end + 1;
	return 0;
}

bool wire_at_end(const struct wire_reader *reader)
{
	return reader->left == 0;
}

int wire_put(const struct wire_request *request, size_t offset, const void *data, size_t size)
{
	if (offset > request->reply_capacity || size > request->reply_capacity - offset)
		return -EINVAL;
	if (descriptor_chain_write(request->chain, sizeof(struct fuse_out_header) + offset, data,
				   size) != size)
		return -EINVAL;
	return 0;
}

int wire_reply(const struct wire_request *request, const void *data, size_t size)
{
	int error = wire_put(request, 0, data, size);

	return error ? error : (int)size;
}

uint32_t wire_finish(const struct wire_request *request, int result)
{
	struct fuse_out_header header = {
		.len = sizeof(header),
		.unique = request->header.unique,
	};

	if (!request->can_reply)
		return 0;
	if (result < 0)
		header.error = result;
	else
		header.len += (uint32_t)result;
	descriptor_chain_write(request->chain, 0, &header, sizeof(header));
	return header.len;
}

int wire_data_iovec(const struct wire_request *request, size_t size, struct iovec *vector,
		    unsigned int capacity)
{
	size_t offset = sizeof(request->header) + request->arguments_size;
	unsigned int count;

	if (size > request->data_size)
		return -EINVAL;
	count = descriptor_chain_readable_iovec(request->chain, offset, size, vector, capacity);
	return count ? (int)count : -EINVAL;
}

int wire_payload_iovec(const struct wire_request *request, size_t size, struct iovec *vector,
		       unsigned int capacity)
{
	unsigned int count;

	if (size > request->reply_capacity)
		return -EINVAL;
	count = descriptor_chain_writable_iovec(request->chain, sizeof(struct fuse_out_header),
						size, vector, capacity);
	return count ? (int)count : -EINVAL;
}

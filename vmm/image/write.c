/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/write.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/root/erofs.h"
#include "vmm/root/erofs_format.h"
#include "vmm/root/verity.h"

#define BUFFER_BYTES (256U << 10)

static int write_at(int fd, const uint8_t *bytes, size_t length, uint64_t offset)
{
	while (length) {
		ssize_t count = pwrite(fd, bytes, length, (off_t)offset);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return count ? -errno : -ENOSPC;
		bytes += count;
		length -= (size_t)count;
		offset += (uint64_t)count;
	}
	return 0;
}

static int write_metadata(const struct tree *tree, const struct erofs_layout *layout, int image_fd)
{
	uint8_t *metadata = malloc(layout->metadata_bytes);
	int error = metadata ? erofs_write(tree, layout, metadata) : -ENOMEM;

	error = error ? error : write_at(image_fd, metadata, layout->metadata_bytes, 0);
	free(metadata);
	return error;
}

/* Copies bytes from file to file: by sharing them where the file system can. */
static int copy_range(int from_fd, off_t from, int to_fd, off_t to, uint64_t length,
		      uint8_t *buffer)
{
	while (length) {
		ssize_t count = copy_file_range(from_fd, &from, to_fd, &to, length, 0);
		int error;

		if (count > 0) {
			length -= (uint64_t)count;
			continue;
		}
		if (count < 0 && errno == EINTR)
			continue;
		/* Not between these two, or not on this kernel: by hand. */
		count = (ssize_t)bytes_minimum(length, BUFFER_BYTES);
		error = fd_pread_full(from_fd, buffer, (size_t)count, from);
		error = error ? error : write_at(to_fd, buffer, (size_t)count, (uint64_t)to);
		if (error)
			return error;
		from += count;
		to += count;
		length -= (uint64_t)count;
	}
	return 0;
}

/* One file's contents, but its holes. */
static int copy_file(int from_fd, uint64_t from, int to_fd, uint64_t to, uint64_t size,
		     uint8_t *buffer)
{
	uint64_t done = 0;

	while (done < size) {
		off_t data = lseek(from_fd, (off_t)(from + done), SEEK_DATA), hole;
		uint64_t length;
		int error;

		if (data < 0 && errno == ENXIO)
			return 0;
		if (data < 0)
			return -errno;
		if ((uint64_t)data - from >= size)
			return 0;
		hole = lseek(from_fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		done = (uint64_t)data - from;
		length = bytes_minimum((uint64_t)(hole - data), size - done);
		error = copy_range(from_fd, data, to_fd, (off_t)(to + done), length, buffer);
		if (error)
			return error;
		done += length;
	}
	return 0;
}

static int copy_contents(const struct tree *tree, const uint64_t *places,
			 const struct contents *contents, int image_fd)
{
	uint8_t *buffer = malloc(BUFFER_BYTES);
	int error = buffer ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < tree->node_count && !error; i++) {
		const struct tree_node *node = &tree->nodes[i];

		if (node->kind != TREE_FILE || node->same_as != i || !node->size)
			continue;
		error = copy_file(contents->fd, places[i], image_fd,
				  (uint64_t)node->first_block * EROFS_BLOCK_BYTES, node->size,
				  buffer);
	}
	free(buffer);
	return error;
}

static int write_tree(struct tree *tree, const uint64_t *places, const struct contents *contents,
		      int image_fd, struct image_descriptor *descriptor)
{
	struct erofs_layout layout;
	struct verity_layout verity;
	int error = erofs_lay_out(tree, &layout);

	if (error)
		return error;
	descriptor->bytes = (uint64_t)layout.block_count * EROFS_BLOCK_BYTES;
	if (descriptor->bytes > LIMIT_IMAGE_BYTES)
		return -EFBIG;
	error = ftruncate(image_fd, (off_t)descriptor->bytes) ? -errno : 0;
	error = error ? error : write_metadata(tree, &layout, image_fd);
	error = error ? error : copy_contents(tree, places, contents, image_fd);
	verity_lay_out(layout.block_count, &verity);
	return error ? error : verity_write(image_fd, &verity, descriptor->verity_root);
}

int image_write(const struct merge *merge, const struct contents *contents, int image_fd,
		struct image_descriptor *descriptor)
{
	struct tree tree;
	uint64_t *places;
	int error = merge_flatten(merge, &tree, &places);

	error = error ? error : write_tree(&tree, places, contents, image_fd, descriptor);
	tree_free(&tree);
	free(places);
	return error ? log_errno(error, "cannot write the image") : 0;
}

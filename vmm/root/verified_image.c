/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/verified_image.h"

#include <errno.h>
#include <stdlib.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/root/blk.h"
#include "vmm/root/image.h"
#include "vmm/root/verity.h"

/* How much is read, and checked, at once. */
#define WINDOW_BLOCKS 32U
#define WINDOW_BYTES  (WINDOW_BLOCKS * VERITY_BLOCK_BYTES)

struct verified_image {
	int fd;
	uint64_t bytes;
	struct verity *verity;
	bool is_spoiled;
	void (*spoiled)(void *context);
	void *context;
	uint8_t window[WINDOW_BYTES]; /* what is between begin and end */
};

int verified_image_create(struct verified_image **image, int fd, uint64_t bytes,
			  const uint8_t root[SHA256_BYTES], void (*spoiled)(void *context),
			  void *context)
{
	struct verified_image *created;
	struct verity_layout layout;
	uint64_t sectors;
	int error = image_measure(fd, &sectors);

	if (error)
		return error;
	verity_lay_out(bytes / VERITY_BLOCK_BYTES, &layout);
	if (sectors * BLK_SECTOR_BYTES != layout.end_block * VERITY_BLOCK_BYTES) {
		log_error("the root image has %llu bytes instead of %llu: it is not what it was "
			  "when it was imported; import it again",
			  (unsigned long long)sectors * BLK_SECTOR_BYTES,
			  (unsigned long long)layout.end_block * VERITY_BLOCK_BYTES);
		return -EBADMSG;
	}
	created = calloc(1, sizeof(*created));
	error = created ? verity_open(&created->verity, fd, &layout, root) : -ENOMEM;
	if (error) {
		free(created);
		return log_errno(error, "cannot check the root image");
	}
	created->fd = fd;
	created->bytes = bytes;
	created->spoiled = spoiled;
	created->context = context;
	*image = created;
	return 0;
}

void verified_image_destroy(struct verified_image *image)
{
	if (!image)
		return;
	verity_close(image->verity);
	free(image);
}

/* Reads and checks @count blocks. 0, or -errno with the sentence printed. */
static int fill_window(struct verified_image *image, uint64_t first, uint64_t count)
{
	uint64_t index = first;
	int error = fd_pread_full(image->fd, image->window, count * VERITY_BLOCK_BYTES,
				  (off_t)(first * VERITY_BLOCK_BYTES));

	for (; index < first + count && !error; index++)
		error = verity_check(image->verity, index,
				     image->window + (index - first) * VERITY_BLOCK_BYTES);
	if (error == -EBADMSG || error == -ENODATA)
		log_error("block %llu of the root image is not what its digest stands for: the "
			  "file was changed after it was imported, or its disk fails; import the "
			  "image again",
			  (unsigned long long)index - (index > first));
	else if (error)
		log_errno(error, "cannot read the root image");
	return error;
}

static int begin(void *context, uint64_t offset, uint64_t length, struct content_piece *piece)
{
	struct verified_image *image = context;
	uint64_t first = offset / VERITY_BLOCK_BYTES;
	uint64_t skipped = offset % VERITY_BLOCK_BYTES;
	uint64_t last = (offset + length - 1) / VERITY_BLOCK_BYTES;
	uint64_t count = bytes_minimum(last - first + 1, WINDOW_BLOCKS);

	if (image->is_spoiled)
		return -EIO;
	if (fill_window(image, first, count)) {
		image->is_spoiled = true;
		image->spoiled(image->context);
		return -EIO;
	}
	*piece = (struct content_piece){
		.fd = -1,
		.memory = image->window + skipped,
		.length = bytes_minimum(length, count * VERITY_BLOCK_BYTES - skipped),
	};
	return 0;
}

static int end(void *context, const struct content_piece *piece, int result)
{
	(void)context;
	(void)piece;
	return result;
}

struct content verified_image_content(struct verified_image *image)
{
	static const struct content_ops ops = {.begin = begin, .end = end};

	return (struct content){
		.ops = &ops, .context = image, .sectors = image->bytes / BLK_SECTOR_BYTES};
}

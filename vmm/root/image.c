/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/image.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/log.h"
#include "vmm/root/blk.h"

int image_measure(int fd, uint64_t *sectors)
{
	struct stat status;
	off_t bytes;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fstat(fd, &status) < 0)
		return log_errno(-errno, "cannot look at the image");
	if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)) {
		log_error("the image is neither a file nor a block device");
		return -EINVAL;
	}
	if ((flags & O_PATH) || (flags & O_ACCMODE) == O_WRONLY) {
		log_error("the image is not open for reading");
		return -EBADF;
	}
	/* Unlike st_size, this also knows the size of a block device. */
	bytes = lseek(fd, 0, SEEK_END);
	if (bytes < 0)
		return log_errno(-errno, "cannot find out the size of the image");
	/* Not rounded: half a sector is the sign of a copy that was cut off. */
	if (bytes == 0 || bytes % BLK_SECTOR_BYTES) {
		log_error("the image has %lld bytes, which is no whole number of %u byte sectors: "
			  "it is empty or incomplete; make or copy it again",
			  (long long)bytes, BLK_SECTOR_BYTES);
		return -EINVAL;
	}
	/* An image is opened without blocking, should it turn out to be a FIFO; but a read that may
	 * not wait fails with EAGAIN where the file system or its device cannot do that
	 * (io_rw_init_file, Linux 6.1: dm-crypt, network file systems). */
	if (fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return log_errno(-errno, "cannot use the image");
	*sectors = (uint64_t)bytes / BLK_SECTOR_BYTES;
	return 0;
}

static int image_begin(void *context, uint64_t offset, uint64_t length, struct content_piece *piece)
{
	struct image *image = context;

	*piece = (struct content_piece){
		.fd = image->fd,
		.offset = offset,
		.length = length,
		.no_nowait = &image->no_nowait,
	};
	return 0;
}

/* A failure is the host's fault, so it is told; once, because the guest can ask again without end.
 */
static int image_end(void *context, const struct content_piece *piece, int result)
{
	struct image *image = context;

	(void)piece;
	if (result && !image->complained) {
		image->complained = true;
		if (result == -ENODATA)
			log_error("the root image has become shorter than it was at the start");
		else
			log_errno(result, "cannot read the root image");
	}
	return result ? -EIO : 0;
}

struct content image_content(struct image *image, int fd, uint64_t sectors)
{
	static const struct content_ops ops = {.begin = image_begin, .end = image_end};

	*image = (struct image){.fd = fd};
	return (struct content){.ops = &ops, .context = image, .sectors = sectors};
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/blk.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/iovec.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"

/* Two descriptors of a request are not data: its header and its status (5.2.6). So many data
 * segments fit a queue of 128 entries, which is what QEMU gives us, without indirect descriptors
 * (2.7.5.3.1 bounds also those by the queue size). */
#define SEGMENTS_MAX 126U
static_assert(SEGMENTS_MAX + 2 <= LIMIT_CHAIN_SEGMENTS, "seg_max must be servable");

struct blk_request {
	struct blk *blk;
	struct virtqueue *queue;
	struct loop_operation operation;
	uint8_t *status;      /* the last byte of the writable part */
	struct iovec *vector; /* what is still to be filled of the bytes before it */
	unsigned int vector_count;
	off_t offset; /* in the image, of what is read next */
	struct blk_request *next_free;
	struct descriptor_chain chain;
};

struct blk {
	struct blk_description description;
	struct blk_counters counters;
	bool no_nowait; /* the image's file system does not know RWF_NOWAIT */
	bool complained;
	bool broken; /* a used ring was gone when a request ended */
	unsigned int in_flight;
	struct blk_request *first_free;
	struct blk_request requests[LIMIT_BLK_INFLIGHT];
};

int blk_create(struct blk **blk, const struct blk_description *description)
{
	struct blk *created = calloc(1, sizeof(*created));

	if (!created)
		return -ENOMEM;
	created->description = *description;
	for (unsigned int i = 0; i < ARRAY_SIZE(created->requests); i++) {
		created->requests[i].blk = created;
		created->requests[i].next_free = created->first_free;
		created->first_free = &created->requests[i];
	}
	*blk = created;
	return 0;
}

void blk_destroy(struct blk *blk)
{
	assert(!blk || blk->in_flight == 0);
	free(blk);
}

uint64_t blk_features(void)
{
	return 1ULL << VIRTIO_BLK_F_RO | 1ULL << VIRTIO_BLK_F_SEG_MAX |
	       1ULL << VIRTIO_BLK_F_BLK_SIZE;
}

struct virtio_blk_config blk_config(const struct blk *blk)
{
	return (struct virtio_blk_config){
		.capacity = htole64(blk->description.image_sectors),
		.seg_max = htole32(SEGMENTS_MAX),
		.blk_size = htole32(BLK_SECTOR_BYTES),
		.num_queues = htole16(BLK_QUEUES),
	};
}

struct blk_counters blk_counters(const struct blk *blk)
{
	return blk->counters;
}

/* The host's fault, so it is told; once, because the guest can ask again without end. */
static void complain(struct blk *blk, int error)
{
	if (blk->complained)
		return;
	blk->complained = true;
	if (error)
		log_errno(error, "cannot read the root image");
	else
		log_error("the root image has become shorter than it was at the start");
}

/* Notes that the first @count of the bytes to be filled are. */
static void advance(struct blk_request *request, size_t count)
{
	request->offset += (off_t)count;
	request->vector_count = iovec_advance(&request->vector, request->vector_count, count);
}

/* Gives the request back to the guest. The used length says that the whole writable part was
 * written (2.7.8.2), so it is: what the request did not fill is cleared. */
static void finish(struct blk_request *request, uint8_t status)
{
	struct blk *blk = request->blk;
	uint32_t written = 0;

	if (request->status) {
		for (unsigned int i = 0; i < request->vector_count; i++)
			memset(request->vector[i].iov_base, 0, request->vector[i].iov_len);
		*request->status = status;
		written = request->chain.writable_bytes;
	}
	if (status != VIRTIO_BLK_S_OK)
		blk->counters.refused++;
	if (virtqueue_push(request->queue, request->chain.head, written) < 0)
		blk->broken = true;
	request->next_free = blk->first_free;
	blk->first_free = request;
}

static void wait_for_image(struct blk_request *request);

static void on_read(struct loop_operation *operation, int result)
{
	struct blk_request *request = CONTAINER_OF(operation, struct blk_request, operation);
	struct blk *blk = request->blk;

	blk->in_flight--;
	if (result > 0)
		advance(request, (size_t)result);
	/* Short reads are allowed anywhere; only the end of the file gives 0. */
	if (result == -EINTR || (result > 0 && request->vector_count)) {
		wait_for_image(request);
		return;
	}
	if (result <= 0)
		complain(blk, result);
	finish(request, result > 0 ? VIRTIO_BLK_S_OK : VIRTIO_BLK_S_IOERR);
	blk->description.finish_batch(blk->description.context);
}

static void wait_for_image(struct blk_request *request)
{
	struct blk *blk = request->blk;
	int error = loop_read(blk->description.loop, &request->operation, blk->description.image_fd,
			      request->vector, request->vector_count, request->offset, on_read);

	if (error)
		log_fatal("the event loop has no room for a request of the root device");
	blk->in_flight++;
}

/* Reads what is in the page cache already. 0: all of it, or -errno; -EAGAIN: the rest must wait. */
static int read_cached(struct blk_request *request)
{
	struct blk *blk = request->blk;
	ssize_t count;

	while (request->vector_count) {
		if (blk->no_nowait)
			return -EAGAIN;
		count = preadv2(blk->description.image_fd, request->vector,
				(int)request->vector_count, request->offset, RWF_NOWAIT);
		if (count == 0)
			return -ENODATA;
		if (count > 0)
			advance(request, (size_t)count);
		else if (errno == EOPNOTSUPP)
			blk->no_nowait = true;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* VIRTIO_BLK_T_IN (5.2.6). @bytes: of data that the driver has room for. */
static void serve_read(struct blk_request *request, uint64_t sector, uint32_t bytes)
{
	struct blk *blk = request->blk;
	int result;

	if (bytes % BLK_SECTOR_BYTES ||
	    !bytes_range_fits(sector, bytes / BLK_SECTOR_BYTES, blk->description.image_sectors)) {
		finish(request, VIRTIO_BLK_S_IOERR);
		return;
	}
	request->offset = (off_t)(sector * BLK_SECTOR_BYTES);
	result = read_cached(request);
	if (result == -EAGAIN) {
		blk->counters.waited++;
		wait_for_image(request);
		return;
	}
	if (result)
		complain(blk, result == -ENODATA ? 0 : result);
	finish(request, result ? VIRTIO_BLK_S_IOERR : VIRTIO_BLK_S_OK);
}

/* VIRTIO_BLK_T_GET_ID: 20 bytes, padded with zeros (5.2.6). */
static void serve_id(struct blk_request *request)
{
	static const char id[VIRTIO_BLK_ID_BYTES] = "mvagent-root";

	advance(request, descriptor_chain_write(&request->chain, 0, id, sizeof(id)));
	finish(request, VIRTIO_BLK_S_OK);
}

/* Splits the status byte, the last of the writable part, from the bytes before it. Returns the
 * count of those, or -1 when there is not even a status byte. */
static int64_t split_status(struct blk_request *request)
{
	struct descriptor_chain *chain = &request->chain;
	struct iovec *last;

	request->status = NULL;
	request->vector = chain->segments + chain->readable_count;
	request->vector_count = chain->writable_count;
	if (chain->writable_bytes == 0)
		return -1;
	last = &request->vector[request->vector_count - 1];
	last->iov_len--;
	request->status = (uint8_t *)last->iov_base + last->iov_len;
	if (last->iov_len == 0)
		request->vector_count--;
	return (int64_t)chain->writable_bytes - 1;
}

static void serve(struct blk_request *request)
{
	struct virtio_blk_outhdr header;
	int64_t bytes = split_status(request);
	size_t header_bytes = descriptor_chain_read(&request->chain, 0, &header, sizeof(header));

	request->blk->counters.requests++;
	if (bytes < 0 || header_bytes < sizeof(header)) {
		finish(request, VIRTIO_BLK_S_IOERR);
		return;
	}
	switch (le32toh(header.type)) {
	case VIRTIO_BLK_T_IN:
		serve_read(request, le64toh(header.sector), (uint32_t)bytes);
		break;
	case VIRTIO_BLK_T_GET_ID:
		serve_id(request);
		break;
	case VIRTIO_BLK_T_FLUSH: /* nothing is ever written */
		finish(request, VIRTIO_BLK_S_OK);
		break;
	case VIRTIO_BLK_T_OUT: /* 5.2.6.2: a read-only device fails these with IOERR */
	case VIRTIO_BLK_T_DISCARD:
	case VIRTIO_BLK_T_WRITE_ZEROES:
	case VIRTIO_BLK_T_SECURE_ERASE:
		finish(request, VIRTIO_BLK_S_IOERR);
		break;
	default:
		finish(request, VIRTIO_BLK_S_UNSUPP);
		break;
	}
}

int blk_process_queue(struct blk *blk, struct virtqueue *queue)
{
	while (blk->first_free && !blk->broken) {
		struct blk_request *request = blk->first_free;
		int result = virtqueue_pop(queue, &request->chain);

		if (result <= 0)
			return result;
		blk->first_free = request->next_free;
		request->queue = queue;
		serve(request);
	}
	if (!blk->broken)
		return 0;
	blk->broken = false; /* told; the next ring is another one */
	return -EPROTO;
}

void blk_drain(struct blk *blk)
{
	while (blk->in_flight) {
		int result = loop_run_once(blk->description.loop, -1);

		if (result < 0)
			log_fatal("the event loop failed while requests of the root device were in "
				  "flight");
	}
}

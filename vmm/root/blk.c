/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/blk.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/limits.h"
#include "vmm/base/log.h"

/* Two descriptors of a request are not data: its header and its status (5.2.6). So many data
 * segments fit a queue of 128 entries, which is what QEMU gives us, without indirect descriptors
 * (2.7.5.3.1 bounds also those by the queue size). */
#define SEGMENTS_MAX 126U
static_assert(SEGMENTS_MAX + 2 <= LIMIT_CHAIN_SEGMENTS, "seg_max must be servable");

/* Contents lie in blocks of 4 KiB. Linux reads twice the optimal size ahead (blk_apply_bdi_limits,
 * 6.12): here 1 MiB. Starting a program of 100 MB takes 98 requests then; with 512 KiB 160, with
 * Linux's own 128 KiB 446, and each size brings a tenth more bytes than half of it. */
#define PHYSICAL_BLOCK_EXPONENT 3U
#define OPTIMAL_IO_SECTORS      1024U

struct blk_request {
	struct blk *blk;
	struct virtqueue *queue;
	struct loop_operation operation;
	uint8_t *status;      /* the last byte of the writable part */
	struct iovec *vector; /* what is still to be filled of the bytes before it, */
	unsigned int vector_count;
	size_t filled;                /* but for the first so many of its first buffer */
	uint64_t offset;              /* on the device, of what is read next */
	uint64_t left;                /* bytes to read from there */
	struct content_piece piece;   /* what is being read; its offset and length move on */
	size_t cut;                   /* taken off the last buffer of the read at hand */
	unsigned int waiting_buffers; /* of the read that the loop has */
	bool has_waited;
	struct blk_request *next_free;
	struct descriptor_chain chain;
};

struct blk {
	struct blk_description description;
	struct blk_counters counters;
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
	       1ULL << VIRTIO_BLK_F_BLK_SIZE | 1ULL << VIRTIO_BLK_F_TOPOLOGY;
}

struct virtio_blk_config blk_config(const struct blk *blk)
{
	return (struct virtio_blk_config){
		.capacity = htole64(blk->description.content.sectors),
		.seg_max = htole32(SEGMENTS_MAX),
		.blk_size = htole32(BLK_SECTOR_BYTES),
		.physical_block_exp = PHYSICAL_BLOCK_EXPONENT,
		.min_io_size = htole16(1U << PHYSICAL_BLOCK_EXPONENT),
		.opt_io_size = htole32(OPTIMAL_IO_SECTORS),
		.num_queues = htole16(BLK_QUEUES),
	};
}

struct blk_counters blk_counters(const struct blk *blk)
{
	return blk->counters;
}

/* Notes that the next @count of the bytes to be filled are. */
static void advance(struct blk_request *request, size_t count)
{
	request->filled += count;
	while (request->vector_count && request->filled >= request->vector->iov_len) {
		request->filled -= request->vector->iov_len;
		request->vector++;
		request->vector_count--;
	}
}

/* Starts again with the first of the bytes to be filled. */
static void rewind_vector(struct blk_request *request)
{
	request->vector = request->chain.segments + request->chain.readable_count;
	request->vector_count = request->chain.writable_count;
	request->filled = 0;
	advance(request, 0);
}

static void *first_free_byte(const struct blk_request *request)
{
	return (uint8_t *)request->vector->iov_base + request->filled;
}

static size_t rest_of_buffer(const struct blk_request *request)
{
	return request->vector->iov_len - request->filled;
}

/* Gives the request back to the guest. The used length says that the whole writable part was
 * written (2.7.8.2), so it is: what the request did not fill is cleared, and of one that failed
 * everything: what was read of a file that changed meanwhile is not the guest's. */
static void finish(struct blk_request *request, uint8_t status)
{
	struct blk *blk = request->blk;
	uint32_t written = 0;

	if (request->status) {
		if (status != VIRTIO_BLK_S_OK)
			rewind_vector(request);
		for (; request->vector_count; advance(request, rest_of_buffer(request)))
			memset(first_free_byte(request), 0, rest_of_buffer(request));
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

/* Notes that the first @count bytes of the piece, and of the request, are read. */
static void advance_piece(struct blk_request *request, size_t count)
{
	advance(request, count);
	request->piece.offset += count;
	request->piece.length -= count;
	request->offset += count;
	request->left -= count;
}

/* Lets the buffers begin where there is something to fill, and end where the piece does. Returns
 * the count of those that are left; grow_back undoes it. */
static unsigned int cut_to_piece(struct blk_request *request)
{
	struct iovec *first = request->vector;
	uint64_t bytes = 0;
	unsigned int count = 0;

	first->iov_base = first_free_byte(request);
	first->iov_len -= request->filled;
	while (bytes < request->piece.length)
		bytes += request->vector[count++].iov_len;
	request->cut = (size_t)(bytes - request->piece.length);
	request->vector[count - 1].iov_len -= request->cut;
	return count;
}

static void grow_back(struct blk_request *request, unsigned int count)
{
	request->vector[count - 1].iov_len += request->cut;
	request->vector->iov_base = (uint8_t *)request->vector->iov_base - request->filled;
	request->vector->iov_len += request->filled;
}

/* Reads what is in the page cache already. 0: all of the piece, or -errno; -EAGAIN: the rest must
 * wait; -ENODATA: the file has ended. */
static int read_cached(struct blk_request *request)
{
	struct content_piece *piece = &request->piece;

	while (piece->length) {
		unsigned int buffers;
		ssize_t count;

		if (*piece->no_nowait)
			return -EAGAIN;
		buffers = cut_to_piece(request);
		count = preadv2(piece->fd, request->vector, (int)buffers, (off_t)piece->offset,
				RWF_NOWAIT);
		grow_back(request, buffers);
		if (count == 0)
			return -ENODATA;
		if (count > 0)
			advance_piece(request, (size_t)count);
		else if (errno == EOPNOTSUPP)
			*piece->no_nowait = true;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static void fill_from_memory(struct blk_request *request)
{
	struct content_piece *piece = &request->piece;

	while (piece->length) {
		size_t count = (size_t)bytes_minimum(rest_of_buffer(request), piece->length);

		if (piece->memory) {
			memcpy(first_free_byte(request), piece->memory, count);
			piece->memory += count;
		} else {
			memset(first_free_byte(request), 0, count);
		}
		advance_piece(request, count);
	}
}

static void on_read(struct loop_operation *operation, int result);

static void wait_for_file(struct blk_request *request)
{
	struct blk *blk = request->blk;
	int error;

	request->waiting_buffers = cut_to_piece(request);
	error = loop_read(blk->description.loop, &request->operation, request->piece.fd,
			  request->vector, request->waiting_buffers, (off_t)request->piece.offset,
			  on_read);
	if (error)
		log_fatal("the event loop has no room for a request of the root device");
	blk->in_flight++;
}

/* Tells the provider that the piece was read. Whether it may be given to the guest. */
static bool end_piece(struct blk_request *request, int result)
{
	const struct content *content = &request->blk->description.content;

	return content->ops->end(content->context, &request->piece, result) == 0;
}

/* Reads piece after piece, until the request is complete or must wait. */
static void serve_pieces(struct blk_request *request)
{
	const struct content *content = &request->blk->description.content;
	struct content_piece *piece = &request->piece;
	bool good = true;

	while (request->left && good) {
		int result = 0;

		if (content->ops->begin(content->context, request->offset, request->left, piece)) {
			good = false;
			break;
		}
		if (piece->fd < 0)
			fill_from_memory(request);
		else
			result = read_cached(request);
		if (result == -EAGAIN) {
			request->blk->counters.waited += !request->has_waited;
			request->has_waited = true;
			wait_for_file(request);
			return;
		}
		good = end_piece(request, result);
	}
	finish(request, good ? VIRTIO_BLK_S_OK : VIRTIO_BLK_S_IOERR);
}

static void on_read(struct loop_operation *operation, int result)
{
	struct blk_request *request = CONTAINER_OF(operation, struct blk_request, operation);
	struct blk *blk = request->blk;

	blk->in_flight--;
	grow_back(request, request->waiting_buffers);
	if (result > 0)
		advance_piece(request, (size_t)result);
	/* Short reads are allowed anywhere; only the end of the file gives 0. */
	if (result == -EINTR || (result > 0 && request->piece.length)) {
		wait_for_file(request);
		return;
	}
	if (end_piece(request, result > 0 ? 0 : result ? result : -ENODATA))
		serve_pieces(request);
	else
		finish(request, VIRTIO_BLK_S_IOERR);
	blk->description.finish_batch(blk->description.context);
}

/* VIRTIO_BLK_T_IN (5.2.6). @bytes: of data that the driver has room for. */
static void serve_read(struct blk_request *request, uint64_t sector, uint32_t bytes)
{
	struct blk *blk = request->blk;

	if (bytes % BLK_SECTOR_BYTES ||
	    !bytes_range_fits(sector, bytes / BLK_SECTOR_BYTES, blk->description.content.sectors)) {
		finish(request, VIRTIO_BLK_S_IOERR);
		return;
	}
	request->offset = sector * BLK_SECTOR_BYTES;
	request->left = bytes;
	request->has_waited = false;
	serve_pieces(request);
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
	if (chain->writable_bytes == 0)
		return -1;
	last = &chain->segments[chain->readable_count + chain->writable_count - 1];
	last->iov_len--;
	request->status = (uint8_t *)last->iov_base + last->iov_len;
	rewind_vector(request);
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

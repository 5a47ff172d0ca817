/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random requests to the root device, against a model of what they must do to guest memory: after
 * each request all of it must be as the model says, so nothing but its writable buffers may have
 * changed, and those hold the image, zeros and the status.
 *
 * Input, again and again until it ends: one byte of circumstances (bit 0: io_uring, bit 1: nothing
 * is cached, bit 2: the file has shrunk, bit 3: the content is of many pieces), one with the count
 * of buffers, for each buffer address (2), length (2) and whether it is writable (1), then 16 bytes
 * that are put where the first one is.
 */
#include <errno.h>
#include <linux/virtio_ring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/limits.h"
#include "vmm/root/blk.h"
#include "vmm/root/image.h"

#define MEMORY_BYTES   0x8000U
#define RING_SIZE      16U
#define AVAILABLE_GPA  0x100U
#define USED_GPA       0x180U
#define DATA_GPA       0x400U
#define BUFFERS_MAX    12U
#define IMAGE_SECTORS  24U
#define SHRUNK_BYTES   5000U
#define HEADER_BYTES   16U
#define IN_IO_URING    1U
#define IS_COLD        2U
#define IS_SHRUNK      4U
#define IS_PIECES      8U
#define REQUIRE(truth) ((truth) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool cold;

/* Stands in front of libc's, as in the unit test. */
ssize_t preadv2(int fd, const struct iovec *vector, int count, off_t offset, int flags)
{
	if (cold && (flags & RWF_NOWAIT)) {
		errno = EAGAIN;
		return -1;
	}
	return syscall(SYS_preadv2, fd, vector, count, (long)offset, 0L, flags);
}

/* What the device is made of with IS_PIECES; a piece ends where the next one begins. */
static const struct {
	uint32_t begin;
	enum { MEMORY, FROM_FILE, ZEROS, NOT_THERE, CHANGES } kind;
} pieces[] = {
	{0, MEMORY},      {700, FROM_FILE},   {3000, ZEROS},     {3100, FROM_FILE},
	{6000, ZEROS},    {6144, MEMORY},     {9000, NOT_THERE}, {9500, FROM_FILE},
	{10000, CHANGES}, {10010, FROM_FILE}, {11000, MEMORY},   {IMAGE_SECTORS * 512U, MEMORY},
};

struct buffer {
	uint32_t address;
	uint32_t length;
	bool writable;
};

struct request {
	uint8_t circumstances;
	unsigned int count;
	struct buffer buffers[BUFFERS_MAX];
};

/* All of one process; made at the first input. */
static struct {
	bool ready;
	_Alignas(64) uint8_t memory[MEMORY_BYTES];
	uint8_t expected[MEMORY_BYTES];
	uint8_t image[IMAGE_SECTORS * BLK_SECTOR_BYTES];
	struct guest_memory guest;
	struct image contents[2][2];  /* by io_uring, by shrunk */
	struct blk *devices[2][2][2]; /* by pieces too */
	uint64_t begun;               /* pieces that did not end yet */
	struct virtqueue queue;
} world;

static void finish_batch(void *context)
{
	(void)context;
	virtqueue_publish(&world.queue);
}

static unsigned int piece_of(uint64_t offset)
{
	unsigned int index = 0;

	while (offset >= pieces[index + 1].begin)
		index++;
	return index;
}

static int begin_piece(void *context, uint64_t offset, uint64_t length, struct content_piece *piece)
{
	struct image *image = context;
	unsigned int index = piece_of(offset);

	REQUIRE(length > 0 && offset + length <= sizeof(world.image));
	if (pieces[index].kind == NOT_THERE)
		return -EIO;
	*piece = (struct content_piece){
		.fd = -1,
		.token = index,
		.length = bytes_minimum(length, pieces[index + 1].begin - offset),
		.no_nowait = &image->no_nowait,
	};
	if (pieces[index].kind == FROM_FILE || pieces[index].kind == CHANGES) {
		piece->fd = image->fd;
		piece->offset = offset;
	} else if (pieces[index].kind == MEMORY) {
		piece->memory = world.image + offset;
	}
	world.begun++;
	return 0;
}

static int end_piece(void *context, const struct content_piece *piece, int result)
{
	(void)context;
	REQUIRE(world.begun-- > 0);
	return result || pieces[piece->token].kind == CHANGES ? -EIO : 0;
}

static void make_device(bool io_uring, bool shrunk, bool of_pieces)
{
	static const struct content_ops ops = {.begin = begin_piece, .end = end_piece};
	struct blk_description description = {.finish_batch = finish_batch};
	int fd = memfd_create("image", MFD_CLOEXEC);

	REQUIRE(fd >= 0);
	REQUIRE(fd_write_full(fd, world.image, shrunk ? SHRUNK_BYTES : sizeof(world.image)) == 0);
	description.content = image_content(&world.contents[io_uring][shrunk], fd, IMAGE_SECTORS);
	if (of_pieces)
		description.content.ops = &ops;
	REQUIRE(loop_create(&description.loop, LIMIT_BLK_INFLIGHT,
			    io_uring ? LOOP_BACKEND_ANY : LOOP_BACKEND_EPOLL) == 0);
	REQUIRE(loop_enable(description.loop) == 0);
	REQUIRE(blk_create(&world.devices[io_uring][shrunk][of_pieces], &description) == 0);
}

static void make_world(void)
{
	struct guest_memory_region region = {.size = MEMORY_BYTES, .host = world.memory};

	REQUIRE(guest_memory_add(&world.guest, &region) == 0);
	for (size_t i = 0; i < sizeof(world.image); i++)
		world.image[i] = (uint8_t)(i * 13 + i / BLK_SECTOR_BYTES + 1);
	memset(world.image + 3000, 0, 100);
	memset(world.image + 6000, 0, 144);
	for (int i = 0; i < 8; i++)
		make_device(i & 1, i & 2, i & 4);
	world.ready = true;
}

/* Takes @length bytes of the input; zeros after its end. */
static void take(const uint8_t **data, size_t *size, void *bytes, size_t length)
{
	size_t taken = bytes_minimum(*size, length);

	memset(bytes, 0, length);
	if (taken)
		memcpy(bytes, *data, taken);
	*data += taken;
	*size -= taken;
}

static void take_request(const uint8_t **data, size_t *size, struct request *request)
{
	uint8_t bytes[HEADER_BYTES];

	take(data, size, bytes, 2);
	request->circumstances = bytes[0];
	request->count = bytes[1] % BUFFERS_MAX + 1;
	for (unsigned int i = 0; i < request->count; i++) {
		struct buffer *buffer = &request->buffers[i];

		take(data, size, bytes, 5);
		/* Few lie outside guest memory. */
		buffer->address = DATA_GPA + (uint32_t)(bytes[0] | bytes[1] << 8) %
						     (MEMORY_BYTES - DATA_GPA + 16);
		buffer->length = (uint32_t)(bytes[2] | bytes[3] << 8) % 4200;
		buffer->writable = bytes[4] & 1;
	}
	take(data, size, bytes, HEADER_BYTES);
	if (request->buffers[0].address <= MEMORY_BYTES - HEADER_BYTES)
		memcpy(world.memory + request->buffers[0].address, bytes, HEADER_BYTES);
}

/* Makes the request available on a fresh ring. */
static void submit(const struct request *request)
{
	struct vring_desc *table = (struct vring_desc *)world.memory;
	struct vring_avail *available = (struct vring_avail *)(world.memory + AVAILABLE_GPA);

	memset(world.memory, 0, DATA_GPA);
	for (unsigned int i = 0; i < request->count; i++) {
		const struct buffer *buffer = &request->buffers[i];
		bool last = i + 1 == request->count;

		table[i] = (struct vring_desc){
			.addr = buffer->address,
			.len = buffer->length,
			.flags = (uint16_t)((buffer->writable ? VRING_DESC_F_WRITE : 0) |
					    (last ? 0 : VRING_DESC_F_NEXT)),
			.next = (uint16_t)(i + 1),
		};
	}
	available->idx = 1;
	world.queue = (struct virtqueue){0};
	REQUIRE(virtqueue_start(&world.queue, &world.guest, RING_SIZE, 0, AVAILABLE_GPA, USED_GPA,
				0) == 0);
}

/* Model: whether the chain keeps the rules (2.7.4.2, 2.7.5). An empty buffer is no buffer. */
static bool chain_valid(const struct request *request)
{
	bool writable_seen = false;

	for (unsigned int i = 0; i < request->count; i++) {
		const struct buffer *buffer = &request->buffers[i];

		if (!buffer->writable && writable_seen)
			return false;
		writable_seen |= buffer->writable && buffer->length;
		if (buffer->length && buffer->address + buffer->length > MEMORY_BYTES)
			return false;
	}
	return true;
}

/* Model: the header, as far as the readable buffers go. Returns its length. */
static size_t read_header(const struct request *request, struct virtio_blk_outhdr *header)
{
	size_t length = 0;

	for (unsigned int i = 0; i < request->count; i++) {
		const struct buffer *buffer = &request->buffers[i];

		for (uint32_t j = 0; !buffer->writable && j < buffer->length; j++) {
			if (length < HEADER_BYTES)
				((uint8_t *)header)[length++] = world.expected[buffer->address + j];
		}
	}
	return length;
}

/* Model: what a request answers. */
struct answer {
	const uint8_t *bytes; /* the data, then zeros */
	size_t length;
	uint8_t status;
};

static bool pieces_readable(uint64_t offset, uint64_t end, bool shrunk)
{
	for (; offset < end; offset++) {
		unsigned int index = piece_of(offset);

		if (pieces[index].kind == NOT_THERE || pieces[index].kind == CHANGES ||
		    (pieces[index].kind == FROM_FILE && shrunk && offset >= SHRUNK_BYTES))
			return false;
	}
	return true;
}

static struct answer answer_read(uint64_t sector, uint32_t bytes, uint8_t circumstances)
{
	size_t end = circumstances & IS_SHRUNK ? SHRUNK_BYTES : sizeof(world.image);
	size_t offset;

	if (bytes % BLK_SECTOR_BYTES || sector > IMAGE_SECTORS ||
	    bytes / BLK_SECTOR_BYTES > IMAGE_SECTORS - sector)
		return (struct answer){.status = VIRTIO_BLK_S_IOERR};
	offset = sector * BLK_SECTOR_BYTES;
	if (circumstances & IS_PIECES
		    ? pieces_readable(offset, offset + bytes, circumstances & IS_SHRUNK)
		    : offset + bytes <= end || bytes == 0)
		return (struct answer){world.image + offset, bytes, VIRTIO_BLK_S_OK};
	return (struct answer){.status = VIRTIO_BLK_S_IOERR};
}

static struct answer answer_to(const struct request *request, uint32_t bytes)
{
	static const uint8_t id[VIRTIO_BLK_ID_BYTES] = "mvagent-root";
	struct virtio_blk_outhdr header = {0};

	if (read_header(request, &header) < HEADER_BYTES)
		return (struct answer){.status = VIRTIO_BLK_S_IOERR};
	switch (header.type) {
	case VIRTIO_BLK_T_IN:
		return answer_read(header.sector, bytes, request->circumstances);
	case VIRTIO_BLK_T_GET_ID:
		return (struct answer){id, sizeof(id), VIRTIO_BLK_S_OK};
	case VIRTIO_BLK_T_FLUSH:
		return (struct answer){.status = VIRTIO_BLK_S_OK};
	case VIRTIO_BLK_T_OUT:
	case VIRTIO_BLK_T_DISCARD:
	case VIRTIO_BLK_T_WRITE_ZEROES:
	case VIRTIO_BLK_T_SECURE_ERASE:
		return (struct answer){.status = VIRTIO_BLK_S_IOERR};
	default:
		return (struct answer){.status = VIRTIO_BLK_S_UNSUPP};
	}
}

/* Model: applies the request to the expected memory; returns the used length. */
static uint32_t expect(const struct request *request)
{
	struct answer answer;
	uint32_t writable = 0;
	uint32_t done = 0;
	uint32_t last = 0;

	for (unsigned int i = 0; i < request->count; i++)
		writable += request->buffers[i].writable ? request->buffers[i].length : 0;
	if (writable == 0)
		return 0;
	answer = answer_to(request, writable - 1);
	for (unsigned int i = 0; i < request->count; i++) {
		const struct buffer *buffer = &request->buffers[i];

		for (uint32_t j = 0; buffer->writable && j < buffer->length; j++) {
			last = buffer->address + j;
			if (done < writable - 1)
				world.expected[last] =
					done < answer.length ? answer.bytes[done] : 0;
			done++;
		}
	}
	world.expected[last] = answer.status;
	return writable;
}

static void run(const struct request *request)
{
	const struct vring_used *used = (const struct vring_used *)(world.memory + USED_GPA);
	bool io_uring = request->circumstances & IN_IO_URING;
	bool shrunk = request->circumstances & IS_SHRUNK;
	struct blk *blk = world.devices[io_uring][shrunk][!!(request->circumstances & IS_PIECES)];
	int result;

	submit(request);
	memcpy(world.expected, world.memory, MEMORY_BYTES);
	cold = request->circumstances & IS_COLD;
	result = blk_process_queue(blk, &world.queue);
	blk_drain(blk);
	REQUIRE(world.begun == 0);
	virtqueue_publish(&world.queue);
	if (chain_valid(request)) {
		REQUIRE(result == 0);
		REQUIRE(used->idx == 1 && used->ring[0].id == 0);
		REQUIRE(used->ring[0].len == expect(request));
	} else {
		REQUIRE(result == -EPROTO && used->idx == 0);
	}
	REQUIRE(memcmp(world.memory + DATA_GPA, world.expected + DATA_GPA,
		       MEMORY_BYTES - DATA_GPA) == 0);
	REQUIRE(memcmp(world.memory, world.expected, USED_GPA) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct request request;

	if (!world.ready)
		make_world();
	for (size_t i = 0; i < MEMORY_BYTES; i++)
		world.memory[i] = (uint8_t)(i * 7 + 3);
	while (size) {
		take_request(&data, &size, &request);
		run(&request);
	}
	return 0;
}

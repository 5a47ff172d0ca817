/* SPDX-License-Identifier: Apache-2.0 */
/* The request code of the root device: real rings, a real image, both back ends of the loop. */
#include "vmm/root/blk.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/loop_probe.h"
#include "tests/unit/ring_driver.h"
#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/limits.h"
#include "vmm/root/image.h"

#define IMAGE_SECTORS 2048U
#define STATUS_UNSET  0xeeU
#define MEMORY_BYTES  (1U << 20)
#define DATA_GPA      0x80000U /* buffers; the ring is below */

static uint8_t *host;
static struct guest_memory memory;

/* What the page cache is to say to RWF_NOWAIT; see preadv2 below. */
static enum { CACHE_REAL, CACHE_COLD, CACHE_PARTIAL, CACHE_UNKNOWN } cache;

/* Stands in front of libc's: the state of the page cache is not ours to choose otherwise. */
ssize_t preadv2(int fd, const struct iovec *vector, int count, off_t offset, int flags)
{
	struct iovec part;

	if (flags & RWF_NOWAIT) {
		switch (cache) {
		case CACHE_REAL:
			break;
		case CACHE_COLD:
			errno = EAGAIN;
			return -1;
		case CACHE_PARTIAL:
			part = vector[0];
			if (part.iov_len <= 100) {
				errno = EAGAIN;
				return -1;
			}
			part.iov_len = 100;
			return pread(fd, part.iov_base, part.iov_len, offset);
		case CACHE_UNKNOWN:
			errno = EOPNOTSUPP;
			return -1;
		}
	}
	return syscall(SYS_preadv2, fd, vector, count, (long)offset, 0L, flags);
}

static int make_memory(void **state)
{
	struct guest_memory_region region = {.gpa = 0, .size = MEMORY_BYTES};

	(void)state;
	host = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	region.host = host;
	return host == MAP_FAILED ? -1 : guest_memory_add(&memory, &region);
}

static int free_memory(void **state)
{
	(void)state;
	return munmap(host, MEMORY_BYTES);
}

static void start_queue(struct virtqueue *queue, struct ring_driver *driver)
{
	ring_driver_init(driver, host, 0x1000, 512, 0, true);
	*queue = (struct virtqueue){.event_idx = true, .indirect = true};
	assert_int_equal(virtqueue_start(queue, &memory, 512, driver->descriptor_gpa,
					 driver->available_gpa, driver->used_gpa, 0),
			 0);
}

struct fixture {
	struct loop *loop;
	struct blk *blk;
	int image;
	struct image content;
	uint8_t *contents;
	struct virtqueue queue;
	struct ring_driver driver;
	unsigned int batches;
	bool resume; /* call process_queue again after a batch, as a stalled ring is */
};

static void finish_batch(void *context)
{
	struct fixture *fixture = context;

	fixture->batches++;
	virtqueue_publish(&fixture->queue);
	if (fixture->resume)
		assert_int_equal(blk_process_queue(fixture->blk, &fixture->queue), 0);
}

static int make_image(uint8_t *contents)
{
	char path[] = "/tmp/mvagent-blk-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	for (size_t i = 0; i < IMAGE_SECTORS * BLK_SECTOR_BYTES; i++)
		contents[i] = (uint8_t)(i / BLK_SECTOR_BYTES * 31 + i * 7 + 1);
	assert_int_equal(fd_write_full(fd, contents, IMAGE_SECTORS * BLK_SECTOR_BYTES), 0);
	return fd;
}

static struct fixture *start(void **state)
{
	struct loop *loop = make_loop(state, LIMIT_BLK_INFLIGHT);
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->loop = loop;
	cache = CACHE_REAL;
	fixture->contents = malloc(IMAGE_SECTORS * BLK_SECTOR_BYTES);
	fixture->image = make_image(fixture->contents);
	assert_int_equal(blk_create(&fixture->blk,
				    &(struct blk_description){
					    .loop = fixture->loop,
					    .content = image_content(&fixture->content,
								     fixture->image, IMAGE_SECTORS),
					    .finish_batch = finish_batch,
					    .context = fixture}),
			 0);
	memset(host + DATA_GPA, 0xdd, MEMORY_BYTES - DATA_GPA);
	start_queue(&fixture->queue, &fixture->driver);
	return fixture;
}

static void stop(struct fixture *fixture)
{
	blk_drain(fixture->blk);
	blk_destroy(fixture->blk);
	loop_destroy(fixture->loop);
	fd_close(&fixture->image);
	free(fixture->contents);
	free(fixture);
}

/* The header of a request at @gpa. */
static void put_header(uint64_t gpa, uint32_t type, uint64_t sector)
{
	const struct virtio_blk_outhdr header = {.type = type, .sector = sector};

	memcpy(host + gpa, &header, sizeof(header));
}

static uint16_t add(struct fixture *fixture, const struct ring_buffer *buffers, unsigned int count)
{
	int head = ring_add(&fixture->driver, buffers, count, 0);

	assert_true(head >= 0);
	return (uint16_t)head;
}

/* Serves all that was added, waiting for what must wait. */
static int serve(struct fixture *fixture)
{
	int result;

	ring_show(&fixture->driver);
	result = blk_process_queue(fixture->blk, &fixture->queue);
	virtqueue_publish(&fixture->queue);
	blk_drain(fixture->blk);
	return result;
}

/* One request of header, @bytes writable bytes at DATA_GPA + 4096 and a status; returns the status.
 */
static uint8_t request(struct fixture *fixture, uint32_t type, uint64_t sector, uint32_t bytes)
{
	const uint64_t status_gpa = DATA_GPA + 16;
	struct ring_buffer buffers[] = {
		{DATA_GPA, 16, false}, {DATA_GPA + 4096, bytes, true}, {status_gpa, 1, true}};
	uint32_t written;
	uint16_t head, used;

	put_header(DATA_GPA, type, sector);
	host[status_gpa] = STATUS_UNSET;
	if (bytes == 0)
		buffers[1] = buffers[2];
	head = add(fixture, buffers, bytes ? 3 : 2);
	assert_int_equal(serve(fixture), 0);
	assert_true(ring_take_used(&fixture->driver, &used, &written));
	assert_int_equal(used, head);
	assert_int_equal(written, bytes + 1);
	assert_false(ring_take_used(&fixture->driver, &used, &written));
	return host[status_gpa];
}

static const uint8_t *sector_at(const struct fixture *fixture, uint64_t sector)
{
	return fixture->contents + sector * BLK_SECTOR_BYTES;
}

static bool all_bytes_are(uint64_t gpa, size_t length, uint8_t value)
{
	for (size_t i = 0; i < length; i++) {
		if (host[gpa + i] != value)
			return false;
	}
	return true;
}

static void reads_return_the_image(void **state)
{
	static const int caches[] = {CACHE_REAL, CACHE_COLD, CACHE_PARTIAL, CACHE_UNKNOWN};
	struct fixture *fixture = start(state);

	for (size_t i = 0; i < ARRAY_SIZE(caches); i++) {
		uint64_t waited = blk_counters(fixture->blk).waited;

		cache = (unsigned int)caches[i];
		memset(host + DATA_GPA, 0xdd, 65536);
		assert_int_equal(request(fixture, VIRTIO_BLK_T_IN, 3, 8192), VIRTIO_BLK_S_OK);
		assert_memory_equal(host + DATA_GPA + 4096, sector_at(fixture, 3), 8192);
		assert_true(all_bytes_are(DATA_GPA + 4096 + 8192, 4096, 0xdd));
		if (cache != CACHE_REAL)
			assert_int_equal(blk_counters(fixture->blk).waited, waited + 1);
	}
	assert_int_equal(blk_counters(fixture->blk).requests, 4);
	assert_int_equal(blk_counters(fixture->blk).refused, 0);
	stop(fixture);
}

/* Segments of odd sizes, the header in pieces, the status at the end of the last data segment:
 * the device must not care (2.7.4.2). */
static void framing_does_not_matter(void **state)
{
	struct fixture *fixture = start(state);

	for (int i = 0; i < 4; i++) {
		const struct ring_buffer buffers[] = {
			{DATA_GPA + 1, 7, false},      {DATA_GPA + 64, 9, false},
			{DATA_GPA + 4096, 1, true},    {DATA_GPA + 4100, 300, true},
			{DATA_GPA + 8192, 1000, true}, {DATA_GPA + 12288, 235, true},
			{DATA_GPA + 16384, 512, true}, {DATA_GPA + 20480, 1, true},
		};
		const uint8_t *expected = sector_at(fixture, 9);
		struct virtio_blk_outhdr header = {.type = VIRTIO_BLK_T_IN, .sector = 9};
		bool joined = i & 1;
		uint32_t written;
		uint16_t used;

		cache = i & 2 ? CACHE_COLD : CACHE_REAL;
		memset(host + DATA_GPA, 0xdd, 65536);
		memcpy(host + DATA_GPA + 1, &header, 7);
		memcpy(host + DATA_GPA + 64, (uint8_t *)&header + 7, 9);
		if (joined) {
			struct ring_buffer last = {DATA_GPA + 16384, 513, true};
			struct ring_buffer changed[7];

			memcpy(changed, buffers, sizeof(changed));
			changed[6] = last;
			add(fixture, changed, 7);
		} else {
			add(fixture, buffers, 8);
		}
		assert_int_equal(serve(fixture), 0);
		assert_true(ring_take_used(&fixture->driver, &used, &written));
		assert_int_equal(written, 2049);
		assert_int_equal(host[joined ? DATA_GPA + 16896 : DATA_GPA + 20480],
				 VIRTIO_BLK_S_OK);
		assert_memory_equal(host + DATA_GPA + 4096, expected, 1);
		assert_memory_equal(host + DATA_GPA + 4100, expected + 1, 300);
		assert_memory_equal(host + DATA_GPA + 8192, expected + 301, 1000);
		assert_memory_equal(host + DATA_GPA + 12288, expected + 1301, 235);
		assert_memory_equal(host + DATA_GPA + 16384, expected + 1536, 512);
		assert_int_equal(host[DATA_GPA + 4097], 0xdd);
		assert_int_equal(host[DATA_GPA + 4400], 0xdd);
	}
	stop(fixture);
}

static void the_range_is_checked(void **state)
{
	struct fixture *fixture = start(state);
	static const struct {
		uint64_t sector;
		uint32_t bytes;
		uint8_t status;
	} cases[] = {
		{IMAGE_SECTORS - 1, 512, VIRTIO_BLK_S_OK},
		{IMAGE_SECTORS - 2, 1024, VIRTIO_BLK_S_OK},
		{IMAGE_SECTORS - 1, 1024, VIRTIO_BLK_S_IOERR},
		{IMAGE_SECTORS, 512, VIRTIO_BLK_S_IOERR},
		{UINT64_MAX, 512, VIRTIO_BLK_S_IOERR},
		{UINT64_MAX, 1024, VIRTIO_BLK_S_IOERR},
		{UINT64_MAX / 512, 512, VIRTIO_BLK_S_IOERR},
		{UINT64_C(1) << 55, 512, VIRTIO_BLK_S_IOERR},
		{0, 511, VIRTIO_BLK_S_IOERR},
		{0, 513, VIRTIO_BLK_S_IOERR},
		{0, 1, VIRTIO_BLK_S_IOERR},
		{0, 0, VIRTIO_BLK_S_OK},
		{IMAGE_SECTORS + 1, 0, VIRTIO_BLK_S_IOERR},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(host + DATA_GPA, 0xdd, 65536);
		assert_int_equal(request(fixture, VIRTIO_BLK_T_IN, cases[i].sector, cases[i].bytes),
				 cases[i].status);
		/* Claimed as written, so cleared. */
		if (cases[i].status == VIRTIO_BLK_S_IOERR)
			assert_true(all_bytes_are(DATA_GPA + 4096, cases[i].bytes, 0));
		assert_true(all_bytes_are(DATA_GPA + 4096 + cases[i].bytes, 2048, 0xdd));
	}
	stop(fixture);
}

static void other_requests_have_their_answers(void **state)
{
	struct fixture *fixture = start(state);
	static const char id[20] = "mvagent-root";

	assert_int_equal(request(fixture, VIRTIO_BLK_T_GET_ID, 0, 20), VIRTIO_BLK_S_OK);
	assert_memory_equal(host + DATA_GPA + 4096, id, 20);
	assert_int_equal(host[DATA_GPA + 4096 + 20], 0xdd);
	assert_int_equal(request(fixture, VIRTIO_BLK_T_GET_ID, 0, 5), VIRTIO_BLK_S_OK);
	assert_memory_equal(host + DATA_GPA + 4096, "mvage", 5);
	memset(host + DATA_GPA + 4096, 0xdd, 64);
	assert_int_equal(request(fixture, VIRTIO_BLK_T_GET_ID, 0, 40), VIRTIO_BLK_S_OK);
	assert_memory_equal(host + DATA_GPA + 4096, id, 20);
	assert_true(all_bytes_are(DATA_GPA + 4096 + 20, 20, 0));
	assert_int_equal(request(fixture, VIRTIO_BLK_T_FLUSH, 0, 0), VIRTIO_BLK_S_OK);
	assert_int_equal(request(fixture, VIRTIO_BLK_T_DISCARD, 0, 0), VIRTIO_BLK_S_IOERR);
	assert_int_equal(request(fixture, VIRTIO_BLK_T_WRITE_ZEROES, 0, 0), VIRTIO_BLK_S_IOERR);
	assert_int_equal(request(fixture, VIRTIO_BLK_T_SECURE_ERASE, 0, 0), VIRTIO_BLK_S_IOERR);
	assert_int_equal(request(fixture, 2, 0, 0), VIRTIO_BLK_S_UNSUPP);
	assert_int_equal(request(fixture, 10, 0, 0), VIRTIO_BLK_S_UNSUPP);
	assert_int_equal(request(fixture, UINT32_MAX, 0, 512), VIRTIO_BLK_S_UNSUPP);
	stop(fixture);
}

static void writes_change_nothing(void **state)
{
	struct fixture *fixture = start(state);
	const struct ring_buffer buffers[] = {
		{DATA_GPA, 16, false}, {DATA_GPA + 4096, 4096, false}, {DATA_GPA + 16, 1, true}};
	uint8_t *now = malloc(IMAGE_SECTORS * BLK_SECTOR_BYTES);
	uint32_t written;
	uint16_t used;

	put_header(DATA_GPA, VIRTIO_BLK_T_OUT, 0);
	add(fixture, buffers, 3);
	assert_int_equal(serve(fixture), 0);
	assert_true(ring_take_used(&fixture->driver, &used, &written));
	assert_int_equal(written, 1);
	assert_int_equal(host[DATA_GPA + 16], VIRTIO_BLK_S_IOERR);
	assert_int_equal(fd_pread_full(fixture->image, now, IMAGE_SECTORS * BLK_SECTOR_BYTES, 0),
			 0);
	assert_memory_equal(now, fixture->contents, IMAGE_SECTORS * BLK_SECTOR_BYTES);
	free(now);
	stop(fixture);
}

static void misshapen_requests_are_survived(void **state)
{
	struct fixture *fixture = start(state);
	const struct ring_buffer no_status[] = {{DATA_GPA, 16, false}};
	const struct ring_buffer short_header[] = {{DATA_GPA, 15, false},
						   {DATA_GPA + 4096, 513, true}};
	const struct ring_buffer no_header[] = {{DATA_GPA + 4096, 513, true}};
	uint32_t written;
	uint16_t used;

	put_header(DATA_GPA, VIRTIO_BLK_T_IN, 0);
	add(fixture, no_status, 1);
	assert_int_equal(serve(fixture), 0);
	assert_true(ring_take_used(&fixture->driver, &used, &written));
	assert_int_equal(written, 0);
	add(fixture, short_header, 2);
	assert_int_equal(serve(fixture), 0);
	assert_true(ring_take_used(&fixture->driver, &used, &written));
	assert_int_equal(written, 513);
	assert_int_equal(host[DATA_GPA + 4096 + 512], VIRTIO_BLK_S_IOERR);
	assert_true(all_bytes_are(DATA_GPA + 4096, 512, 0));
	host[DATA_GPA + 4096 + 512] = STATUS_UNSET;
	add(fixture, no_header, 1);
	assert_int_equal(serve(fixture), 0);
	assert_true(ring_take_used(&fixture->driver, &used, &written));
	assert_int_equal(host[DATA_GPA + 4096 + 512], VIRTIO_BLK_S_IOERR);
	assert_int_equal(blk_counters(fixture->blk).refused, 3);
	/* And it goes on. */
	assert_int_equal(request(fixture, VIRTIO_BLK_T_IN, 1, 512), VIRTIO_BLK_S_OK);
	stop(fixture);
}

static void an_image_that_shrinks_gives_errors_not_garbage(void **state)
{
	struct fixture *fixture = start(state);

	assert_int_equal(ftruncate(fixture->image, 10 * BLK_SECTOR_BYTES), 0);
	for (int i = 0; i < 2; i++) {
		cache = i ? CACHE_COLD : CACHE_REAL;
		memset(host + DATA_GPA, 0xdd, 65536);
		assert_int_equal(request(fixture, VIRTIO_BLK_T_IN, 8, 2048), VIRTIO_BLK_S_IOERR);
		assert_true(all_bytes_are(DATA_GPA + 4096, 2048, 0));
		assert_int_equal(request(fixture, VIRTIO_BLK_T_IN, 20, 512), VIRTIO_BLK_S_IOERR);
		assert_int_equal(request(fixture, VIRTIO_BLK_T_IN, 8, 1024), VIRTIO_BLK_S_OK);
	}
	stop(fixture);
}

static void an_image_that_cannot_be_read_gives_errors(void **state)
{
	struct fixture *fixture = start(state);

	close(fixture->image);
	for (int i = 0; i < 2; i++) {
		cache = i ? CACHE_COLD : CACHE_REAL;
		assert_int_equal(request(fixture, VIRTIO_BLK_T_IN, 8, 512), VIRTIO_BLK_S_IOERR);
	}
	fixture->image = -1;
	stop(fixture);
}

/* More requests than may wait at once: the rest stays in the ring until there is room. */
static void the_pool_is_bounded_and_refills(void **state)
{
	struct fixture *fixture = start(state);
	const unsigned int count = LIMIT_BLK_INFLIGHT + 40;
	uint8_t seen[LIMIT_BLK_INFLIGHT + 40] = {0};
	uint16_t heads[LIMIT_BLK_INFLIGHT + 40];
	uint32_t written;
	uint16_t used = 0;

	cache = CACHE_COLD;
	for (unsigned int i = 0; i < count; i++) {
		uint64_t gpa = DATA_GPA + i * 2048ULL;
		const struct ring_buffer buffers[] = {{gpa, 16, false}, {gpa + 1024, 513, true}};

		put_header(gpa, VIRTIO_BLK_T_IN, i * 3);
		heads[i] = add(fixture, buffers, 2);
	}
	ring_show(&fixture->driver);
	assert_int_equal(blk_process_queue(fixture->blk, &fixture->queue), 0);
	assert_int_equal(blk_counters(fixture->blk).requests, LIMIT_BLK_INFLIGHT);
	assert_int_equal(fixture->queue.next_available, LIMIT_BLK_INFLIGHT);
	assert_false(virtqueue_publish(&fixture->queue)); /* none is finished */
	assert_int_equal(blk_process_queue(fixture->blk, &fixture->queue), 0);
	assert_int_equal(fixture->queue.next_available, LIMIT_BLK_INFLIGHT);

	fixture->resume = true;
	blk_drain(fixture->blk);
	assert_int_equal(fixture->queue.next_available, count);
	assert_int_equal(fixture->batches, count);
	for (unsigned int i = 0; i < count; i++) {
		unsigned int which = 0;

		assert_true(ring_take_used(&fixture->driver, &used, &written));
		assert_int_equal(written, 513);
		while (which < count - 1 && heads[which] != used)
			which++;
		assert_int_equal(seen[which]++, 0);
		assert_memory_equal(host + DATA_GPA + which * 2048 + 1024,
				    sector_at(fixture, which * 3), 512);
		assert_int_equal(host[DATA_GPA + which * 2048 + 1024 + 512], VIRTIO_BLK_S_OK);
	}
	assert_false(ring_take_used(&fixture->driver, &used, &written));
	stop(fixture);
}

/* A request that waits does not hold up one that need not. */
static void requests_finish_out_of_order(void **state)
{
	struct fixture *fixture = start(state);
	const struct ring_buffer slow[] = {{DATA_GPA, 16, false}, {DATA_GPA + 4096, 513, true}};
	const struct ring_buffer fast[] = {{DATA_GPA + 64, 16, false},
					   {DATA_GPA + 8192, 513, true}};
	uint16_t slow_head, fast_head, used;
	uint32_t written;

	put_header(DATA_GPA, VIRTIO_BLK_T_IN, 5);
	put_header(DATA_GPA + 64, VIRTIO_BLK_T_IN, 6);
	cache = CACHE_COLD;
	slow_head = add(fixture, slow, 2);
	ring_show(&fixture->driver);
	assert_int_equal(blk_process_queue(fixture->blk, &fixture->queue), 0);
	cache = CACHE_REAL;
	fast_head = add(fixture, fast, 2);
	ring_show(&fixture->driver);
	assert_int_equal(blk_process_queue(fixture->blk, &fixture->queue), 0);
	virtqueue_publish(&fixture->queue);
	assert_true(ring_take_used(&fixture->driver, &used, &written));
	assert_int_equal(used, fast_head);
	assert_memory_equal(host + DATA_GPA + 8192, sector_at(fixture, 6), 512);
	assert_false(ring_take_used(&fixture->driver, &used, &written));
	blk_drain(fixture->blk);
	assert_true(ring_take_used(&fixture->driver, &used, &written));
	assert_int_equal(used, slow_head);
	assert_memory_equal(host + DATA_GPA + 4096, sector_at(fixture, 5), 512);
	stop(fixture);
}

static void a_broken_ring_is_told(void **state)
{
	struct fixture *fixture = start(state);
	const struct ring_buffer outside[] = {{DATA_GPA, 16, false}, {MEMORY_BYTES, 513, true}};

	put_header(DATA_GPA, VIRTIO_BLK_T_IN, 0);
	add(fixture, outside, 2);
	assert_int_equal(serve(fixture), -EPROTO);
	start_queue(&fixture->queue, &fixture->driver);
	assert_int_equal(request(fixture, VIRTIO_BLK_T_IN, 1, 512), VIRTIO_BLK_S_OK);
	stop(fixture);
}

/* The used ring is gone when a request ends: it ends all the same, and the ring is broken. */
static void a_vanished_used_ring_is_survived(void **state)
{
	struct fixture *fixture = start(state);
	const struct ring_buffer buffers[] = {{DATA_GPA, 16, false}, {DATA_GPA + 4096, 513, true}};

	put_header(DATA_GPA, VIRTIO_BLK_T_IN, 1);
	cache = CACHE_COLD;
	add(fixture, buffers, 2);
	ring_show(&fixture->driver);
	assert_int_equal(blk_process_queue(fixture->blk, &fixture->queue), 0);
	fixture->queue.used_gpa = MEMORY_BYTES;
	blk_drain(fixture->blk);
	assert_int_equal(host[DATA_GPA + 4096 + 512], VIRTIO_BLK_S_OK);
	assert_int_equal(blk_process_queue(fixture->blk, &fixture->queue), -EPROTO);
	start_queue(&fixture->queue, &fixture->driver);
	assert_int_equal(request(fixture, VIRTIO_BLK_T_IN, 1, 512), VIRTIO_BLK_S_OK);
	stop(fixture);
}

static void the_configuration_describes_the_image(void **state)
{
	struct fixture *fixture = start(state);
	struct virtio_blk_config config = blk_config(fixture->blk);

	assert_int_equal(config.capacity, IMAGE_SECTORS);
	assert_int_equal(config.seg_max, 126);
	assert_int_equal(config.blk_size, 512);
	assert_int_equal(config.blk_size << config.physical_block_exp, 4096);
	assert_int_equal(config.blk_size * config.min_io_size, 4096);
	assert_int_equal(config.blk_size * config.opt_io_size, 512 << 10);
	assert_int_equal(config.num_queues, 1);
	assert_true(blk_features() & 1U << VIRTIO_BLK_F_TOPOLOGY);
	assert_true(blk_features() & 1U << VIRTIO_BLK_F_RO);
	assert_false(blk_features() & 1U << VIRTIO_BLK_F_DISCARD);
	stop(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(reads_return_the_image),
		ON_BOTH(framing_does_not_matter),
		ON_BOTH(the_range_is_checked),
		ON_BOTH(other_requests_have_their_answers),
		ON_BOTH(writes_change_nothing),
		ON_BOTH(misshapen_requests_are_survived),
		ON_BOTH(an_image_that_shrinks_gives_errors_not_garbage),
		ON_BOTH(an_image_that_cannot_be_read_gives_errors),
		ON_BOTH(the_pool_is_bounded_and_refills),
		ON_BOTH(requests_finish_out_of_order),
		ON_BOTH(a_broken_ring_is_told),
		ON_BOTH(a_vanished_used_ring_is_survived),
		ON_BOTH(the_configuration_describes_the_image),
	};

	return cmocka_run_group_tests_name("blk", tests, make_memory, free_memory);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/queue.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/unit/queue_fixture.h"

/* What a chain must come out as, by a second reading of 2.7.5. */
struct expectation {
	unsigned int readable, writable;
	uint64_t bytes;
	unsigned int descriptors;
	struct ring_buffer buffers[LIMIT_CHAIN_SEGMENTS];
};

static bool expect_buffer(struct expectation *expected, const struct ring_descriptor *descriptor)
{
	bool writable = descriptor->flags & RING_WRITE;

	expected->bytes += descriptor->length;
	if (++expected->descriptors > LIMIT_CHAIN_SEGMENTS || expected->bytes >= 1ULL << 32 ||
	    (expected->writable && !writable))
		return false;
	if (!descriptor->length)
		return true;
	if (descriptor->address >= MEMORY_BYTES ||
	    descriptor->length > MEMORY_BYTES - descriptor->address)
		return false;
	expected->buffers[expected->readable + expected->writable] =
		(struct ring_buffer){descriptor->address, descriptor->length, writable};
	if (writable)
		expected->writable++;
	else
		expected->readable++;
	return true;
}

static bool expect_chain(const struct ring_descriptor *table, uint32_t size, uint32_t head,
			 bool nested, struct expectation *expected)
{
	for (uint32_t visited = 0; visited < size && head < size; visited++) {
		const struct ring_descriptor *descriptor = &table[head];

		if (descriptor->flags & RING_INDIRECT) {
			if (nested || descriptor->flags & RING_NEXT || !descriptor->length ||
			    descriptor->length % 16 || descriptor->address > MEMORY_BYTES ||
			    descriptor->length > MEMORY_BYTES - descriptor->address)
				return false;
			return expect_chain((const void *)(host + descriptor->address),
					    descriptor->length / 16, 0, true, expected);
		}
		if (!expect_buffer(expected, descriptor))
			return false;
		if (!(descriptor->flags & RING_NEXT))
			return true;
		head = descriptor->next;
	}
	return false;
}

/* Pops what starts at @head and compares. */
static void check_head(struct virtqueue *queue, struct ring_driver *driver, uint16_t head)
{
	static struct expectation expected;
	bool fine;
	int result;

	expected.readable = expected.writable = expected.descriptors = 0;
	expected.bytes = 0;
	fine = expect_chain(ring_descriptors(driver), driver->size, head, false, &expected);
	*ring_word(driver, driver->available_gpa, 2U + queue->next_available % driver->size) = head;
	*ring_word(driver, driver->available_gpa, 1) = (uint16_t)(queue->next_available + 1);
	result = virtqueue_pop(queue, &chain);
	assert_int_equal(result, fine ? 1 : -EPROTO);
	queue->next_available = queue->next_used; /* again from the same place */
	if (!fine)
		return;
	assert_int_equal(chain.head, head);
	assert_int_equal(chain.readable_count, expected.readable);
	assert_int_equal(chain.writable_count, expected.writable);
	assert_true((uint64_t)chain.readable_bytes + chain.writable_bytes == expected.bytes);
	for (unsigned int i = 0; i < expected.readable + expected.writable; i++) {
		assert_ptr_equal(chain.segments[i].iov_base, host + expected.buffers[i].gpa);
		assert_int_equal(chain.segments[i].iov_len, expected.buffers[i].length);
	}
}

/* Every table of one and of two descriptors over a small alphabet that has all the flags, indices
 * in and out of range, empty, odd and endless buffers, and addresses of data, of the table itself
 * and outside. */
static void all_tables_of_two_descriptors(void **state)
{
	static const uint32_t lengths[] = {0, 16, 20, 32, UINT32_MAX};
	static const uint64_t addresses[] = {DATA_GPA, 0x1000, MEMORY_BYTES - 16, UINT64_MAX - 8};
	const unsigned int variants = 8 * 3 * 5 * 4;
	struct ring_driver driver;
	struct virtqueue queue;

	(void)state;
	for (unsigned int i = 0; i < variants * variants; i++) {
		for (unsigned int j = 0; j < 2; j++) {
			unsigned int variant = j ? i / variants : i % variants;

			if (i == 0 && j == 0)
				start_queue(&queue, &driver, 2, 0, false);
			ring_descriptors(&driver)[j] = (struct ring_descriptor){
				.flags = variant % 8,
				.next = (uint16_t)(variant / 8 % 3),
				.length = lengths[variant / 24 % 5],
				.address = addresses[variant / 120],
			};
		}
		for (uint16_t head = 0; head < 3; head++)
			check_head(&queue, &driver, head);
	}
	start_queue(&queue, &driver, 1, 65535, false);
	for (unsigned int i = 0; i < variants; i++) {
		ring_descriptors(&driver)[0] = (struct ring_descriptor){
			.flags = i % 8,
			.next = (uint16_t)(i / 8 % 3),
			.length = lengths[i / 24 % 5],
			.address = addresses[i / 120],
		};
		check_head(&queue, &driver, 0);
		check_head(&queue, &driver, 1);
	}
}

/* Mostly valid tables of up to eight descriptors, with tables behind them. */
static void many_tables_of_eight_descriptors(void **state)
{
	struct ring_driver driver;
	struct virtqueue queue;

	(void)state;
	for (unsigned int round = 0; round < 200000; round++) {
		uint16_t size = (uint16_t)(1U << random_below(4));
		struct ring_descriptor *table;

		start_queue(&queue, &driver, size, (uint16_t)(65530 + random_below(10)), false);
		for (unsigned int i = 0; i < size + 4U; i++) {
			bool in_ring = i < size;

			table = in_ring ? ring_descriptors(&driver) + i
					: (struct ring_descriptor *)(host + 0x8000) + i - size;
			*table = (struct ring_descriptor){
				.address = random_below(20) ? DATA_GPA + random_below(4096)
							    : (uint64_t)random_below(2) << 63,
				.length = random_below(10) ? random_below(5000) : 0,
				.flags = (uint16_t)((random_below(3) ? RING_NEXT : 0) |
						    (random_below(2) ? RING_WRITE : 0)),
				.next = (uint16_t)(random_below(15) ? (i + 1) % 8
								    : random_below(10)),
			};
			if (random_below(in_ring ? 5 : 30) == 0) {
				table->flags = RING_INDIRECT | (random_below(9) ? 0 : RING_NEXT);
				table->address = 0x8000;
				table->length = 16 * (1 + random_below(4));
			}
		}
		check_head(&queue, &driver, (uint16_t)random_below(size + 1U));
	}
}

static void indirect_needs_the_feature(void **state)
{
	const struct ring_buffer buffer = {DATA_GPA, 100, true};
	struct ring_driver driver;
	struct virtqueue queue;

	(void)state;
	start_queue(&queue, &driver, 4, 0, false);
	ring_add(&driver, &buffer, 1, 0x8000);
	ring_show(&driver);
	queue.indirect = false;
	assert_int_equal(virtqueue_pop(&queue, &chain), -EPROTO);
	queue.indirect = true;
	assert_int_equal(virtqueue_pop(&queue, &chain), 1);
	assert_int_equal(chain.writable_bytes, 100);
}

/* A chain of @count descriptors of @length bytes, direct or through a table. */
static int pop_long_chain(uint32_t count, bool indirect)
{
	static struct ring_buffer buffers[1024];
	struct ring_driver driver;
	struct virtqueue queue;

	for (uint32_t i = 0; i < count; i++)
		buffers[i] = (struct ring_buffer){DATA_GPA + i, 64, i >= count / 2};
	start_queue(&queue, &driver, 1024, 0, false);
	assert_int_equal(ring_add(&driver, buffers, count, indirect ? 0x10000 : 0), 0);
	ring_show(&driver);
	return virtqueue_pop(&queue, &chain);
}

static void a_chain_has_a_largest_length(void **state)
{
	(void)state;
	for (int indirect = 0; indirect < 2; indirect++) {
		assert_int_equal(pop_long_chain(LIMIT_CHAIN_SEGMENTS, indirect), 1);
		assert_int_equal(chain.readable_count + chain.writable_count, LIMIT_CHAIN_SEGMENTS);
		assert_int_equal(chain.readable_bytes + chain.writable_bytes,
				 64 * LIMIT_CHAIN_SEGMENTS);
		assert_int_equal(pop_long_chain(LIMIT_CHAIN_SEGMENTS + 1, indirect), -EPROTO);
		assert_int_equal(pop_long_chain(1000, indirect), -EPROTO);
	}
}

static void a_loop_ends(void **state)
{
	struct ring_descriptor *table;
	struct ring_driver driver;
	struct virtqueue queue;

	(void)state;
	start_queue(&queue, &driver, 256, 0, false);
	table = ring_descriptors(&driver);
	for (uint16_t i = 0; i < 256; i++) /* a circle of empty buffers */
		table[i] = (struct ring_descriptor){
			.address = DATA_GPA, .flags = RING_NEXT, .next = (uint16_t)(i + 1) % 256};
	show_one(&driver, 3);
	assert_int_equal(virtqueue_pop(&queue, &chain), -EPROTO);
	memcpy(host + 0x8000, table, 256 * sizeof(*table));
	table[3] = (struct ring_descriptor){0x8000, 256 * sizeof(*table), RING_INDIRECT, 0};
	assert_int_equal(virtqueue_pop(&queue, &chain), -EPROTO);
	((struct ring_descriptor *)(host + 0x8000))[9].flags = 0; /* the circle is open */
	assert_int_equal(virtqueue_pop(&queue, &chain), 1);
	assert_int_equal(chain.readable_count, 0);
}

/* Sums of 4 GiB, with a region that is large enough to hold them (and is never touched). */
static void a_chain_is_smaller_than_4_gib(void **state)
{
	const uint64_t size = 6ULL << 30;
	struct guest_memory_region region = {.gpa = 1ULL << 32, .size = size};
	struct guest_memory large = memory;
	struct ring_driver driver;
	struct virtqueue queue;

	(void)state;
	region.host =
		mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(region.host, MAP_FAILED);
	assert_int_equal(guest_memory_add(&large, &region), 0);
	for (uint32_t missing = 0; missing < 2; missing++) {
		const struct ring_buffer buffers[] = {
			{region.gpa, 1U << 31, false},
			{region.gpa, (1U << 31) - missing, true},
		};

		start_queue(&queue, &driver, 4, 0, false);
		queue.memory = &large;
		ring_add(&driver, buffers, 2, 0);
		ring_show(&driver);
		assert_int_equal(virtqueue_pop(&queue, &chain), missing ? 1 : -EPROTO);
	}
	assert_int_equal(chain.readable_bytes, 1U << 31);
	assert_int_equal(chain.writable_bytes, (1U << 31) - 1);
	munmap(region.host, size);
}

/* Another vCPU rewrites the descriptor while it is taken: what comes out is inside memory. */
struct rewriter {
	volatile struct ring_descriptor *descriptor;
	bool stop;
};

static void *rewrite(void *argument)
{
	struct rewriter *rewriter = argument;
	uint64_t round = 0;

	while (!__atomic_load_n(&rewriter->stop, __ATOMIC_RELAXED)) {
		bool bad = ++round % 2;

		rewriter->descriptor->length = bad ? UINT32_MAX : 16;
		rewriter->descriptor->address = round % 3 ? DATA_GPA : UINT64_MAX - 4;
		rewriter->descriptor->flags = (uint16_t)(round % 8);
	}
	return NULL;
}

static void a_descriptor_is_fetched_once(void **state)
{
	struct ring_driver driver;
	struct rewriter rewriter;
	struct virtqueue queue;
	unsigned int taken = 0;
	pthread_t thread;

	(void)state;
	start_queue(&queue, &driver, 1, 0, false);
	rewriter = (struct rewriter){.descriptor = ring_descriptors(&driver)};
	show_one(&driver, 0);
	assert_int_equal(pthread_create(&thread, NULL, rewrite, &rewriter), 0);
	for (unsigned int i = 0; i < 2000000 && taken < 1000; i++) {
		if (virtqueue_pop(&queue, &chain) != 1) {
			/* On a busy machine the other thread may be stopped in a bad moment. */
			sched_yield();
			continue;
		}
		queue.next_available = 0;
		taken++;
		for (unsigned int j = 0;
		     j < (unsigned int)chain.readable_count + chain.writable_count; j++) {
			assert_true((uint8_t *)chain.segments[j].iov_base >= host);
			assert_true(chain.segments[j].iov_len <= MEMORY_BYTES);
			assert_true((uint8_t *)chain.segments[j].iov_base +
					    chain.segments[j].iov_len <=
				    host + MEMORY_BYTES);
		}
	}
	__atomic_store_n(&rewriter.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(taken > 0);
}

/* Three readable and three writable segments; every offset and length of each part. */
static void bytes_are_found_across_segments(void **state)
{
	const struct ring_buffer buffers[] = {
		{DATA_GPA, 3, false},      {DATA_GPA + 100, 1, false}, {DATA_GPA + 200, 4, false},
		{DATA_GPA + 300, 2, true}, {DATA_GPA + 400, 5, true},  {DATA_GPA + 500, 1, true}};
	struct ring_driver driver;
	struct virtqueue queue;
	struct iovec vector[4];
	uint8_t buffer[16];

	(void)state;
	start_queue(&queue, &driver, 8, 0, false);
	ring_add(&driver, buffers, 6, 0);
	ring_show(&driver);
	assert_int_equal(virtqueue_pop(&queue, &chain), 1);
	memcpy(host + DATA_GPA, "abc", 3);
	memcpy(host + DATA_GPA + 100, "d", 1);
	memcpy(host + DATA_GPA + 200, "efgh", 4);
	for (size_t offset = 0; offset <= 10; offset++) {
		for (size_t length = 0; length <= 12; length++) {
			size_t left = offset < 8 ? 8 - offset : 0;
			size_t count = length < left ? length : left;
			unsigned int pieces;
			size_t sum = 0;

			assert_int_equal(descriptor_chain_read(&chain, offset, buffer, length),
					 count);
			assert_memory_equal(buffer, &"abcdefgh"[offset < 8 ? offset : 8], count);
			pieces = descriptor_chain_readable_iovec(&chain, offset, length, vector, 4);
			assert_int_equal(pieces > 0, length > 0 && length <= left);
			for (unsigned int i = 0; i < pieces; i++)
				sum += vector[i].iov_len;
			assert_int_equal(sum, pieces ? length : 0);
			assert_true(!pieces || *(char *)vector[0].iov_base == "abcdefgh"[offset]);

			memset(host + DATA_GPA + 300, '.', 300);
			assert_int_equal(
				descriptor_chain_write(&chain, offset, "0123456789ab", length),
				count);
			memset(buffer, '.', sizeof(buffer));
			memcpy(buffer + offset, "0123456789ab", count);
			assert_memory_equal(host + DATA_GPA + 300, buffer, 2);
			assert_memory_equal(host + DATA_GPA + 400, buffer + 2, 5);
			assert_memory_equal(host + DATA_GPA + 500, buffer + 7, 1);
			assert_int_equal(host[DATA_GPA + 302], '.');
			assert_int_equal(host[DATA_GPA + 405], '.');
			assert_int_equal(host[DATA_GPA + 501], '.');
		}
	}
	assert_int_equal(descriptor_chain_writable_iovec(&chain, 1, 7, vector, 3), 3);
	assert_int_equal(descriptor_chain_writable_iovec(&chain, 1, 7, vector, 2), 0);
	assert_int_equal(descriptor_chain_writable_iovec(&chain, 2, 5, vector, 1), 1);
	assert_ptr_equal(vector[0].iov_base, host + DATA_GPA + 400);
	assert_int_equal(descriptor_chain_read(&chain, SIZE_MAX, buffer, SIZE_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_tables_of_two_descriptors),
		cmocka_unit_test(many_tables_of_eight_descriptors),
		cmocka_unit_test(indirect_needs_the_feature),
		cmocka_unit_test(a_chain_has_a_largest_length),
		cmocka_unit_test(a_loop_ends),
		cmocka_unit_test(a_chain_is_smaller_than_4_gib),
		cmocka_unit_test(a_descriptor_is_fetched_once),
		cmocka_unit_test(bytes_are_found_across_segments),
	};

	return cmocka_run_group_tests(tests, make_memory, free_memory);
}

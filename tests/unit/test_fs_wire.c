/* SPDX-License-Identifier: Apache-2.0 */
/* FUSE messages in descriptor chains: bounds. */
#include "vmm/fs/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint8_t arguments[WIRE_ARGUMENTS_MAX];
static uint8_t readable[WIRE_ARGUMENTS_MAX + 4096];
static uint8_t writable[4096];

/* A chain over the first bytes of the two buffers, in segments of @step. */
static struct descriptor_chain make_chain(size_t readable_size, size_t writable_size, size_t step)
{
	struct descriptor_chain chain = {
		.readable_bytes = (uint32_t)readable_size,
		.writable_bytes = (uint32_t)writable_size,
	};
	uint16_t count = 0;

	for (size_t at = 0; at < readable_size; at += step, count++)
		chain.segments[count] = (struct iovec){
			readable + at, readable_size - at < step ? readable_size - at : step};
	chain.readable_count = count;
	for (size_t at = 0; at < writable_size; at += step, count++)
		chain.segments[count] = (struct iovec){
			writable + at, writable_size - at < step ? writable_size - at : step};
	chain.writable_count = (uint16_t)(count - chain.readable_count);
	return chain;
}

static void put_header(uint32_t length, uint32_t opcode)
{
	struct fuse_in_header header = {.len = length, .opcode = opcode, .unique = 77, .nodeid = 5};

	memcpy(readable, &header, sizeof(header));
}

static void test_decode(void **state)
{
	struct wire_request request;
	struct descriptor_chain chain;

	(void)state;
	for (size_t step = 1; step < 64; step += 7) {
		put_header(43, FUSE_LOOKUP);
		memcpy(readable + 40, "ab", 3);
		chain = make_chain(43, 16 + 100, step);
		assert_int_equal(wire_decode(&request, &chain, arguments), 0);
		assert_int_equal(request.header.nodeid, 5);
		assert_int_equal(request.arguments_size, 3);
		assert_string_equal((const char *)request.arguments, "ab");
		assert_int_equal(request.data_size, 0);
		assert_int_equal(request.reply_capacity, 100);
		assert_true(request.can_reply);
	}
}

static void test_decode_refuses_wrong_length(void **state)
{
	static const uint32_t lengths[] = {0, 1, 39, 42, 44, 0x7fffffff, 0xffffffff};
	struct wire_request request;
	struct descriptor_chain chain = make_chain(43, 16, 4096);

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		put_header(lengths[i], FUSE_LOOKUP);
		assert_int_equal(wire_decode(&request, &chain, arguments), -EINVAL);
		assert_int_equal(request.header.unique, 77);
		assert_int_equal(wire_finish(&request, -EINVAL), 16);
	}
}

static void test_decode_refuses_short_chains(void **state)
{
	struct wire_request request;

	(void)state;
	for (size_t size = 0; size < 40; size++) {
		struct descriptor_chain chain;

		put_header((uint32_t)size, FUSE_GETATTR);
		chain = make_chain(size, 16, 4096);
		assert_int_equal(wire_decode(&request, &chain, arguments), -EINVAL);
		assert_int_equal(request.header.unique, 0);
		assert_int_equal(request.header.opcode, 0);
	}
}

static void test_decode_bounds_arguments(void **state)
{
	struct wire_request request;
	struct descriptor_chain chain = make_chain(40 + WIRE_ARGUMENTS_MAX, 16, 65536);

	(void)state;
	put_header(40 + WIRE_ARGUMENTS_MAX, FUSE_SETXATTR);
	assert_int_equal(wire_decode(&request, &chain, arguments), 0);
	chain = make_chain(40 + WIRE_ARGUMENTS_MAX + 1, 16, 65536);
	put_header(40 + WIRE_ARGUMENTS_MAX + 1, FUSE_SETXATTR);
	assert_int_equal(wire_decode(&request, &chain, arguments), -EINVAL);
	/* The data of a write is not copied, so it may be longer. */
	put_header(40 + WIRE_ARGUMENTS_MAX + 1, FUSE_WRITE);
	assert_int_equal(wire_decode(&request, &chain, arguments), 0);
	assert_int_equal(request.arguments_size, sizeof(struct fuse_write_in));
	assert_int_equal(request.data_size, WIRE_ARGUMENTS_MAX + 1 - sizeof(struct fuse_write_in));
}

static void test_reader(void **state)
{
	struct wire_reader reader = {.at = (const uint8_t *)"abcd\0ef\0gh", .left = 10};
	const char *string;
	uint8_t two[2];

	(void)state;
	assert_int_equal(wire_take(&reader, two, 2), 0);
	assert_memory_equal(two, "ab", 2);
	assert_int_equal(wire_take_string(&reader, &string), 0);
	assert_string_equal(string, "cd");
	assert_int_equal(wire_take_string(&reader, &string), 0);
	assert_string_equal(string, "ef");
	assert_int_equal(wire_take_string(&reader, &string), -EINVAL);
	assert_false(wire_at_end(&reader));
	assert_int_equal(wire_take(&reader, two, 3), -EINVAL);
	assert_int_equal(wire_take(&reader, two, 2), 0);
	assert_true(wire_at_end(&reader));
	assert_int_equal(wire_take_string(&reader, &string), -EINVAL);
	assert_int_equal(wire_take(&reader, two, 1), -EINVAL);
}

static void test_put_stays_inside(void **state)
{
	struct wire_request request;
	struct descriptor_chain chain = make_chain(40, 16 + 8, 5);

	(void)state;
	put_header(40, FUSE_STATFS);
	assert_int_equal(wire_decode(&request, &chain, arguments), 0);
	memset(writable, 0xee, sizeof(writable));
	assert_int_equal(wire_put(&request, 0, "123456789", 9), -EINVAL);
	assert_int_equal(wire_put(&request, 9, "", 0), -EINVAL);
	assert_int_equal(wire_put(&request, SIZE_MAX, "12", 2), -EINVAL);
	assert_int_equal(wire_put(&request, 1, "12345678", 8), -EINVAL);
	for (size_t i = 0; i < sizeof(writable); i++)
		assert_int_equal(writable[i], 0xee);
	assert_int_equal(wire_put(&request, 4, "wxyz", 4), 0);
	assert_int_equal(wire_put(&request, 0, "abcd", 4), 0);
	assert_int_equal(wire_finish(&request, 8), 24);
	assert_memory_equal(writable + 16, "abcdwxyz", 8);
	assert_int_equal(writable[24], 0xee);
}

static void test_finish_needs_room(void **state)
{
	struct wire_request request;

	(void)state;
	for (size_t size = 0; size < 16; size++) {
		struct descriptor_chain chain = make_chain(40, size, 4096);

		put_header(40, FUSE_STATFS);
		memset(writable, 0xee, sizeof(writable));
		assert_int_equal(wire_decode(&request, &chain, arguments), 0);
		assert_false(request.can_reply);
		assert_int_equal(wire_finish(&request, -EIO), 0);
		assert_int_equal(writable[0], 0xee);
	}
}

static void test_iovecs(void **state)
{
	struct wire_request request;
	struct iovec vector[64];
	struct descriptor_chain chain = make_chain(40 + 40 + 100, 16 + 50, 30);
	int count;

	(void)state;
	put_header(40 + 40 + 100, FUSE_WRITE);
	assert_int_equal(wire_decode(&request, &chain, arguments), 0);
	count = wire_data_iovec(&request, 100, vector, 64);
	assert_int_equal(count, 4);
	assert_ptr_equal(vector[0].iov_base, readable + 80);
	assert_int_equal(vector[0].iov_len, 10);
	assert_int_equal(wire_data_iovec(&request, 101, vector, 64), -EINVAL);
	assert_int_equal(wire_data_iovec(&request, 100, vector, 3), -EINVAL);
	count = wire_payload_iovec(&request, 50, vector, 64);
	assert_int_equal(count, 3);
	assert_ptr_equal(vector[0].iov_base, writable + 16);
	assert_int_equal(wire_payload_iovec(&request, 51, vector, 64), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_decode_refuses_wrong_length),
		cmocka_unit_test(test_decode_refuses_short_chains),
		cmocka_unit_test(test_decode_bounds_arguments),
		cmocka_unit_test(test_reader),
		cmocka_unit_test(test_put_stays_inside),
		cmocka_unit_test(test_finish_needs_room),
		cmocka_unit_test(test_iovecs),
	};

	return cmocka_run_group_tests_name("fs_wire", tests, NULL, NULL);
}

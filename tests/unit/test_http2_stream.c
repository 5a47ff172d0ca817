/* SPDX-License-Identifier: Apache-2.0 */
/* What waits in a stream of HTTP/2, and the memory of the library that speaks it. */
#include "vmm/secret/http2_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"
#include "vmm/secret/http2_memory.h"

#define VALUE "the-secret-of-this-test"
#define PLACE "PLACEHOLDER-of-the-test"

/* Bytes of which each can be told from its neighbours. */
static uint8_t byte_at(size_t at)
{
	return (uint8_t)(at * 7 + at / 251);
}

static void test_a_pipe_keeps_its_order(void **state)
{
	struct http2_pipe pipe = {0};
	size_t added = 0, taken = 0;
	uint8_t bytes[40000];

	(void)state;
	for (size_t turn = 0; turn < 200; turn++) {
		const size_t more = turn * 997 % 20000, less = turn * 769 % 20000;
		size_t length;

		for (size_t i = 0; i < more; i++)
			bytes[i] = byte_at(added + i);
		assert_int_equal(http2_pipe_add(&pipe, bytes, more), 0);
		added += more;
		length = http2_pipe_take(&pipe, bytes, less);
		assert_int_equal(length, bytes_minimum(less, added - taken));
		for (size_t i = 0; i < length; i++)
			assert_int_equal(bytes[i], byte_at(taken + i));
		taken += length;
		assert_int_equal(pipe.length, added - taken);
		/* What had much and has little has not much room any more. */
		assert_true(!length || pipe.size <= 4096 || pipe.size <= 8 * pipe.length);
		assert_true(pipe.length || !pipe.bytes);
	}
	assert_int_equal(http2_pipe_empty(&pipe), added - taken);
	assert_null(pipe.bytes);
	assert_int_equal(http2_pipe_take(&pipe, bytes, sizeof(bytes)), 0);
}

static void test_a_pipe_that_had_much_gives_it_back(void **state)
{
	static uint8_t much[200000];
	struct http2_pipe pipe = {0};

	(void)state;
	assert_int_equal(http2_pipe_add(&pipe, much, sizeof(much)), 0);
	assert_int_equal(http2_pipe_take(&pipe, much, sizeof(much)), sizeof(much));
	assert_null(pipe.bytes);
	assert_int_equal(http2_pipe_keep_trailer(&pipe, "x: y\r\n", 6), 0);
	assert_int_equal(pipe.trailer_length, 6);
	assert_int_equal(http2_pipe_empty(&pipe), 0);
	assert_null(pipe.trailer);
}

static void expect_down(struct http2_stream *stream, const char *text)
{
	char bytes[200];
	const size_t length = http2_pipe_take(&stream->down, bytes, sizeof(bytes));

	assert_int_equal(length, strlen(text));
	assert_memory_equal(bytes, text, length);
}

/* Two answers of which each is cut in a secret, by one masker. */
static void test_one_masker_for_all(void **state)
{
	struct http2_stream *streams[2] = {calloc(1, sizeof(struct http2_stream)),
					   calloc(1, sizeof(struct http2_stream))};
	struct secret_set *set = calloc(1, sizeof(*set));
	struct masker *masker = calloc(1, sizeof(*masker));
	struct mask_table *table;

	(void)state;
	assert_true(streams[0] && streams[1] && set && masker);
	set->count = 1;
	set->secrets[0].length = strlen(VALUE);
	memcpy(set->secrets[0].value, VALUE, sizeof(VALUE));
	memcpy(set->secrets[0].placeholder, PLACE, sizeof(PLACE));
	assert_int_equal(mask_table_create(&table, set), 0);
	masker->table = table;
	for (size_t i = 0; i < strlen(VALUE); i++) {
		for (size_t j = 0; j < 2; j++)
			assert_int_equal(http2_stream_mask(streams[j], masker, VALUE + i, 1), 0);
	}
	expect_down(streams[0], PLACE);
	expect_down(streams[1], PLACE);
	assert_int_equal(masker->masked[0], 2);
	/* The start of one waits, leaves when nothing more comes, and is no secret. */
	assert_int_equal(http2_stream_mask(streams[0], masker, "a the-sec", 9), 0);
	expect_down(streams[0], "a ");
	assert_int_equal(streams[0]->rest.length, 7);
	assert_int_equal(streams[1]->rest.length, 0);
	assert_int_equal(http2_stream_flush(streams[0], masker), 0);
	expect_down(streams[0], "the-sec");
	/* The rest of it comes later. */
	assert_int_equal(http2_stream_mask(streams[0], masker, "ret-of-this-test!", 17), 0);
	expect_down(streams[0], "LDER-of-the-test!");
	assert_int_equal(masker->masked[0], 3);
	/* What is cut short at the end is counted as well, and once if it goes on after all. */
	assert_int_equal(http2_stream_mask(streams[0], masker, "the-secret-of-th", 16), 0);
	assert_int_equal(http2_stream_flush(streams[0], masker), 0);
	assert_int_equal(masker->masked[0], 4);
	assert_int_equal(http2_stream_mask(streams[0], masker, "is-t", 4), 0);
	assert_int_equal(http2_stream_flush(streams[0], masker), 0);
	assert_int_equal(http2_stream_mask(streams[0], masker, "est.", 4), 0);
	assert_int_equal(masker->masked[0], 4);
	expect_down(streams[0], PLACE ".");
	mask_table_destroy(table);
	http2_stream_free(streams[0]);
	http2_stream_free(streams[1]);
	free(masker);
	free(set);
}

static void test_memory_is_bounded(void **state)
{
	struct http2_memory memory;
	nghttp2_mem *functions = &memory.functions;
	void *user = &memory;
	char *first, *second;

	(void)state;
	http2_memory_begin(&memory, 100000);
	first = functions->malloc(60000, functions->mem_user_data);
	assert_non_null(first);
	memset(first, 'x', 60000);
	assert_null(functions->malloc(60000, user));
	assert_null(functions->calloc(600, 100, user));
	assert_null(functions->calloc(SIZE_MAX / 2, 3, user));
	assert_null(functions->realloc(first, 120000, user));
	second = functions->calloc(10, 100, user);
	assert_non_null(second);
	assert_int_equal(second[999], 0);
	second = functions->realloc(second, 20000, user);
	assert_non_null(second);
	assert_int_equal(second[999], 0);
	functions->free(first, user);
	functions->free(NULL, user);
	first = functions->realloc(NULL, 60000, user);
	assert_non_null(first);
	functions->free(first, user);
	functions->free(second, user);
	assert_int_equal(memory.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pipe_keeps_its_order),
		cmocka_unit_test(test_a_pipe_that_had_much_gives_it_back),
		cmocka_unit_test(test_one_masker_for_all),
		cmocka_unit_test(test_memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

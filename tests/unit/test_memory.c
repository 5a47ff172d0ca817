/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/virtio/memory.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static uint8_t low[4096], next[4096], high[4096];

/* Two adjacent regions and one far away, given in disorder. */
static void make_memory(struct guest_memory *memory)
{
	const struct guest_memory_region regions[] = {
		{.gpa = 1ULL << 32, .size = sizeof(high), .host = high, .user_address = 0x7000},
		{.gpa = 0x1000, .size = sizeof(low), .host = low, .user_address = 0x100000},
		{.gpa = 0x2000, .size = sizeof(next), .host = next, .user_address = 0x200000},
	};

	memset(memory, 0, sizeof(*memory));
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(guest_memory_add(memory, &regions[i]), 0);
	for (unsigned int i = 0; i < sizeof(low); i++) {
		low[i] = (uint8_t)i;
		next[i] = (uint8_t)(i * 3);
		high[i] = (uint8_t)(i * 7);
	}
}

static int add(struct guest_memory *memory, uint64_t gpa, uint64_t size, uint64_t user_address)
{
	const struct guest_memory_region region = {
		.gpa = gpa, .size = size, .host = low, .user_address = user_address};

	return guest_memory_add(memory, &region);
}

static void regions_that_cannot_be_are_refused(void **state)
{
	struct guest_memory memory;

	(void)state;
	make_memory(&memory);
	assert_int_equal(add(&memory, 0x8000, 0, 0), -EINVAL);
	assert_int_equal(add(&memory, UINT64_MAX, 2, 0), -EINVAL);
	assert_int_equal(add(&memory, UINT64_MAX, 1, 0), -EINVAL);
	assert_int_equal(add(&memory, 0x8000, 0x1000, UINT64_MAX - 1), -EINVAL);
	assert_int_equal(add(&memory, 0x2800, 0x1000, 0), -EINVAL);
	assert_int_equal(add(&memory, 0, 0x1001, 0), -EINVAL);
	assert_int_equal(add(&memory, 0, 1ULL << 40, 0), -EINVAL);
	assert_int_equal(memory.count, 3);
	assert_int_equal(add(&memory, 0, 0x1000, 0), 0);
	assert_int_equal(memory.count, 4);
}

static void the_table_has_an_end(void **state)
{
	struct guest_memory memory = {0};

	(void)state;
	for (unsigned int i = 0; i < LIMIT_MEMORY_REGIONS; i++)
		assert_int_equal(add(&memory, (uint64_t)i << 20, 4096, 0), 0);
	assert_int_equal(add(&memory, 1ULL << 40, 4096, 0), -ENOSPC);
	assert_int_equal(memory.count, LIMIT_MEMORY_REGIONS);
}

static void a_range_is_inside_one_region_or_nothing(void **state)
{
	struct guest_memory memory;

	(void)state;
	make_memory(&memory);
	assert_ptr_equal(guest_memory_at(&memory, 0x1000, 4096), low);
	assert_ptr_equal(guest_memory_at(&memory, 0x1fff, 1), low + 4095);
	assert_ptr_equal(guest_memory_at(&memory, 0x2000, 1), next);
	assert_ptr_equal(guest_memory_at(&memory, (1ULL << 32) + 8, 4088), high + 8);
	assert_null(guest_memory_at(&memory, 0x1000, 0));
	assert_null(guest_memory_at(&memory, 0xfff, 1));
	assert_null(guest_memory_at(&memory, 0xfff, 2));
	assert_null(guest_memory_at(&memory, 0x1fff, 2)); /* goes on in the next region */
	assert_null(guest_memory_at(&memory, 0x3000, 1));
	assert_null(guest_memory_at(&memory, (1ULL << 32) + 4096, 1));
	assert_null(guest_memory_at(&memory, 0x1000, UINT64_MAX));
	assert_null(guest_memory_at(&memory, 0x1800, UINT64_MAX - 0x17ff));
	assert_null(guest_memory_at(&memory, UINT64_MAX, 1));
	assert_null(guest_memory_at(&memory, UINT64_MAX, UINT64_MAX));
	assert_null(guest_memory_at(&memory, 0, 1));
	memory.count = 0;
	assert_null(guest_memory_at(&memory, 0x1000, 1));
}

static void copies_span_adjacent_regions(void **state)
{
	struct guest_memory memory;

	(void)state;
	make_memory(&memory);
	assert_int_equal(guest_memory_write(&memory, 0x1ffe, "abcd", 4), 0);
	assert_memory_equal(low + 4094, "ab", 2);
	assert_memory_equal(next, "cd", 2);
	assert_int_equal(next[2], 6);
	assert_int_equal(guest_memory_write(&memory, 0x9999, "", 0), 0);
}

static void a_copy_that_does_not_fit_does_nothing(void **state)
{
	struct guest_memory memory;
	uint8_t buffer[16], low_before[4096], next_before[4096];

	(void)state;
	make_memory(&memory);
	memset(buffer, 0x5a, sizeof(buffer));
	memcpy(low_before, low, sizeof(low_before));
	memcpy(next_before, next, sizeof(next_before));
	assert_int_equal(guest_memory_write(&memory, 0x2ff8, buffer, 16), -EFAULT);
	assert_int_equal(guest_memory_write(&memory, UINT64_MAX - 3, buffer, 16), -EFAULT);
	assert_int_equal(guest_memory_write(&memory, 0xff8, buffer, 16), -EFAULT);
	assert_int_equal(guest_memory_write(&memory, 0x1000, buffer, SIZE_MAX), -EFAULT);
	assert_memory_equal(low, low_before, sizeof(low_before));
	assert_memory_equal(next, next_before, sizeof(next_before));
}

static void user_addresses_are_translated(void **state)
{
	struct guest_memory memory;
	uint64_t gpa = 0;

	(void)state;
	make_memory(&memory);
	assert_int_equal(guest_memory_user_to_gpa(&memory, 0x100010, 16, &gpa), 0);
	assert_int_equal(gpa, 0x1010);
	assert_int_equal(guest_memory_user_to_gpa(&memory, 0x7fff, 1, &gpa), 0);
	assert_true(gpa == (1ULL << 32) + 0xfff);
	assert_int_equal(guest_memory_user_to_gpa(&memory, 0x7fff, 2, &gpa), -EFAULT);
	assert_int_equal(guest_memory_user_to_gpa(&memory, 0x6fff, 1, &gpa), -EFAULT);
	assert_int_equal(guest_memory_user_to_gpa(&memory, 0x101000, 1, &gpa), -EFAULT);
	assert_int_equal(guest_memory_user_to_gpa(&memory, 0x1000, 1, &gpa), -EFAULT);
	assert_int_equal(guest_memory_user_to_gpa(&memory, UINT64_MAX, 1, &gpa), -EFAULT);
	assert_int_equal(guest_memory_user_to_gpa(&memory, 0x7800, UINT64_MAX, &gpa), -EFAULT);
	assert_true(gpa == (1ULL << 32) + 0xfff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_that_cannot_be_are_refused),
		cmocka_unit_test(the_table_has_an_end),
		cmocka_unit_test(a_range_is_inside_one_region_or_nothing),
		cmocka_unit_test(copies_span_adjacent_regions),
		cmocka_unit_test(a_copy_that_does_not_fit_does_nothing),
		cmocka_unit_test(user_addresses_are_translated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

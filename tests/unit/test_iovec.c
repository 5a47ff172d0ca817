/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of a vector after so many bytes of it. */
#include "vmm/base/iovec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"

static char bytes[8];

static void test_every_split(void **state)
{
	(void)state;
	for (size_t done = 0; done <= sizeof(bytes); done++) {
		struct iovec buffers[] = {
			{bytes, 3}, {bytes + 3, 0}, {bytes + 3, 1}, {bytes + 4, 4}};
		struct iovec *vector = buffers;
		unsigned int left = iovec_advance(&vector, ARRAY_SIZE(buffers), done);
		size_t length = 0;

		assert_ptr_equal(vector + left, buffers + ARRAY_SIZE(buffers));
		for (unsigned int i = 0; i < left; i++)
			length += vector[i].iov_len;
		assert_int_equal(length, sizeof(bytes) - done);
		if (left) {
			assert_ptr_equal(vector->iov_base, bytes + done);
			assert_true(vector->iov_len > 0);
		}
	}
}

static void test_more_than_there_is(void **state)
{
	struct iovec buffers[] = {{bytes, 3}, {bytes + 3, 5}};
	struct iovec *vector = buffers;

	(void)state;
	assert_int_equal(iovec_advance(&vector, 2, 100), 0);
	assert_ptr_equal(vector, buffers + 2);
	assert_int_equal(iovec_advance(&vector, 0, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_split),
		cmocka_unit_test(test_more_than_there_is),
	};

	return cmocka_run_group_tests_name("iovec", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What init reads of the guest's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "guest/memory_watch.h"

static void test_percent(void **state)
{
	(void)state;
	assert_int_equal(memory_watch_percent("MemTotal:  1000 kB\nMemFree: 10 kB\n"
					      "MemAvailable:   150 kB\n"),
			 85);
	assert_int_equal(memory_watch_percent("MemAvailable: 50 kB\nMemTotal: 1000 kB\n"), 95);
	assert_int_equal(memory_watch_percent("MemTotal: 1000 kB\nMemAvailable: 1000 kB\n"), 0);
}

static void test_what_is_no_meminfo(void **state)
{
	(void)state;
	assert_int_equal(memory_watch_percent(""), 0);
	assert_int_equal(memory_watch_percent("MemTotal: 1000 kB\n"), 0);
	assert_int_equal(memory_watch_percent("MemTotal: 0 kB\nMemAvailable: 0 kB\n"), 0);
	assert_int_equal(memory_watch_percent("MemTotal: 5 kB\nMemAvailable: 6 kB\n"), 0);
}

/* This host's own: each thing is told once, and the next look has nothing to say. */
static void test_each_thing_is_told_once(void **state)
{
	struct memory_watch watch;
	unsigned int told = 0;

	(void)state;
	assert_int_equal(memory_watch_look(&MEMORY_WATCH_NONE), 0);
	assert_int_equal(memory_watch_open(&watch), 0);
	while (memory_watch_look(&watch))
		told++;
	assert_true(told <= 2);
	assert_int_equal(memory_watch_look(&watch), 0);
	memory_watch_close(&watch);
	assert_int_equal(watch.meminfo_fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percent),
		cmocka_unit_test(test_what_is_no_meminfo),
		cmocka_unit_test(test_each_thing_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What init reads of the guest's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

static int make_file(const char *text)
{
	int fd = memfd_create("proc", MFD_CLOEXEC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void set_file(int fd, const char *text)
{
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
}

/* Each thing is told once, whatever follows, and of two levels that are passed at once the higher.
 */
static void test_each_thing_is_told_once(void **state)
{
	static const char half[] = "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 50 kB\n";
	static const char high[] = "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 15 kB\n";
	static const char very_high[] = "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 4 kB\n";
	struct memory_watch watch = MEMORY_WATCH_NONE;

	(void)state;
	assert_int_equal(memory_watch_look(&watch), 0); /* of nothing */
	for (int at_once = 0; at_once < 2; at_once++) {
		watch = MEMORY_WATCH_NONE;
		watch.meminfo_fd = make_file(half);
		watch.vmstat_fd = make_file("nr_free_pages 1\noom_kill 0\n");
		assert_int_equal(memory_watch_look(&watch), 0);
		if (!at_once) {
			set_file(watch.meminfo_fd, high);
			assert_int_equal(memory_watch_look(&watch), SESSION_MEMORY_HIGH);
			assert_int_equal(memory_watch_look(&watch), 0);
		}
		set_file(watch.meminfo_fd, very_high);
		assert_int_equal(memory_watch_look(&watch), SESSION_MEMORY_VERY_HIGH);
		set_file(watch.meminfo_fd, high);
		assert_int_equal(memory_watch_look(&watch), 0);
		set_file(watch.vmstat_fd, "nr_free_pages 1\noom_kill 2\n");
		assert_int_equal(memory_watch_look(&watch), SESSION_MEMORY_OUT);
		assert_int_equal(memory_watch_look(&watch), 0);
		memory_watch_close(&watch);
	}
}

/* This host's own. */
static void test_files(void **state)
{
	struct memory_watch watch;
	char text[512] = "";

	(void)state;
	assert_int_equal(memory_watch_open(&watch), 0);
	assert_true(pread(watch.meminfo_fd, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "\nMemAvailable:")); /* within what is read of it */
	assert_in_range(memory_watch_percent(text), 0, 100);
	memory_watch_close(&watch);
	assert_int_equal(watch.meminfo_fd, -1);
	assert_int_equal(watch.vmstat_fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percent),
		cmocka_unit_test(test_what_is_no_meminfo),
		cmocka_unit_test(test_each_thing_is_told_once),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* --cgroup: what its words mean, and the sentence for each mistake. */
#include "tests/unit/cli_capture.h"

#include <errno.h>

#include "vmm/base/bytes.h"
#include "vmm/cli/cgroup_limits.h"

static void test_all_limits(void **state)
{
	struct cgroup_limits limits = {0};

	(void)state;
	assert_false(cgroup_limits_any(&limits));
	assert_int_equal(cgroup_limits_parse(&limits, "memory=4G,pids=100,cpu=150%,io=20"), 0);
	assert_int_equal(limits.memory_mib, 4096);
	assert_int_equal(limits.pids, 100);
	assert_int_equal(limits.cpu_percent, 150);
	assert_int_equal(limits.io_mib, 20);
	assert_true(cgroup_limits_any(&limits));
}

/* As --cgroup is given several times. */
static void test_words_add_up(void **state)
{
	struct cgroup_limits limits = {0};

	(void)state;
	assert_int_equal(cgroup_limits_parse(&limits, "pids=64"), 0);
	assert_int_equal(cgroup_limits_parse(&limits, "cpu=50%"), 0);
	assert_int_equal(limits.pids, 64);
	assert_int_equal(limits.cpu_percent, 50);
	assert_int_equal(limits.memory_mib, 0);
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{"", "with commas between"},
		{"memory", "with commas between"},
		{"swap=1G", "swap=1G"},
		{"memory=", "a size in MiB"},
		{"memory=0", "a size in MiB"},
		{"memory=1T", "a size in MiB"},
		{"memory=99999999999999999999999999G", "a size in MiB"},
		{"pids=63", "64 or more"},
		{"pids=many", "64 or more"},
		{"cpu=-1", "percent"},
		{"cpu=0%", "percent"},
		{"cpu=2", "50% is half of one, 200% two"},
		{"cpu=", "percent"},
		{"cpu=1.5%", "percent"},
		{"io=fast", "per second"},
		{"pids=100,", "with commas between"},
		{"pids=100,pids=200", "pids=200 is given twice"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cgroup_limits limits = {0};
		struct capture capture;
		int error;

		capture_begin(&capture);
		error = cgroup_limits_parse(&limits, cases[i].text);
		capture_end(&capture);
		assert_int_equal(error, -EINVAL);
		assert_non_null(strstr(capture.text, cases[i].word));
	}
}

/* A limit below the guest's own memory would be a run that is killed half way. */
static void test_the_machine_must_fit(void **state)
{
	struct cgroup_limits limits = {.memory_mib = 2048 + 127};
	struct capture capture;
	int error;

	(void)state;
	capture_begin(&capture);
	error = cgroup_limits_check(&limits, 2048);
	capture_end(&capture);
	assert_int_equal(error, -EINVAL);
	assert_non_null(strstr(capture.text, "give memory=2176M"));
	limits.memory_mib = 2048 + 128;
	assert_int_equal(cgroup_limits_check(&limits, 2048), 0);
	limits.memory_mib = 0;
	assert_int_equal(cgroup_limits_check(&limits, 2048), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_limits),
		cmocka_unit_test(test_words_add_up),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_the_machine_must_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The options about the root file system. */
#include "vmm/cli/run_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/unit/cli_capture.h"
#include "vmm/base/bytes.h"
#include "vmm/cli/cache_directory.h"

static char place[] = "/tmp/mvagent-root-XXXXXX";
static char home[64], tools[64], linked[64];

static int make_place(void **state)
{
	(void)state;
	if (!mkdtemp(place))
		return -1;
	snprintf(home, sizeof(home), "%s/home", place);
	snprintf(tools, sizeof(tools), "%s/home/tools", place);
	snprintf(linked, sizeof(linked), "%s/link", place);
	return mkdir(home, 0755) || mkdir(tools, 0755) || symlink("home/tools", linked) ||
	       setenv("HOME", home, 1);
}

static int remove_place(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", place);
	return system(command); /* NOLINT(cert-env33-c) */
}

static void test_root_names_the_host_or_an_image(void **state)
{
	struct run_root root = {.image = "before"};
	struct capture capture;

	(void)state;
	assert_int_equal(run_root_set(&root, "host"), 0);
	assert_null(root.image);
	assert_int_equal(run_root_set(&root, "./host"), 0);
	assert_string_equal(root.image, "./host");
	capture_begin(&capture);
	assert_int_equal(run_root_set(&root, ""), -EINVAL);
	capture_end(&capture);
	capture_expect_sentence(&capture, "'host' or an image");
}

static void test_added_directories_keep_the_path_that_was_given(void **state)
{
	struct run_root root = {0};
	char odd[128];

	(void)state;
	assert_int_equal(run_root_add(&root, tools), 0);
	assert_string_equal(root.adds[0], tools);
	assert_int_equal(run_root_add(&root, linked), 0);
	assert_string_equal(root.adds[1], linked);
	snprintf(odd, sizeof(odd), "%s/home/../link", place);
	assert_int_equal(run_root_add(&root, odd), 0);
	assert_string_equal(root.adds[2], tools);
	snprintf(odd, sizeof(odd), "%s/", tools);
	assert_int_equal(run_root_add(&root, odd), 0);
	assert_string_equal(root.adds[3], tools);
	assert_int_equal(chdir(home), 0);
	assert_int_equal(run_root_add(&root, "tools"), 0);
	assert_string_equal(root.adds[4], tools);
	assert_int_equal(chdir("/"), 0);
	run_root_free(&root);
}

static void test_what_holds_the_home_is_not_added(void **state)
{
	const char *const refused[] = {home, place, "/", "/tmp"};
	struct run_root root = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct capture capture;

		capture_begin(&capture);
		assert_int_equal(run_root_add(&root, refused[i]), -EPERM);
		capture_end(&capture);
		capture_expect_sentence(&capture, refused[i]);
	}
	assert_int_equal(root.add_count, 0);
}

static void test_bad_values_get_one_sentence(void **state)
{
	struct run_root root = {0};
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	assert_int_equal(run_root_add(&root, "/none/such"), -ENOENT);
	capture_end(&capture);
	capture_expect_sentence(&capture, "/none/such");
	for (unsigned int i = 0; i < LIMIT_ROOT_ADDS; i++)
		assert_int_equal(run_root_add(&root, tools), 0);
	capture_begin(&capture);
	assert_int_equal(run_root_add(&root, tools), -E2BIG);
	capture_end(&capture);
	capture_expect_sentence(&capture, "at most 32");
	for (unsigned int i = 0; i < LIMIT_ROOT_HIDES; i++)
		assert_int_equal(run_root_hide(&root, "x"), 0);
	capture_begin(&capture);
	assert_int_equal(run_root_hide(&root, "x"), -E2BIG);
	capture_end(&capture);
	capture_expect_sentence(&capture, "at most 64");
	run_root_free(&root);
}

static void test_scratch_is_a_size(void **state)
{
	static const char *const bad[] = {"", "0", "-1", "1K", "1T", "x"};
	struct run_root root = {0};

	(void)state;
	assert_int_equal(run_root_set_scratch(&root, "300"), 0);
	assert_int_equal(root.scratch_mib, 300);
	assert_int_equal(run_root_set_scratch(&root, "2G"), 0);
	assert_int_equal(root.scratch_mib, 2048);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct capture capture;

		capture_begin(&capture);
		assert_int_equal(run_root_set_scratch(&root, bad[i]), -EINVAL);
		capture_end(&capture);
		capture_expect_sentence(&capture, "suffix M or G");
	}
	for (size_t i = 0; i < 2; i++) {
		struct capture capture;

		capture_begin(&capture);
		assert_int_equal(
			run_root_set_scratch(&root, i ? "1048577G" : "99999999999999999999"),
			-EINVAL);
		capture_end(&capture);
		capture_expect_sentence(&capture, "at most 1048576G");
	}
}

static void test_an_image_takes_no_directories(void **state)
{
	struct run_root root = {.image = "r.erofs", .hide_count = 1};
	struct capture capture;

	(void)state;
	capture_begin(&capture);
	assert_int_equal(run_root_check(&root), -EINVAL);
	capture_end(&capture);
	capture_expect_sentence(&capture, "r.erofs");
	root.hide_count = 0;
	assert_int_equal(run_root_check(&root), 0);
	root = (struct run_root){.hide_count = 1};
	assert_int_equal(run_root_check(&root), 0);
}

/* What the root would refuse is refused before a machine is thought of. */
static void test_directories_are_tried(void **state)
{
	struct run_root root = {0};
	struct capture capture;

	(void)state;
	assert_int_equal(run_root_try(&root), 0);
	root = (struct run_root){.add_count = 1, .adds = {(char *)"/var/cache"}};
	assert_int_equal(run_root_try(&root), 0);
	root.adds[0] = tools;
	capture_begin(&capture);
	assert_int_equal(run_root_try(&root), -EINVAL);
	capture_end(&capture);
	capture_expect_sentence(&capture, "the guest has a /tmp of its own");
	root = (struct run_root){.hide_count = 1, .hides = {"a/b"}};
	capture_begin(&capture);
	assert_true(run_root_try(&root) < 0);
	capture_end(&capture);
	capture_expect_sentence(&capture, "--root-hide a/b");
}

static void test_the_cache_directory_is_made_and_private(void **state)
{
	char path[128];
	struct stat status;
	int fd;

	(void)state;
	unsetenv("XDG_CACHE_HOME");
	fd = cache_directory_open("root");
	assert_true(fd >= 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/.cache/mvagent/root", home);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	snprintf(path, sizeof(path), "%s/elsewhere", place);
	setenv("XDG_CACHE_HOME", path, 1);
	fd = cache_directory_open("root");
	assert_true(fd >= 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/elsewhere/mvagent/root", place);
	assert_int_equal(access(path, F_OK), 0);
	/* What is kept is forgotten when it is out of date. */
	snprintf(path, sizeof(path), "%s/elsewhere/mvagent/root/image", place);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	cache_directory_forget("root");
	assert_int_equal(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "%s/elsewhere/mvagent/root", place);
	assert_int_equal(access(path, F_OK), 0);
	/* A relative path is as none. */
	setenv("XDG_CACHE_HOME", "relative", 1);
	setenv("HOME", "", 1);
	assert_int_equal(cache_directory_open("root"), -ENOENT);
	setenv("XDG_CACHE_HOME", "/proc/none/such", 1);
	assert_true(cache_directory_open("root") < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_root_names_the_host_or_an_image),
		cmocka_unit_test(test_added_directories_keep_the_path_that_was_given),
		cmocka_unit_test(test_what_holds_the_home_is_not_added),
		cmocka_unit_test(test_bad_values_get_one_sentence),
		cmocka_unit_test(test_scratch_is_a_size),
		cmocka_unit_test(test_an_image_takes_no_directories),
		cmocka_unit_test(test_directories_are_tried),
		cmocka_unit_test(test_the_cache_directory_is_made_and_private),
	};

	return cmocka_run_group_tests(tests, make_place, remove_place);
}

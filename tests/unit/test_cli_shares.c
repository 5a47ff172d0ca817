/* SPDX-License-Identifier: Apache-2.0 */
/* The directories to share: opened, named, put in order, or refused in one sentence. */
#include "tests/unit/cli_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "vmm/base/bytes.h"
#include "vmm/cli/run_shares.h"

static char scratch[PATH_MAX];

static int make_scratch(void **state)
{
	char name[] = "/tmp/cli-shares-XXXXXX";

	(void)state;
	if (!mkdtemp(name) || !realpath(name, scratch) || chdir(scratch))
		return -1;
	return mkdir("a", 0755) || mkdir("a/b", 0755) || mkdir("a!", 0755) || mkdir("c", 0755) ||
			       symlink("c", "link") || symlink("nowhere", "dangling") ||
			       close(open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644))
		       ? -1
		       : 0;
}

static int remove_scratch(void **state)
{
	char command[PATH_MAX + 16];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", scratch);
	return chdir("/") == 0 ? system(command) : -1;
}

/* Opens @count shares; whatever is printed is in @capture. */
static int open_shares(struct run_shares *shares, const struct run_share *given, unsigned int count,
		       struct capture *capture)
{
	struct run_options options = {.share_count = count};
	int error;

	assert_true(count <= LIMIT_SHARES);
	for (unsigned int i = 0; i < count; i++)
		options.shares[i] = given[i];
	capture_begin(capture);
	error = run_shares_open(shares, &options);
	capture_end(capture);
	return error;
}

static const char *in_scratch(const char *name)
{
	static char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return path;
}

static void expect_same_directory(int fd, const char *path)
{
	struct stat one, other;

	assert_int_equal(fstat(fd, &one), 0);
	assert_int_equal(stat(path, &other), 0);
	assert_int_equal(one.st_ino, other.st_ino);
	assert_int_equal(one.st_dev, other.st_dev);
}

static void test_none(void **state)
{
	struct run_shares shares;
	struct capture capture;

	(void)state;
	assert_int_equal(open_shares(&shares, NULL, 0, &capture), 0);
	assert_int_equal(shares.count, 0);
	assert_null(shares.first);
	run_shares_destroy(&shares);
}

/* A directory is mounted after all those that it lies in, whatever the order on the command line;
 * the tags and the working directory keep that order. */
static void test_parents_first(void **state)
{
	const struct run_share given[] = {
		{.directory = "a/b", .read_only = true},
		{.directory = "c", .at = "/z"},
		{.directory = "a!"},
		{.directory = "a"},
		{.directory = "c", .at = "/z/y/x"},
		{.directory = "c", .at = "/z/y"},
	};
	struct run_shares shares;
	struct capture capture;

	(void)state;
	assert_int_equal(open_shares(&shares, given, ARRAY_SIZE(given), &capture), 0);
	assert_string_equal(capture.text, "");
	assert_int_equal(shares.count, ARRAY_SIZE(given));
	for (unsigned int i = 0; i < shares.count; i++) {
		for (unsigned int j = 0; j < i; j++) {
			const char *earlier = shares.directories[j].path;
			size_t length = strlen(shares.directories[i].path);

			/* No earlier one lies in a later one. */
			assert_false(strncmp(earlier, shares.directories[i].path, length) == 0 &&
				     earlier[length] == '/');
		}
	}
	assert_string_equal(shares.first, in_scratch("a/b"));
	for (unsigned int i = 0; i < shares.count; i++) {
		const struct shared_directory *directory = &shares.directories[i];

		if (strcmp(directory->path, in_scratch("a/b")) == 0) {
			assert_string_equal(directory->tag, "share0");
			assert_true(directory->read_only);
			expect_same_directory(directory->directory_fd, "a/b");
		} else if (strcmp(directory->path, "/z") == 0) {
			assert_string_equal(directory->tag, "share1");
			assert_false(directory->read_only);
			expect_same_directory(directory->directory_fd, "c");
		}
	}
	run_shares_destroy(&shares);
}

/* The descriptors are only names, closed on exec, and closed by destroy. */
static void test_descriptors(void **state)
{
	const struct run_share given[] = {{.directory = "a"}};
	struct run_shares shares;
	struct capture capture;
	int fd;

	(void)state;
	assert_int_equal(open_shares(&shares, given, 1, &capture), 0);
	fd = shares.directories[0].directory_fd;
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_PATH);
	run_shares_destroy(&shares);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* A link as the work tree: the directory itself is shared, at its own path. */
static void test_link_and_relative(void **state)
{
	static const char *const names[] = {"link", "./link/", "a/../link", "c"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct run_share given[] = {{.directory = names[i]}};
		struct run_shares shares;
		struct capture capture;

		assert_int_equal(open_shares(&shares, given, 1, &capture), 0);
		assert_string_equal(shares.directories[0].path, in_scratch("c"));
		expect_same_directory(shares.directories[0].directory_fd, "c");
		run_shares_destroy(&shares);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *directory, *at;
		int error;
		const char *says;
	} cases[] = {
		{"file", NULL, -ENOTDIR, "not a directory"},
		{"absent", NULL, -ENOENT, "absent"},
		{"dangling", NULL, -ENOENT, "dangling"},
		{"/", NULL, -EPERM, "whole system"},
		{"/usr", NULL, -EBUSY, "guest's own"},
		{"c", "/usr", -EBUSY, "guest's own"},
		{"c", "/proc", -EBUSY, "guest's own"},
		{"c", "/dev", -EBUSY, "guest's own"},
		{"c", "/dev/shm", -EBUSY, "guest's own"},
		{"c", "/proc/1", -EBUSY, "guest's own"},
		{"c", "/sys/kernel", -EBUSY, "guest's own"},
		{"c", "/usr/local/src", -EBUSY, "guest's own"},
		{"c", "/bin/x", -EBUSY, "guest's own"},
		{"c", "/sbin/x", -EBUSY, "guest's own"},
		{"c", "/lib/x/y", -EBUSY, "guest's own"},
		{"c", "/lib64/x", -EBUSY, "guest's own"},
		{"c", "/etc/x", -EBUSY, "guest's own"},
		{"c", "/run", -EBUSY, "guest's own"},
		{"/usr/bin", NULL, -EBUSY, "guest's own"},
		{"c", "/w/", -EINVAL, "plain absolute path"},
		{"c", "//w", -EINVAL, "plain absolute path"},
		{"c", "/w//x", -EINVAL, "plain absolute path"},
		{"c", "/w/./x", -EINVAL, "plain absolute path"},
		{"c", "/w/..", -EINVAL, "plain absolute path"},
		{"c", "/../w", -EINVAL, "plain absolute path"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct run_share given[] = {
			{.directory = cases[i].directory, .at = cases[i].at}};
		struct run_shares shares;
		struct capture capture;

		if (open_shares(&shares, given, 1, &capture) != cases[i].error)
			fail_msg("%s at %s: %s", cases[i].directory, cases[i].at, capture.text);
		capture_expect_sentence(&capture, cases[i].directory);
		capture_expect_sentence(&capture, cases[i].says);
		run_shares_destroy(&shares);
	}
}

/* Names that only look like the guest's own, or like dots. */
static void test_accepted_places(void **state)
{
	static const char *const places[] = {
		"/w",     "/usrlocal",     "/development", "/opt/x",
		"/run/x", "/library",      "/...",         "/w/..x",
		"/w/.x",  "/dev/shm/work", "/devel",       "/home/with space/\xc3\xa4\n'\""};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		const struct run_share given[] = {{.directory = "c", .at = places[i]}};
		struct run_shares shares;
		struct capture capture;

		if (open_shares(&shares, given, 1, &capture) != 0)
			fail_msg("%s: %s", places[i], capture.text);
		assert_string_equal(shares.directories[0].path, places[i]);
		run_shares_destroy(&shares);
	}
}

/* What is more than one project is refused, whatever way it is named, unless asked for twice. */
static void test_too_much(void **state)
{
	static const char *const given[] = {"home", "home/me", "home/me/../me", "to-home",
					    "home/me/.local"};
	char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
	struct run_options anyway = {.share_count = 1, .share_anyway = true};
	struct run_shares shares;
	struct capture capture;

	(void)state;
	assert_int_equal(system("mkdir -p home/me/.local/state/mvagent/runs home/me/project && "
				"ln -s home/me to-home"),
			 0);
	setenv("HOME", in_scratch("home/me"), 1);
	unsetenv("XDG_STATE_HOME");
	for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
		const struct run_share share[] = {{.directory = given[i]}};

		if (open_shares(&shares, share, 1, &capture) != -EPERM)
			fail_msg("%s was taken", given[i]);
		capture_expect_sentence(&capture, given[i]);
		capture_expect_sentence(&capture, "--share-anyway");
		run_shares_destroy(&shares);
		anyway.shares[0] = share[0];
		assert_int_equal(run_shares_open(&shares, &anyway), 0);
		run_shares_destroy(&shares);
	}
	assert_int_equal(open_shares(&shares, &(struct run_share){.directory = "home/me/project"},
				     1, &capture),
			 0);
	run_shares_destroy(&shares);
	if (home)
		setenv("HOME", home, 1);
	free(home);
}

static void test_same_place_twice(void **state)
{
	const struct run_share given[] = {{.directory = "a"},
					  {.directory = "c", .at = "/w"},
					  {.directory = "a/b", .at = "/w"}};
	const struct run_share link[] = {{.directory = "link"}, {.directory = "c"}};
	struct run_shares shares;
	struct capture capture;

	(void)state;
	assert_int_equal(open_shares(&shares, given, 3, &capture), -EEXIST);
	capture_expect_sentence(&capture, "two shares want to be at /w");
	run_shares_destroy(&shares);
	assert_int_equal(open_shares(&shares, link, 2, &capture), -EEXIST);
	capture_expect_sentence(&capture, in_scratch("c"));
	run_shares_destroy(&shares);
}

/* A directory that the user may not read: refused here, not as an odd error in the guest. */
static void test_unreadable(void **state)
{
	const struct run_share given[] = {{.directory = "a/b"}};
	struct run_shares shares;
	struct capture capture;
	int error;

	(void)state;
	assert_int_equal(chmod("a/b", 0300), 0);
	if (geteuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	error = open_shares(&shares, given, 1, &capture);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod("a/b", 0755), 0);
	assert_int_equal(error, -EACCES);
	capture_expect_sentence(&capture, "a/b");
	run_shares_destroy(&shares);
}

static void test_mistyped_modes(void **state)
{
	static const char *const cases[][2] = {
		{"a:r0", "':r0' is no mode"},
		{"nothing:r0", "':r0' is no mode"},
		{"nothing", "nothing: No such file"},
		{"no:thing/here", "here: No such file"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct run_share given = {.directory = cases[i][0]};
		struct run_shares shares;
		struct capture capture;

		assert_int_equal(open_shares(&shares, &given, 1, &capture), -ENOENT);
		capture_expect_sentence(&capture, cases[i][1]);
		run_shares_destroy(&shares);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mistyped_modes),    cmocka_unit_test(test_none),
		cmocka_unit_test(test_parents_first),     cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_link_and_relative), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_accepted_places),   cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_same_place_twice),  cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

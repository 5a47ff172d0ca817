/* SPDX-License-Identifier: Apache-2.0 */
/* What lies beside the machines of `mvagent selftest`: each change of it is seen, and none where
 * there was none. */
#include "vmm/cli/selftest_place.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SKIPPED 77

static int setup(void **state)
{
	static struct selftest_place place;

	selftest_place_init(&place);
	*state = &place;
	return selftest_place_create(&place);
}

static int teardown(void **state)
{
	struct selftest_place *place = *state;
	char path[sizeof(place->path)];

	memcpy(path, place->path, sizeof(path));
	selftest_place_destroy(place);
	return access(path, F_OK) == 0; /* nothing stays */
}

static void expect_change(struct selftest_place *place, const char *words)
{
	char why[256] = "";

	assert_int_equal(selftest_place_check(place, why, sizeof(why)), -EPERM);
	if (!strstr(why, words))
		fail_msg("'%s' instead of '%s'", why, words);
}

static void test_nothing_changed(void **state)
{
	char why[256] = "";

	assert_int_equal(selftest_place_check(*state, why, sizeof(why)), 0);
	assert_string_equal(why, "");
}

static void write_byte(const struct selftest_place *place, const char *name, int flags)
{
	int fd = openat(place->directory_fd, name, flags | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

static void test_file(void **state)
{
	write_byte(*state, "canary", O_WRONLY);
	expect_change(*state, "a file beside the share");
}

static void test_image(void **state)
{
	write_byte(*state, "image", O_WRONLY);
	expect_change(*state, "the disk's image");
}

static void test_names(void **state)
{
	struct selftest_place *place = *state;

	write_byte(place, "new", O_WRONLY | O_CREAT);
	expect_change(place, "made or removed");
	assert_int_equal(unlinkat(place->directory_fd, "new", 0), 0);
	assert_int_equal(unlinkat(place->directory_fd, "initrd", 0), 0);
	expect_change(place, "made or removed");
}

static void test_socket(void **state)
{
	struct selftest_place *place = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", place->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	expect_change(place, "connected to a socket");
}

/* Whether the process that sleeps has ended within a time. */
static bool has_ended(const struct selftest_place *place, int milliseconds)
{
	struct pollfd polled = {.fd = place->process_fd, .events = POLLIN};

	return poll(&polled, 1, milliseconds) != 0;
}

static void test_process(void **state)
{
	struct selftest_place *place = *state;

	assert_int_equal(kill(place->process, SIGTERM), 0);
	assert_true(has_ended(place, 5000));
	expect_change(place, "sent a signal");
}

/* In a container mvagent may be the first process, whose number is what orphans see. */
static void test_first_process(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0) {
		if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
			_exit(SKIPPED);
		child = fork();
		if (child == 0) {
			void *place;
			bool good = setup(&place) == 0 && !has_ended(place, 300);

			_exit(teardown(&place) || !good);
		}
		_exit(waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status)
									       : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing_changed),
		TEST(test_file),
		TEST(test_image),
		TEST(test_names),
		TEST(test_socket),
		TEST(test_process),
		cmocka_unit_test(test_first_process),
	};

	return cmocka_run_group_tests_name("selftest place", tests, NULL, NULL);
}

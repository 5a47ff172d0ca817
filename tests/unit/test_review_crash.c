/* SPDX-License-Identifier: Apache-2.0 */
/* `mvagent apply`, killed at any moment, is finished by the next one. */
#include "tests/unit/review_command.h"

#include <signal.h>
#include <time.h>

#define ROUNDS 25

static struct command_result result;

static const char make_host[] =
	"chmod -R u+w host && rm -rf host/* && cd host && for i in 0 1 2 3; do echo old "
	">changed$i; echo old >gone$i; "
	"mkdir -p dir$i/sub opaque$i/sub; echo old >dir$i/sub/f; echo old >opaque$i/f; "
	"echo old >opaque$i/sub/f; echo old >file$i; ln -s old link$i; done";

static const char make_wanted[] =
	"if test -e wanted; then chmod -R u+w wanted && rm -r wanted; fi && cp -a host wanted && "
	"cd wanted && for i in 0 1 2 3; do echo new "
	">changed$i; rm -r gone$i dir$i file$i opaque$i link$i; echo new >dir$i; mkdir file$i "
	"opaque$i opaque$i/sub; echo new >file$i/f; echo new >opaque$i/sub/new; ln -s new link$i; "
	"chmod 555 file$i; done";

static const char make_upper[] =
	"cp -a wanted/. upper/ && cd upper/ && for i in 0 1 2 3; do mknod gone$i c 0 0; done";

/* What the guest changed of the host's; a number comes after the first name. */
static const char *const paths[] = {
	"changed",  "gone", "dir",  "dir/sub",      "dir/sub/f",  "opaque",
	"opaque/f", "file", "link", "opaque/sub/f", "opaque/sub",
};

static void make_run(struct review_fixture *fixture)
{
	fixture_begin_run(fixture);
	fixture_shell(fixture, make_host);
	fixture_shell(fixture, make_wanted);
	fixture_shell(fixture, make_upper);
	for (int i = 0; i < 4; i++) {
		char path[64];

		for (size_t k = 0; k < sizeof(paths) / sizeof(paths[0]); k++) {
			snprintf(path, sizeof(path), "%.*s%d%s", (int)strcspn(paths[k], "/"),
				 paths[k], i, paths[k] + strcspn(paths[k], "/"));
			fixture_note_base(fixture, path);
		}
		snprintf(path, sizeof(path), "opaque%d", i);
		fixture_set_opaque(fixture, path);
	}
	fixture_end_run(fixture);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Kills it after that time; whether it was still at work. */
static bool apply_and_kill(int64_t nanoseconds)
{
	char *words[] = {(char *)"apply", NULL};
	const struct timespec pause = {.tv_sec = nanoseconds / 1000000000,
				       .tv_nsec = nanoseconds % 1000000000};
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		_exit(apply_command(1, words));
	}
	nanosleep(&pause, NULL);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

static void test_killed_at_any_moment(void **state)
{
	struct review_fixture *fixture = *state;
	int64_t whole;
	int killed = 0;

	make_run(fixture);
	whole = now_ns();
	command_run(&result, "apply", NULL);
	whole = now_ns() - whole;
	command_expect(&result, 0, NULL, NULL);
	fixture_shell(fixture, "diff -r --no-dereference wanted host");
	for (int round = 0; round < ROUNDS; round++) {
		make_run(fixture);
		killed += apply_and_kill(whole * round / ROUNDS);
		command_run(&result, "apply", fixture->name, NULL);
		command_expect(&result, 0, NULL, NULL);
		/* All that may be left over is one object that is no file, for some seconds. */
		fixture_shell(fixture,
			      "diff -r --no-dereference -x '.mvagent-apply-*' wanted host");
		fixture_shell(fixture,
			      "test $(find host -name '.mvagent-apply-*' | wc -l) -le 1 && "
			      "test $(find host -name '.mvagent-apply-*' -type f | wc -l) = 0");
		fixture_shell(fixture, "find host -name '.mvagent-apply-*' -delete");
		command_run(&result, "diff", fixture->name, NULL);
		assert_string_equal(result.output, "");
	}
	assert_true(killed > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_killed_at_any_moment, fixture_setup,
						fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

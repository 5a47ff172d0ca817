/* SPDX-License-Identifier: Apache-2.0 */
/* Which run and which paths the review commands are about, and what they say when there are none.
 */
#include "tests/unit/review_command.h"

#include "vmm/base/bytes.h"
#include "vmm/cli/outcome.h"

static struct command_result result;

/* A run with one new file, whose directory another one then takes the place of. */
static void make_run_of_replaced_directory(struct review_fixture *fixture)
{
	fixture_write(fixture->upper, "new", "guest\n", 0644);
	fixture_end_run(fixture);
	fixture_shell(fixture, "mv host old && mkdir host");
}

static void test_replaced_directory_is_an_error(void **state)
{
	static const char *const verbs[] = {"diff", "apply", "discard"};
	struct review_fixture *fixture = *state;

	make_run_of_replaced_directory(fixture);
	for (int here = 0; here < 2; here++) {
		for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
			command_run(&result, verbs[i], NULL);
			command_expect(&result, EXIT_MVAGENT, NULL, "give --moved");
			command_expect(&result, EXIT_MVAGENT, NULL, "'mvagent discard 2");
			assert_null(strstr(result.errors, "no run has changes"));
		}
		assert_int_equal(chdir(here ? "." : "host"), 0);
	}
	command_run(&result, "apply", "--moved", NULL);
	command_expect(&result, 0, "created  new\n", fixture->name);
}

static void test_directory_that_is_gone_is_an_error(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->upper, "new", "guest\n", 0644);
	fixture_end_run(fixture);
	fixture_shell(fixture, "rm -r host");
	command_run(&result, "diff", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "cannot open the shared directory");
	command_expect(&result, EXIT_MVAGENT, NULL, fixture->name);
	command_run(&result, "discard", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, fixture->name);
	command_run(&result, "discard", fixture->name, NULL);
	command_expect(&result, 0, NULL, NULL);
	command_run(&result, "diff", NULL);
	command_expect(&result, 0, NULL, "no run has changes");
}

/* The one that is meant is not passed over for an older one; one of another directory is. */
static void test_which_run_is_meant(void **state)
{
	struct review_fixture *fixture = *state;

	make_run_of_replaced_directory(fixture);
	fixture_shell(fixture, "mkdir other");
	fd_close(&fixture->host);
	fixture->host = open("host", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fixture_shell(fixture, "sleep 1.1");
	fixture_begin_run(fixture);
	fixture_write(fixture->upper, "newer", "guest\n", 0644);
	fixture_end_run(fixture);
	command_run(&result, "diff", NULL);
	command_expect(&result, 0, "+++ b/newer\n", fixture->name);
	fixture_shell(fixture, "mv host newer && mkdir host");
	command_run(&result, "diff", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, fixture->name);
	assert_string_equal(result.output, "");
}

static void test_discarded_run_is_not_applied(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->upper, "new", "guest\n", 0644);
	fixture_end_run(fixture);
	command_run(&result, "discard", NULL);
	command_expect(&result, 0, NULL, NULL);
	command_run(&result, "apply", fixture->name, NULL);
	command_expect(&result, EXIT_APPLY_REFUSED, NULL, "were discarded");
	command_run(&result, "apply", NULL);
	command_expect(&result, 0, NULL, "no run has changes");
}

static void test_paths_without_changes_are_told(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_mkdir(fixture->host, "sub", 0755);
	fixture_copy_directory(fixture, "sub");
	fixture_write(fixture->upper, "sub/a", "a\n", 0644);
	fixture_write(fixture->upper, "b", "b\n", 0644);
	fixture_end_run(fixture);
	command_run(&result, "diff", "sbu", NULL);
	command_expect(&result, 0, NULL, "is at or below 'sbu'\n");
	assert_string_equal(result.output, "");
	command_run(&result, "diff", "sub", "c", NULL);
	command_expect(&result, 0, "+++ b/sub/a\n", "is at or below 'c'\n");
	assert_null(strstr(result.errors, "'sub'"));
	command_run(&result, "apply", "b", "sbu", NULL);
	command_expect(&result, EXIT_APPLY_REFUSED, NULL, "is at or below 'sbu'\n");
	command_expect(&result, EXIT_APPLY_REFUSED, NULL, "nothing was applied");
	fixture_expect_absent(fixture->host, "b");
	command_run(&result, "apply", "b", "sub", NULL);
	command_expect(&result, 0, "created  sub/a\n", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(test_replaced_directory_is_an_error),
		TEST(test_directory_that_is_gone_is_an_error),
		TEST(test_which_run_is_meant),
		TEST(test_discarded_run_is_not_applied),
		TEST(test_paths_without_changes_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

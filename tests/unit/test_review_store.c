/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory, its runs and their locks. */
#include "tests/unit/review_fixture.h"

#include "vmm/review/review_run.h"

static void test_place_of_the_state_directory(void **state)
{
	struct review_fixture *fixture = *state;
	char home[PATH_MAX + 8];
	int FD_CLEANUP store = -1;

	snprintf(home, sizeof(home), "%s/home", fixture->scratch);
	setenv("HOME", home, 1);
	setenv("XDG_STATE_HOME", "relative/counts/for/nothing", 1);
	assert_int_equal(review_store_open(false), -ENOENT);
	fixture_expect_absent(AT_FDCWD, "home");
	store = review_store_open(true);
	assert_true(store >= 0);
	assert_int_equal(fixture_mode(AT_FDCWD, "home/.local/state/mvagent/runs"), S_IFDIR | 0700);
	fd_close(&store);
	unsetenv("XDG_STATE_HOME");
	store = review_store_open(false);
	assert_true(store >= 0);
	fixture_expect_absent(AT_FDCWD, "relative");
}

static void test_new_run_is_locked_and_private(void **state)
{
	struct review_fixture *fixture = *state;
	int FD_CLEANUP store = review_store_open(false);
	int FD_CLEANUP other = review_store_open_run(store, fixture->name);

	assert_true(other >= 0);
	assert_true(review_is_run_name(fixture->name));
	assert_int_equal(fixture_mode(store, fixture->name), S_IFDIR | 0700);
	assert_true(review_run_is_locked(other));
	assert_int_equal(review_run_lock(other), -EWOULDBLOCK);
	fd_close(&fixture->run);
	assert_false(review_run_is_locked(other));
	assert_int_equal(review_run_lock(other), 0);
}

static void test_runs_are_listed_when_on_record(void **state)
{
	struct review_fixture *fixture = *state;
	int FD_CLEANUP store = review_store_open(false);
	struct tree_names names;

	fixture_shell(fixture, "mkdir state/mvagent/runs/other && touch "
			       "state/mvagent/runs/other/run.json");
	assert_int_equal(review_store_list(store, &names), 0);
	assert_int_equal(names.count, 0);
	tree_names_destroy(&names);
	fixture_end_run(fixture);
	assert_int_equal(review_store_list(store, &names), 0);
	assert_int_equal(names.count, 1);
	assert_string_equal(names.names[0], fixture->name);
	tree_names_destroy(&names);
	assert_int_equal(review_store_open_run(store, "../runs"), -EINVAL);
	assert_int_equal(review_store_open_run(store, "20200101-000000-0000"), -ENOENT);
}

static void test_upper_has_the_mode_of_the_directory(void **state)
{
	struct review_fixture *fixture = *state;
	int FD_CLEANUP directory = -1, FD_CLEANUP upper = -1;

	assert_int_equal(review_store_create_share(fixture->run, 1, 02750, &directory, &upper), 0);
	assert_int_equal(fixture_mode(fixture->run, "share1"), S_IFDIR | 0700);
	assert_int_equal(fixture_mode(directory, "upper") & 0777, 0750);
	assert_int_equal(review_store_create_share(fixture->run, 1, 0755, &directory, &upper),
			 -EEXIST);
}

/* Whatever the guest's server puts in the place of its files is not followed. */
static void test_links_in_the_run_are_not_followed(void **state)
{
	struct review_fixture *fixture = *state;
	static const struct review_policy no_policy;
	int FD_CLEANUP store = review_store_open(false);
	struct review_run run;

	fixture_shell(fixture, "echo canary >canary");
	fixture_end_run(fixture);
	fixture_shell(fixture, "cd state/mvagent/runs/*/share0 && rm base && "
			       "ln -s ../../../../../canary base");
	assert_int_equal(review_run_open(&run, store, fixture->name, true), 0);
	assert_int_equal(run.state, REVIEW_OPEN);
	assert_int_equal(review_run_open_shares(&run, &no_policy, false), -EINVAL);
	review_run_close(&run);
	fixture_shell(fixture, "cd state/mvagent/runs/*/share0 && rm base && mv upper u && "
			       "ln -s ../../../../../host upper && touch ../../../../../host/mine");
	assert_int_equal(review_run_open(&run, store, fixture->name, true), 0);
	assert_int_equal(review_run_open_shares(&run, &no_policy, false), -ENOTDIR);
	assert_int_not_equal(review_run_finish(&run, REVIEW_MARK_DISCARDED), 0);
	review_run_close(&run);
	fixture_expect_content(fixture->host, "mine", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(test_place_of_the_state_directory),
		TEST(test_new_run_is_locked_and_private),
		TEST(test_runs_are_listed_when_on_record),
		TEST(test_upper_has_the_mode_of_the_directory),
		TEST(test_links_in_the_run_are_not_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

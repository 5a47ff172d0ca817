/* SPDX-License-Identifier: Apache-2.0 */
/* `mvagent runs --repair`: what processes that were killed have left is found, said and brought to
 * order, and what lives is not touched. */
#include "tests/unit/review_command.h"

#include <sys/file.h>
#include <sys/time.h>

#include "vmm/cli/outcome.h"
#include "vmm/cli/repair.h"
#include "vmm/record/record.h"
#include "vmm/record/store.h"

#define CUT     "20261130-010203-abcd"
#define MARK    "0123456789abcdef0123456789abcdef"
#define PLANTED ".mvagent-review-0123abcd"
#define MAKING  ".mvagent-0123456789abcdef"

static struct command_result result;

/* A home and a place for temporary files of the test's own. */
static int setup(void **state)
{
	struct review_fixture *fixture;
	char path[PATH_MAX + 16];

	assert_int_equal(fixture_setup(state), 0);
	fixture = *state;
	fixture_shell(fixture, "mkdir home tmp");
	snprintf(path, sizeof(path), "%s/home", fixture->scratch);
	assert_int_equal(setenv("HOME", path, 1), 0);
	snprintf(path, sizeof(path), "%s/tmp", fixture->scratch);
	assert_int_equal(setenv("TMPDIR", path, 1), 0);
	return 0;
}

/* A record that has begun, as the supervisor has it open. */
static struct record *begin_record(const struct review_fixture *fixture, const char *run,
				   const char *mode)
{
	char path[PATH_MAX], name[RECORD_NAME_BYTES], host[PATH_MAX + 8];
	cJSON *start = cJSON_CreateObject(), *policy = cJSON_AddObjectToObject(start, "policy");
	cJSON *share = cJSON_CreateObject();
	int FD_CLEANUP fd = record_store_open(NULL, true, path);
	struct record *record;

	assert_true(fd >= 0);
	snprintf(name, sizeof(name), "%s" RECORD_SUFFIX, run);
	assert_int_equal(record_create(&record, fd, name), 0);
	snprintf(host, sizeof(host), "%s/host", fixture->scratch);
	cJSON_AddStringToObject(share, "host", host);
	cJSON_AddStringToObject(share, "mode", mode);
	cJSON_AddItemToArray(cJSON_AddArrayToObject(policy, "shares"), share);
	cJSON_AddStringToObject(start, "directory", host);
	record_event(record, RECORD_START, start);
	return record;
}

static void repair(const char *wanted)
{
	command_run(&result, "runs", "--repair", NULL);
	command_expect(&result, 0, wanted, NULL);
	assert_string_equal(result.errors, "");
}

/* What is in order is not changed by one more. */
static void repair_again(const char *sum)
{
	repair(sum);
	assert_null(strstr(result.output, "removed:"));
}

static void test_nothing_to_do(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_end_run(fixture);
	fixture_shell(fixture, "rm -r state");
	repair("0 runs were cut off; 0 things were removed\n");
	fixture_shell(fixture, "! test -e state");
	command_run(&result, "runs", "--repair", "--record", "/nowhere", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "cannot open the directory for records");
	command_run(&result, "runs", "--repair", "word", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "unexpected argument 'word'");
}

static void test_cut_record_is_told_and_stays(void **state)
{
	struct review_fixture *fixture = *state;
	struct record *record = begin_record(fixture, CUT, "ro");

	fixture_end_run(fixture);
	repair("0 runs were cut off; 0 things were removed; 1 run goes on\n");
	record_abandon(record);
	fixture_shell(fixture, "printf '{\"n\":2,\"pre' >>state/mvagent/records/" CUT ".jsonl && "
			       "cp state/mvagent/records/" CUT ".jsonl before");
	repair(CUT
	       ": its record holds as far as it goes; it was cut after line 1, within the next");
	command_expect(&result, 0, "\n1 run was cut off; 0 things were removed\n", NULL);
	fixture_shell(fixture, "cmp before state/mvagent/records/" CUT ".jsonl");
	command_run(&result, "runs", NULL);
	command_expect(&result, 0, "cut", NULL);
}

/* For programs: all that is said, and the counts, also when something failed. */
static void test_json(void **state)
{
	struct review_fixture *fixture = *state;
	cJSON *json;

	record_abandon(begin_record(fixture, CUT, "ro"));
	fixture_end_run(fixture);
	for (int i = 0; i < 2; i++) {
		command_run(&result, "runs", "--repair", "--json", i ? "--record" : NULL,
			    "/nowhere", NULL);
		command_expect(&result, i ? EXIT_MVAGENT : 0, NULL, NULL);
		json = cJSON_Parse(result.output);
		assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(json, "cut")), !i);
		assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(json, "failed")), i);
		assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "told")), !i);
		if (!i)
			assert_string_equal(
				cJSON_GetStringValue(cJSON_GetObjectItem(
					cJSON_GetArrayItem(cJSON_GetObjectItem(json, "told"), 0),
					"about")),
				CUT);
		cJSON_Delete(json);
	}
}

static void test_altered_record_is_told(void **state)
{
	struct review_fixture *fixture = *state;

	record_abandon(begin_record(fixture, CUT, "ro"));
	fixture_end_run(fixture);
	fixture_shell(fixture, "sed -i 's/\"ro\"/\"rw\" /' state/mvagent/records/" CUT ".jsonl");
	repair(CUT ": its record does not hold: ");
	command_expect(&result, 0, "0 runs were cut off", NULL);
}

/* Killed between the making of the file and its first line; and one that is at this point now. */
static void test_empty_records(void **state)
{
	struct review_fixture *fixture = *state;
	int FD_CLEANUP fd = -1;

	fixture_end_run(fixture);
	fixture_shell(fixture, "mkdir state/mvagent/records && cd state/mvagent/records && "
			       ": >" CUT ".jsonl && : >20261130-010203-0000.jsonl");
	fd = open("state/mvagent/records/20261130-010203-0000.jsonl", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	repair(CUT ": had not begun; its empty record was removed\n"
		   "0 runs were cut off; 1 thing was removed; 1 run goes on\n");
	fixture_shell(fixture, "test \"$(ls state/mvagent/records)\" = 20261130-010203-0000.jsonl");
}

static void test_run_that_was_never_made(void **state)
{
	struct review_fixture *fixture = *state;

	/* The fixture holds its lock, and has no run.json yet. */
	repair("0 things were removed");
	fixture_shell(fixture, "test -d upper/");
	fd_close(&fixture->run);
	repair(": had not begun; its directory was removed\n");
	fixture_shell(fixture, "test -z \"$(ls state/mvagent/runs)\"");
}

static void test_changes_of_a_killed_run_can_be_applied(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->host, "file", "old\n", 0644);
	fixture_change(fixture, "file", "new\n", 0644);
	/* What was being copied up, and half a line. */
	fixture_write(fixture->upper, MAKING, "ne", 0600);
	assert_int_equal(fd_write_full(fixture->base, "{\"path\":\"fi", 11), 0);
	fixture_write_record(fixture, 0);
	repair("0 runs were cut off; 0 things were removed\n");
	fd_close(&fixture->run);
	repair(": its changes (1) wait for review: 'mvagent diff ");
	command_expect(&result, 0,
		       "0 runs were cut off, the changes of 1 wait for review; 0 things", NULL);
	command_run(&result, "apply", fixture->name, NULL);
	command_expect(&result, 0, "changed  file\n", NULL);
	fixture_expect_content(fixture->host, "file", "new\n");
	repair_again("0 runs were cut off; 0 things were removed\n");
	fixture_shell(fixture, "! test -e upper/" MAKING);
}

static void test_killed_run_without_changes(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->host, "file", "old\n", 0644);
	fixture_write_record(fixture, 0);
	repair("0 things were removed");
	fixture_shell(fixture, "test -d upper/");
	fd_close(&fixture->run);
	repair(": had changed nothing under review; its directory was removed\n");
	fixture_shell(fixture, "test -z \"$(ls state/mvagent/runs)\"");
	fixture_expect_content(fixture->host, "file", "old\n");
}

/* One that came to its end is not removed: what the host has now may not stay so. */
static void test_ended_run_stays(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->host, "file", "same\n", 0644);
	fixture_change(fixture, "file", "same\n", 0644);
	fixture_end_run(fixture);
	repair("0 things were removed");
	fixture_shell(fixture, "test -f upper/file");
}

static void test_share_that_is_gone(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->upper, "file", "new\n", 0644);
	fixture_write_record(fixture, 0);
	fd_close(&fixture->run);
	fixture_shell(fixture, "mv host elsewhere");
	command_run(&result, "runs", "--repair", NULL);
	command_expect(&result, 0, ": its changes cannot be looked at, and stay\n",
		       "cannot open the shared directory");
	fixture_shell(fixture, "test -f upper/file");
}

static void test_interrupted_discard_is_finished(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->upper, "file", "new\n", 0644);
	fixture_end_run(fixture);
	fixture_shell(fixture, "cd state/mvagent/runs/* && : >discarded");
	repair(": its changes were discarded; what was left of them was removed\n");
	fixture_shell(fixture, "! test -e upper/file && test -f state/mvagent/runs/*/discarded");
	repair_again("0 things were removed");
}

/* Files in the making are removed from a share that a killed run could write to, and only those
 * that nobody is making. */
static void test_files_in_the_making(void **state)
{
	struct review_fixture *fixture = *state;
	int FD_CLEANUP fd = -1;

	fixture_end_run(fixture);
	fixture_shell(fixture, "mkdir -p host/a/b && echo x >host/a/b/" MAKING " && "
			       "echo y >host/.mvagent-apply-00000000000000ff && echo z >host/a/z");
	record_abandon(begin_record(fixture, CUT, "ro"));
	fixture_shell(fixture, "mv state/mvagent/runs runs");
	repair("1 run was cut off; 0 things were removed\n");
	record_abandon(begin_record(fixture, "20261130-010203-ffff", "rw"));
	fd = open("host/.mvagent-apply-00000000000000ff", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	repair("/host: files in the making were removed: 1\n");
	fixture_shell(fixture, "! test -e host/a/b/" MAKING " && test -f host/a/z && "
			       "test -f host/.mvagent-apply-00000000000000ff");
}

static void test_what_a_review_planted(void **state)
{
	struct review_fixture *fixture = *state;
	int FD_CLEANUP fd = -1;

	fixture_end_run(fixture);
	record_abandon(begin_record(fixture, CUT, "ro"));
	fixture_shell(fixture, "for d in . home state/mvagent host; do printf " MARK " >$d/" PLANTED
			       "; printf mine >$d/.mvagent-review-mine; done; "
			       "printf " MARK " >elsewhere");
	fd = open("home/" PLANTED, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	repair("/" PLANTED ": planted by 'mvagent review', removed\n");
	command_expect(&result, 0, "1 run was cut off; 3 things were removed\n", NULL);
	fixture_shell(fixture, "test \"$(find . -name .mvagent-review-mine | wc -l)\" = 4 && "
			       "test \"$(find . -name " PLANTED ")\" = ./home/" PLANTED);
	fd_close(&fd);
	repair("1 thing was removed");
	fixture_shell(fixture, "test -z \"$(find . -name " PLANTED ")\"");
}

static void test_what_a_selftest_or_demo_left(void **state)
{
	static const struct timeval old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct review_fixture *fixture = *state;
	int FD_CLEANUP fd = -1;

	fixture_end_run(fixture);
	fixture_shell(fixture,
		      "cd tmp && for n in Aold00 Byoung Clocked; do "
		      "mkdir -p mvagent-selftest-$n/share/deep; "
		      "ln -s ../../../home mvagent-selftest-$n/share/out; done; "
		      ": >../home/kept; mkdir other; mkdir -p mvagent-demo-Aold00/project");
	assert_int_equal(utimes("tmp/mvagent-selftest-Aold00", old), 0);
	assert_int_equal(utimes("tmp/mvagent-demo-Aold00", old), 0);
	assert_int_equal(utimes("tmp/mvagent-selftest-Clocked", old), 0);
	fd = open("tmp/mvagent-selftest-Clocked", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	repair("/tmp/mvagent-selftest-Aold00: left by 'mvagent selftest', removed\n");
	command_expect(&result, 0, "/tmp/mvagent-demo-Aold00: left by 'mvagent demo', removed\n",
		       NULL);
	command_expect(&result, 0, "2 things were removed", NULL);
	fixture_shell(fixture, "test \"$(ls tmp | wc -l)\" = 3 && test -f home/kept");
}

static void test_key_in_the_making(void **state)
{
	static const struct timeval old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct review_fixture *fixture = *state;

	fixture_end_run(fixture);
	fixture_shell(fixture,
		      "cd state/mvagent && : >" MAKING " && : >.mvagent-00000000000000aa && "
		      ": >record.key");
	assert_int_equal(utimes("state/mvagent/" MAKING, old), 0);
	repair(MAKING ": a key in the making, removed\n");
	fixture_shell(fixture, "cd state/mvagent && ! test -e " MAKING " && test -f record.key && "
			       "test -f .mvagent-00000000000000aa");
}

/* One whose name was taken from it before it was locked makes another. */
static void test_makers_do_not_lose_to_repair(void **state)
{
	struct review_fixture *fixture = *state;
	pid_t child, maker;
	int status, made = 0;

	fixture_end_run(fixture);
	fixture_shell(fixture, "rm -r state/mvagent/runs/*");
	child = fork();
	if (child == 0) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(1);
		for (;;) {
			int FD_CLEANUP store = review_store_open(true);
			struct repair work = {.record_fd = -1, .review_fd = store};
			struct tree_names names = {0};

			if (review_store_list_unborn(store, &names) == 0)
				for (size_t i = 0; i < names.count; i++)
					repair_unborn(&work, names.names[i]);
			tree_names_destroy(&names);
		}
	}
	maker = fork();
	if (maker == 0) {
		int FD_CLEANUP store = review_store_open(true);

		for (int i = 0; i < 2000; i++) {
			char name[REVIEW_RUN_NAME_BYTES];
			int FD_CLEANUP fd = review_store_create_run(store, name);
			int FD_CLEANUP file = -1;

			if (fd < 0)
				_exit(1);
			/* What is locked is left alone. */
			file = openat(fd, "inside", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			if (file < 0 || faccessat(store, name, F_OK, 0))
				_exit(2);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(maker, &status, 0), maker);
	made = status;
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	assert_int_equal(made, 0);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(test_nothing_to_do),
		test(test_cut_record_is_told_and_stays),
		test(test_json),
		test(test_altered_record_is_told),
		test(test_empty_records),
		test(test_run_that_was_never_made),
		test(test_changes_of_a_killed_run_can_be_applied),
		test(test_killed_run_without_changes),
		test(test_ended_run_stays),
		test(test_share_that_is_gone),
		test(test_interrupted_discard_is_finished),
		test(test_files_in_the_making),
		test(test_what_a_review_planted),
		test(test_what_a_selftest_or_demo_left),
		test(test_key_in_the_making),
		test(test_makers_do_not_lose_to_repair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What counts as a change, and which of them conflict with what the host did meanwhile. */
#include "tests/unit/review_share.h"

#include <sys/socket.h>
#include <sys/un.h>

static void test_nothing(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->host, "file", "text", 0644);
	EXPECT_NO_CHANGES(fixture);
}

static void test_each_kind(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->host, "changed", "old", 0644);
	fixture_write(fixture->host, "deleted", "old", 0644);
	fixture_write(fixture->host, "mode", "same", 0644);
	fixture_write(fixture->host, "same", "same", 0644);
	fixture_write(fixture->host, "type", "old", 0644);
	fixture_mkdir(fixture->host, "directory", 0755);
	fixture_change(fixture, "changed", "new", 0644);
	fixture_delete(fixture, "deleted");
	fixture_change(fixture, "mode", "same", 0600);
	fixture_change(fixture, "same", "same", 0644);
	fixture_note_base(fixture, "type");
	assert_int_equal(symlinkat("elsewhere", fixture->upper, "type"), 0);
	fixture_note_base(fixture, "directory");
	fixture_mkdir(fixture->upper, "directory", 0700);
	fixture_write(fixture->upper, "directory/created", "", 0644);
	EXPECT_CHANGES(fixture, NULL, {"changed", REVIEW_CHANGED, REVIEW_GOOD},
		       {"deleted", REVIEW_DELETED, REVIEW_GOOD},
		       {"directory", REVIEW_MODE, REVIEW_GOOD},
		       {"directory/created", REVIEW_CREATED, REVIEW_GOOD},
		       {"mode", REVIEW_MODE, REVIEW_GOOD}, {"type", REVIEW_TYPE, REVIEW_GOOD});
}

static void test_links_fifos_and_sockets(void **state)
{
	struct review_fixture *fixture = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
	int FD_CLEANUP listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(symlinkat("old", fixture->host, "link"), 0);
	assert_int_equal(symlinkat("same", fixture->host, "same"), 0);
	assert_int_equal(mkfifoat(fixture->host, "pipe", 0644), 0);
	fixture_note_base(fixture, "link");
	fixture_note_base(fixture, "same");
	fixture_note_base(fixture, "pipe");
	assert_int_equal(symlinkat("new", fixture->upper, "link"), 0);
	assert_int_equal(symlinkat("same", fixture->upper, "same"), 0);
	/* Nobody ever writes to it: who opened it would hang. */
	assert_int_equal(mkfifoat(fixture->upper, "pipe", 0644), 0);
	assert_int_equal(mkfifoat(fixture->upper, "pipe2", 0644), 0);
	assert_int_equal(fchdir(fixture->upper), 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	EXPECT_CHANGES(fixture, NULL, {"link", REVIEW_CHANGED, REVIEW_GOOD},
		       {"pipe2", REVIEW_CREATED, REVIEW_GOOD},
		       {"socket", REVIEW_CREATED, REVIEW_GOOD});
}

static void test_deleted_directory_with_everything_below(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_mkdir(fixture->host, "d", 0755);
	fixture_mkdir(fixture->host, "d/e", 0755);
	fixture_write(fixture->host, "d/e/f", "text", 0644);
	fixture_write(fixture->host, "d-e", "text", 0644);
	fixture_note_base(fixture, "d/e/f");
	fixture_note_base(fixture, "d/e");
	fixture_delete(fixture, "d");
	EXPECT_CHANGES(fixture, NULL, {"d", REVIEW_DELETED, REVIEW_GOOD},
		       {"d/e", REVIEW_DELETED, REVIEW_GOOD},
		       {"d/e/f", REVIEW_DELETED, REVIEW_GOOD});
	/* What the host puts there meanwhile was never the guest's to delete. */
	fixture_write(fixture->host, "d/e/mine", "text", 0644);
	EXPECT_CHANGES(fixture, NULL, {"d", REVIEW_DELETED, REVIEW_GOOD},
		       {"d/e", REVIEW_DELETED, REVIEW_GOOD}, {"d/e/f", REVIEW_DELETED, REVIEW_GOOD},
		       {"d/e/mine", REVIEW_DELETED, REVIEW_HOST_CREATED});
}

static void test_opaque_directory_hides_all(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_mkdir(fixture->host, "d", 0755);
	fixture_mkdir(fixture->host, "d/e", 0755);
	fixture_write(fixture->host, "d/e/f", "text", 0644);
	fixture_write(fixture->host, "d/g", "text", 0644);
	fixture_note_base(fixture, "d");
	fixture_note_base(fixture, "d/e");
	fixture_note_base(fixture, "d/e/f");
	fixture_note_base(fixture, "d/g");
	fixture_mkdir(fixture->upper, "d", 0755);
	fixture_mkdir(fixture->upper, "d/e", 0755);
	fixture_write(fixture->upper, "d/e/new", "text", 0644);
	EXPECT_CHANGES(fixture, NULL, {"d/e/new", REVIEW_CREATED, REVIEW_GOOD});
	fixture_set_opaque(fixture, "d");
	/* Directories in it hide what the host has as well. */
	EXPECT_CHANGES(fixture, NULL, {"d/e/f", REVIEW_DELETED, REVIEW_GOOD},
		       {"d/e/new", REVIEW_CREATED, REVIEW_GOOD},
		       {"d/g", REVIEW_DELETED, REVIEW_GOOD});
	/* What guests cannot see they cannot delete either. */
	fixture_write(fixture->host, "d/secret", "text", 0644);
	EXPECT_CHANGES(fixture, NULL, {"d/e/f", REVIEW_DELETED, REVIEW_GOOD},
		       {"d/e/new", REVIEW_CREATED, REVIEW_GOOD},
		       {"d/g", REVIEW_DELETED, REVIEW_GOOD});
}

static void test_directory_becomes_file_and_back(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_mkdir(fixture->host, "d", 0755);
	fixture_write(fixture->host, "d/f", "text", 0644);
	fixture_write(fixture->host, "file", "text", 0644);
	fixture_note_base(fixture, "d/f");
	fixture_change(fixture, "d", "a file now", 0644);
	fixture_note_base(fixture, "file");
	fixture_mkdir(fixture->upper, "file", 0755);
	fixture_write(fixture->upper, "file/inside", "", 0644);
	EXPECT_CHANGES(fixture, NULL, {"d", REVIEW_TYPE, REVIEW_GOOD},
		       {"d/f", REVIEW_DELETED, REVIEW_GOOD}, {"file", REVIEW_TYPE, REVIEW_GOOD},
		       {"file/inside", REVIEW_CREATED, REVIEW_GOOD});
}

static void test_set_id_bits_are_no_change(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_mkdir(fixture->host, "d", 02775);
	fixture_note_base(fixture, "d");
	fixture_mkdir(fixture->upper, "d", 0775);
	EXPECT_NO_CHANGES(fixture);
}

static void test_every_edit_of_the_host_conflicts(void **state)
{
	static const char *const edits[] = {
		"echo longer text >f",           /* size */
		"printf new >f.tmp; mv f.tmp f", /* another file */
		"chmod 600 f",
		"touch -d 2001-01-01 f",
		"ln f other", /* the time of change alone */
	};
	struct review_fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		char command[64];

		snprintf(command, sizeof(command), "cd host && %s", edits[i]);
		fixture_shell(fixture, "cd host && rm -f f other && printf old >f && chmod 644 f");
		fixture_change(fixture, "f", "guest", 0644);
		EXPECT_CHANGES(fixture, NULL, {"f", REVIEW_CHANGED, REVIEW_GOOD});
		fixture_shell(fixture, command);
		EXPECT_CHANGES(fixture, NULL, {"f", REVIEW_CHANGED, REVIEW_HOST_CHANGED});
	}
	fixture_shell(fixture, "cd host && rm f && mkdir f");
	EXPECT_CHANGES(fixture, NULL, {"f", REVIEW_TYPE, REVIEW_HOST_CHANGED});
	fixture_shell(fixture, "cd host && rmdir f && ln -s /etc/passwd f");
	EXPECT_CHANGES(fixture, NULL, {"f", REVIEW_TYPE, REVIEW_HOST_CHANGED});
	fixture_shell(fixture, "cd host && rm f");
	EXPECT_CHANGES(fixture, NULL, {"f", REVIEW_CREATED, REVIEW_HOST_DELETED});
}

static void test_the_same_on_both_sides_is_no_conflict(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->host, "f", "old", 0644);
	fixture_write(fixture->host, "gone", "old", 0644);
	fixture_change(fixture, "f", "new", 0644);
	fixture_delete(fixture, "gone");
	fixture_write(fixture->upper, "made", "text", 0644);
	fixture_shell(fixture, "cd host && printf new >f && rm gone && printf text >made");
	EXPECT_NO_CHANGES(fixture);
	fixture_shell(fixture, "cd host && printf other >made");
	EXPECT_CHANGES(fixture, NULL, {"made", REVIEW_CHANGED, REVIEW_HOST_CREATED});
}

static void test_names_in_a_directory_do_not_conflict_with_it(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_mkdir(fixture->host, "d", 0755);
	fixture_copy_directory(fixture, "d");
	fixture_write(fixture->upper, "d/guest", "", 0644);
	fixture_write(fixture->host, "d/host", "", 0644);
	EXPECT_CHANGES(fixture, NULL, {"d/guest", REVIEW_CREATED, REVIEW_GOOD});
	/* But its mode does where the guest changed it too. */
	fixture_shell(fixture, "chmod 711 host/d");
	assert_int_equal(fchmodat(fixture->upper, "d", 0700, 0), 0);
	EXPECT_CHANGES(fixture, NULL, {"d", REVIEW_MODE, REVIEW_HOST_CHANGED},
		       {"d/guest", REVIEW_CREATED, REVIEW_GOOD});
	/* And what was put in a directory that is gone has no place. */
	fixture_shell(fixture, "rm -r host/d");
	EXPECT_CHANGES(fixture, NULL, {"d", REVIEW_CREATED, REVIEW_HOST_DELETED},
		       {"d/guest", REVIEW_CREATED, REVIEW_GOOD});
}

static void test_hidden_and_protected(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_mkdir(fixture->upper, "guarded", 0755);
	fixture_write(fixture->upper, "guarded/hook", "", 0755);
	fixture_write(fixture->upper, "secret", "", 0644);
	EXPECT_CHANGES(fixture, NULL, {"guarded", REVIEW_CREATED, REVIEW_PROTECTED},
		       {"guarded/hook", REVIEW_CREATED, REVIEW_PROTECTED},
		       {"secret", REVIEW_CREATED, REVIEW_HIDDEN});
	/* A directory that holds something hidden cannot be deleted. */
	fixture_mkdir(fixture->host, "d", 0755);
	fixture_write(fixture->host, "d/secret", "", 0644);
	fixture_delete(fixture, "d");
	EXPECT_CHANGES(fixture, "d", {"d", REVIEW_DELETED, REVIEW_GOOD},
		       {"d/secret", REVIEW_DELETED, REVIEW_HIDDEN});
}

static void test_paths_restrict(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_mkdir(fixture->upper, "a", 0755);
	fixture_mkdir(fixture->upper, "a/b", 0755);
	fixture_write(fixture->upper, "a/b/c", "", 0644);
	fixture_write(fixture->upper, "a/x", "", 0644);
	fixture_write(fixture->upper, "a/b.c", "", 0644);
	fixture_write(fixture->upper, "ab", "", 0644);
	/* The directories that it needs come with it. */
	EXPECT_CHANGES(fixture, "a/b/c", {"a", REVIEW_CREATED, REVIEW_GOOD},
		       {"a/b", REVIEW_CREATED, REVIEW_GOOD},
		       {"a/b/c", REVIEW_CREATED, REVIEW_GOOD});
	EXPECT_CHANGES(fixture, "a/b", {"a", REVIEW_CREATED, REVIEW_GOOD},
		       {"a/b", REVIEW_CREATED, REVIEW_GOOD},
		       {"a/b/c", REVIEW_CREATED, REVIEW_GOOD});
	EXPECT_CHANGES(fixture, "ab", {"ab", REVIEW_CREATED, REVIEW_GOOD});
	share_expect(fixture, "nowhere", &(const struct expected_change){0});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(test_nothing),
		TEST(test_each_kind),
		TEST(test_links_fifos_and_sockets),
		TEST(test_deleted_directory_with_everything_below),
		TEST(test_opaque_directory_hides_all),
		TEST(test_directory_becomes_file_and_back),
		TEST(test_set_id_bits_are_no_change),
		TEST(test_every_edit_of_the_host_conflicts),
		TEST(test_the_same_on_both_sides_is_no_conflict),
		TEST(test_names_in_a_directory_do_not_conflict_with_it),
		TEST(test_hidden_and_protected),
		TEST(test_paths_restrict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

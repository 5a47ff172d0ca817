/* SPDX-License-Identifier: Apache-2.0 */
/* Changes as they are made in the host's tree. */
#include "tests/unit/review_share.h"

#include <seccomp.h>

#include "vmm/review/apply.h"
#include "vmm/review/place.h"
#include "vmm/review/upper.h"

struct applied {
	size_t count;
	char last[256];
};

static void count_applied(void *context, const struct review_change *change)
{
	struct applied *applied = context;

	applied->count++;
	snprintf(applied->last, sizeof(applied->last), "%s", change->path);
}

/* Applies the changes at @path (NULL: all), none of which has a problem. */
static void apply(const struct review_fixture *fixture, const char *path, size_t expected)
{
	const struct review_change *failed;
	struct applied applied = {0};
	struct review_changes changes;
	struct review_share share;

	share_open(&share, fixture);
	share_find(&share, path, &changes);
	for (size_t i = 0; i < changes.count; i++) {
		if (changes.list[i].problem)
			fail_msg("%s: problem %d", changes.list[i].path, changes.list[i].problem);
	}
	assert_int_equal(review_apply(&share, &changes, count_applied, &applied, &failed), 0);
	assert_null(failed);
	assert_int_equal(applied.count, expected);
	review_changes_destroy(&changes);
	share_close(&share);
}

/* Nothing that we made for a while is left in the host's tree. */
static void expect_no_leftovers(const struct review_fixture *fixture)
{
	fixture_shell(fixture, "test -z \"$(find host -name '.mvagent*')\"");
}

static void test_all_kinds(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->host, "changed", "old", 0600);
	fixture_write(fixture->host, "deleted", "old", 0644);
	fixture_write(fixture->host, "mode", "same", 0644);
	fixture_change(fixture, "changed", "new", 04755);
	fixture_delete(fixture, "deleted");
	fixture_change(fixture, "mode", "same", 0666);
	fixture_mkdir(fixture->upper, "d", 0711);
	fixture_mkdir(fixture->upper, "d/e", 0755);
	fixture_write(fixture->upper, "d/e/f", "text", 0666);
	assert_int_equal(symlinkat("../x", fixture->upper, "d/link"), 0);
	assert_int_equal(mkfifoat(fixture->upper, "d/pipe", 0600), 0);
	assert_int_equal(fchmodat(fixture->upper, "d/pipe", 0622, 0), 0);
	apply(fixture, NULL, 8);
	fixture_expect_content(fixture->host, "changed", "new");
	assert_int_equal(fixture_mode(fixture->host, "changed"), S_IFREG | 0755);
	fixture_expect_absent(fixture->host, "deleted");
	assert_int_equal(fixture_mode(fixture->host, "mode"), S_IFREG | 0666);
	assert_int_equal(fixture_mode(fixture->host, "d"), S_IFDIR | 0711);
	fixture_expect_content(fixture->host, "d/e/f", "text");
	assert_int_equal(fixture_mode(fixture->host, "d/e/f"), S_IFREG | 0666);
	assert_int_equal(fixture_mode(fixture->host, "d/pipe"), S_IFIFO | 0622);
	assert_true(S_ISLNK(fixture_mode(fixture->host, "d/link")));
	expect_no_leftovers(fixture);
	/* Applied changes are forgotten, the directories with them. */
	EXPECT_NO_CHANGES(fixture);
	fixture_shell(fixture, "test -z \"$(ls -A upper/)\"");
}

static void test_types_change(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "cd host && mkdir -p d/e && touch d/e/f d/g file link2 && "
			       "ln -s nowhere link");
	fixture_note_base(fixture, "d/e/f");
	fixture_note_base(fixture, "d/e");
	fixture_note_base(fixture, "d/g");
	fixture_change(fixture, "d", "file", 0644);
	fixture_note_base(fixture, "file");
	fixture_mkdir(fixture->upper, "file", 0755);
	fixture_write(fixture->upper, "file/in", "text", 0644);
	fixture_change(fixture, "link", "no link", 0644);
	fixture_note_base(fixture, "link2");
	assert_int_equal(symlinkat("/etc/passwd", fixture->upper, "link2"), 0);
	apply(fixture, NULL, 8);
	fixture_expect_content(fixture->host, "d", "file");
	fixture_expect_content(fixture->host, "file/in", "text");
	fixture_expect_content(fixture->host, "link", "no link");
	assert_true(S_ISLNK(fixture_mode(fixture->host, "link2")));
	fixture_expect_absent(fixture->host, "nowhere");
	expect_no_leftovers(fixture);
	EXPECT_NO_CHANGES(fixture);
}

/* As on a file system that knows neither files without a name nor the exchange of names, and that
 * copies nothing by itself. */
static void apply_plainly(const struct review_fixture *fixture)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	assert_non_null(filter);
	assert_int_equal(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(renameat2), 1,
					  SCMP_A4(SCMP_CMP_EQ, RENAME_EXCHANGE, 0)),
			 0);
	assert_int_equal(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EOPNOTSUPP), SCMP_SYS(openat), 1,
					  SCMP_A2(SCMP_CMP_MASKED_EQ, O_TMPFILE, O_TMPFILE)),
			 0);
	assert_int_equal(
		seccomp_rule_add(filter, SCMP_ACT_ERRNO(EXDEV), SCMP_SYS(copy_file_range), 0), 0);
	assert_int_equal(seccomp_load(filter), 0);
	seccomp_release(filter);
	apply(fixture, NULL, 6);
}

static void test_plain_file_system(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "cd host && mkdir d && touch d/f file changed");
	fixture_note_base(fixture, "d/f");
	fixture_change(fixture, "d", "file", 0644);
	fixture_note_base(fixture, "file");
	fixture_mkdir(fixture->upper, "file", 0755);
	fixture_write(fixture->upper, "file/in", "text", 0644);
	fixture_change(fixture, "changed", "new", 0640);
	assert_int_equal(symlinkat("nowhere", fixture->upper, "link"), 0);
	fixture_run_child(fixture, false, apply_plainly);
	fixture_expect_content(fixture->host, "d", "file");
	fixture_expect_content(fixture->host, "file/in", "text");
	fixture_expect_content(fixture->host, "changed", "new");
	assert_int_equal(fixture_mode(fixture->host, "changed"), S_IFREG | 0640);
	assert_true(S_ISLNK(fixture_mode(fixture->host, "link")));
	expect_no_leftovers(fixture);
	EXPECT_NO_CHANGES(fixture);
}

static void test_parts_of_a_deleted_directory(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "cd host && mkdir d && touch d/a d/b");
	fixture_note_base(fixture, "d/a");
	fixture_note_base(fixture, "d/b");
	fixture_delete(fixture, "d");
	apply(fixture, "d/a", 1);
	fixture_expect_absent(fixture->host, "d/a");
	fixture_expect_content(fixture->host, "d/b", "");
	EXPECT_CHANGES(fixture, NULL, {"d", REVIEW_DELETED, REVIEW_GOOD},
		       {"d/b", REVIEW_DELETED, REVIEW_GOOD});
	apply(fixture, NULL, 2);
	fixture_expect_absent(fixture->host, "d");
	EXPECT_NO_CHANGES(fixture);
}

static void test_parts_of_an_opaque_directory(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "cd host && mkdir -p d/e && touch d/a d/b d/e/f d/secret");
	fixture_note_base(fixture, "d");
	fixture_note_base(fixture, "d/a");
	fixture_note_base(fixture, "d/b");
	fixture_note_base(fixture, "d/e");
	fixture_note_base(fixture, "d/e/f");
	fixture_mkdir(fixture->upper, "d", 0755);
	fixture_mkdir(fixture->upper, "d/e", 0555);
	fixture_write(fixture->upper, "d/new", "1", 0644);
	fixture_write(fixture->upper, "d/new2", "2", 0644);
	fixture_set_opaque(fixture, "d");
	apply(fixture, "d/new", 1);
	/* It is the host's now, and not among what the directory hides. */
	EXPECT_CHANGES(fixture, NULL, {"d/a", REVIEW_DELETED, REVIEW_GOOD},
		       {"d/b", REVIEW_DELETED, REVIEW_GOOD}, {"d/e", REVIEW_MODE, REVIEW_GOOD},
		       {"d/e/f", REVIEW_DELETED, REVIEW_GOOD},
		       {"d/new2", REVIEW_CREATED, REVIEW_GOOD});
	assert_int_equal(unlinkat(fixture->host, "d/new", 0), 0);
	apply(fixture, "d/a", 1);
	apply(fixture, NULL, 4);
	fixture_shell(fixture, "test \"$(cd host && find . | sort | xargs)\" = "
			       "'. ./d ./d/e ./d/new2 ./d/secret'");
	assert_int_equal(fixture_mode(fixture->host, "d/e"), S_IFDIR | 0555);
	EXPECT_NO_CHANGES(fixture);
}

static void test_directories_keep_the_group(void **state)
{
	struct review_fixture *fixture = *state;

	assert_int_equal(fchmodat(fixture->host, ".", 02775, 0), 0);
	fixture_mkdir(fixture->host, "d", 02775);
	fixture_note_base(fixture, "d");
	fixture_mkdir(fixture->upper, "d", 0700);
	fixture_mkdir(fixture->upper, "new", 0755);
	apply(fixture, NULL, 2);
	assert_int_equal(fixture_mode(fixture->host, "d"), S_IFDIR | 02700);
	assert_int_equal(fixture_mode(fixture->host, "new"), S_IFDIR | 02755);
	EXPECT_NO_CHANGES(fixture);
}

static void test_directory_without_permissions(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_mkdir(fixture->upper, "d", 0755);
	fixture_write(fixture->upper, "d/f", "text", 0);
	assert_int_equal(fchmodat(fixture->upper, "d", 0555, 0), 0);
	apply(fixture, NULL, 2);
	assert_int_equal(fixture_mode(fixture->host, "d"), S_IFDIR | 0555);
	assert_int_equal(fixture_mode(fixture->host, "d/f"), S_IFREG | 0);
	EXPECT_NO_CHANGES(fixture);
}

static void apply_two(const struct review_fixture *fixture)
{
	apply(fixture, NULL, 2);
}

static void test_directory_without_permissions_as_user(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_mkdir(fixture->upper, "d", 0755);
	fixture_write(fixture->upper, "d/f", "text", 0);
	assert_int_equal(fchmodat(fixture->upper, "d", 0555, 0), 0);
	fixture_as_user(fixture, apply_two);
	assert_int_equal(fixture_mode(fixture->host, "d"), S_IFDIR | 0555);
	fixture_shell(fixture,
		      "chmod 400 host/d/f && test \"$(cat host/d/f)\" = text && chmod 0 host/d/f");
	assert_int_equal(fixture_mode(fixture->host, "d/f"), S_IFREG | 0);
	EXPECT_NO_CHANGES(fixture);
}

/* A link on the host where the guest has a directory is no way out. */
static void test_links_are_not_followed(void **state)
{
	struct review_fixture *fixture = *state;
	const struct review_change *failed;
	struct applied applied = {0};
	struct review_changes changes;
	struct review_share share;

	fixture_shell(fixture, "mkdir outside host/d && echo canary >outside/f");
	fixture_copy_directory(fixture, "d");
	fixture_write(fixture->upper, "d/f", "guest", 0644);
	share_open(&share, fixture);
	share_find(&share, NULL, &changes);
	assert_int_equal(changes.count, 1);
	fixture_shell(fixture, "rmdir host/d && ln -s ../outside host/d");
	assert_int_equal(review_apply(&share, &changes, count_applied, &applied, &failed), -ESTALE);
	assert_string_equal(failed->path, "d/f");
	fixture_shell(fixture, "test \"$(cat outside/f)\" = canary && test \"$(ls outside)\" = f");
	/* Nor a link with the name of a file. */
	review_changes_destroy(&changes);
	fixture_shell(fixture, "rm host/d && mkdir host/d && ln -s ../../outside/f host/d/f");
	share_find(&share, NULL, &changes);
	assert_int_equal(changes.list[0].problem, REVIEW_HOST_CREATED);
	changes.list[0].problem = REVIEW_GOOD;
	assert_int_equal(review_apply(&share, &changes, count_applied, &applied, &failed), 0);
	fixture_expect_content(fixture->host, "d/f", "guest");
	fixture_shell(fixture, "test \"$(cat outside/f)\" = canary");
	review_changes_destroy(&changes);
	share_close(&share);
}

static void test_edits_in_the_last_moment_stop_it(void **state)
{
	static const char *const edits[] = {"echo mine >host/b", "rm host/b", "echo mine >host/c",
					    "echo mine >host/d/mine", "mkdir host/c"};
	static const char *const left[] = {"grep -q mine host/b", "! test -e host/b",
					   "grep -q mine host/c", "grep -q mine host/d/mine",
					   "test -d host/c"};
	struct review_fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		const struct review_change *failed;
		struct applied applied = {0};
		struct review_changes changes;
		struct review_share share;

		fixture_begin_run(fixture);
		fixture_shell(fixture,
			      "rm -rf host/* && mkdir host/d && echo a >host/a && echo b >host/b");
		fixture_change(fixture, "a", "guest", 0644);
		fixture_change(fixture, "b", "guest", 0644);
		fixture_write(fixture->upper, "c", "guest", 0644);
		fixture_delete(fixture, "d");
		share_open(&share, fixture);
		share_find(&share, NULL, &changes);
		fixture_shell(fixture, edits[i]);
		assert_int_equal(review_apply(&share, &changes, count_applied, &applied, &failed),
				 -ESTALE);
		assert_non_null(failed);
		assert_true(failed > changes.list);
		assert_true(changes.list[0].done);
		fixture_expect_content(fixture->host, "a", "guest");
		/* What the user made is there as it was made. */
		fixture_shell(fixture, left[i]);
		expect_no_leftovers(fixture);
		review_changes_destroy(&changes);
		share_close(&share);
	}
}

/* What was made on the host, but not yet forgotten when the machine stopped, is no conflict. */
static void test_after_a_crash(void **state)
{
	struct review_fixture *fixture = *state;
	struct review_changes changes;
	struct review_share share;

	fixture_shell(fixture, "cd host && echo old >changed && echo old >deleted");
	fixture_change(fixture, "changed", "new", 0644);
	fixture_delete(fixture, "deleted");
	fixture_mkdir(fixture->upper, "d", 0755);
	fixture_write(fixture->upper, "d/created", "new", 0644);
	share_open(&share, fixture);
	share_find(&share, NULL, &changes);
	assert_int_equal(changes.count, 4);
	assert_int_equal(place_object(&share, &changes.list[0]), 0);
	assert_int_equal(place_object(&share, &changes.list[1]), 0);
	assert_int_equal(place_object(&share, &changes.list[2]), 0);
	EXPECT_CHANGES(fixture, NULL, {"deleted", REVIEW_DELETED, REVIEW_GOOD});
	assert_int_equal(place_deletion(&share, &changes.list[3]), 0);
	EXPECT_NO_CHANGES(fixture);
	review_changes_destroy(&changes);
	share_close(&share);
}

static void test_attributes_and_holes(void **state)
{
	struct review_fixture *fixture = *state;
	int FD_CLEANUP file = -1;
	struct stat status;
	char value[8];

	fixture_write(fixture->upper, "sparse", "begin", 0644);
	file = openat(fixture->upper, "sparse", O_RDWR | O_CLOEXEC);
	assert_int_equal(ftruncate(file, 1LL << 40), 0);
	assert_int_equal(pwrite(file, "middle", 6, 1LL << 39), 6);
	assert_int_equal(fsetxattr(file, "user.mine", "value", 5, 0), 0);
	assert_int_equal(fsetxattr(file, REVIEW_XATTR_ORIGIN, "1:2", 3, 0), 0);
	apply(fixture, NULL, 1);
	fd_close(&file);
	file = openat(fixture->host, "sparse", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(file, &status), 0);
	assert_true(status.st_size == 1LL << 40);
	assert_true(status.st_blocks < 1000);
	assert_int_equal(pread(file, value, 6, 1LL << 39), 6);
	assert_memory_equal(value, "middle", 6);
	assert_int_equal(fgetxattr(file, "user.mine", value, sizeof(value)), 5);
	assert_memory_equal(value, "value", 5);
	assert_int_equal(fgetxattr(file, REVIEW_XATTR_ORIGIN, value, sizeof(value)), -1);
}

static void test_strange_names(void **state)
{
	static const char *const names[] = {"...",      "..a", "a\nb",   "-rf", "\033[2J",
					    "\xff\xfe", "%00", "a\\\"b", " "};
	struct review_fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		fixture_write(fixture->upper, names[i], names[i], 0644);
	apply(fixture, NULL, sizeof(names) / sizeof(names[0]));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		fixture_expect_content(fixture->host, names[i], names[i]);
	EXPECT_NO_CHANGES(fixture);
}

/* Whiteouts may be links of one inode; each is a deletion of its own. */
static void test_linked_whiteouts(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "cd host && echo x >a && ln a b");
	fixture_note_base(fixture, "b");
	fixture_delete(fixture, "a");
	assert_int_equal(linkat(fixture->upper, "a", fixture->upper, "b", 0), 0);
	apply(fixture, NULL, 2);
	fixture_expect_absent(fixture->host, "a");
	fixture_expect_absent(fixture->host, "b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(test_all_kinds),
		TEST(test_types_change),
		TEST(test_plain_file_system),
		TEST(test_parts_of_a_deleted_directory),
		TEST(test_parts_of_an_opaque_directory),
		TEST(test_directories_keep_the_group),
		TEST(test_directory_without_permissions),
		TEST(test_directory_without_permissions_as_user),
		TEST(test_links_are_not_followed),
		TEST(test_edits_in_the_last_moment_stop_it),
		TEST(test_after_a_crash),
		TEST(test_attributes_and_holes),
		TEST(test_strange_names),
		TEST(test_linked_whiteouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Trees that are made to break who reads them. */
#include "tests/unit/review_share.h"

#include <sched.h>
#include <sys/mount.h>

#include "vmm/review/apply.h"
#include "vmm/review/upper.h"

/* Enough for paths that are longer than PATH_MAX. */
#define DEPTH 2100

/* Makes @depth directories called @name in one another, and a file "f" in the last. */
static void make_deep(int directory, const char *name, unsigned int depth)
{
	int here = fcntl(directory, F_DUPFD_CLOEXEC, 0);

	for (unsigned int i = 0; i < depth; i++) {
		int next;

		fixture_mkdir(here, name, 0755);
		next = openat(here, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		fd_close(&here);
		here = next;
	}
	fixture_write(here, "f", "deep", 0644);
	fd_close(&here);
}

static void count_applied(void *context, const struct review_change *change)
{
	(void)change;
	++*(size_t *)context;
}

static void test_deep_tree(void **state)
{
	struct review_fixture *fixture = *state;
	const struct review_change *failed;
	struct review_changes changes;
	struct review_share share;
	size_t applied = 0;

	make_deep(fixture->upper, "d", DEPTH);
	share_open(&share, fixture);
	share_find(&share, NULL, &changes);
	assert_int_equal(changes.count, DEPTH + 1);
	/* Longer than any path that the kernel takes. */
	assert_int_equal(strlen(changes.list[DEPTH].path), 2 * DEPTH + 1);
	assert_int_equal(review_apply(&share, &changes, count_applied, &applied, &failed), 0);
	assert_int_equal(applied, DEPTH + 1);
	review_changes_destroy(&changes);
	share_find(&share, NULL, &changes);
	assert_int_equal(changes.count, 0);
	review_changes_destroy(&changes);
	share_close(&share);
	assert_int_equal(upper_remove_contents(fixture->host), 0);
	fixture_shell(fixture, "test -z \"$(ls -A host upper/ | grep -v :)\"");
}

/* What has too long a path is named, and keeps nothing else from being applied. */
static void test_too_deep_tree(void **state)
{
	struct review_fixture *fixture = *state;
	struct review_changes changes;
	struct review_share share;
	char name[201];

	memset(name, 'x', 200);
	name[200] = '\0';
	make_deep(fixture->upper, name, 300);
	fixture_write(fixture->upper, "a", "text", 0644);
	share_open(&share, fixture);
	share_find(&share, NULL, &changes);
	/* "a", the directories, and the deepest of them once more. */
	assert_true(changes.count > 70 && changes.count < 90);
	assert_int_equal(changes.list[0].problem, REVIEW_GOOD);
	assert_int_equal(changes.list[changes.count - 1].problem, REVIEW_TOO_DEEP);
	review_changes_destroy(&changes);
	share_find(&share, "a", &changes);
	assert_int_equal(changes.count, 1);
	review_changes_destroy(&changes);
	share_close(&share);
	assert_int_equal(upper_remove_contents(fixture->upper), 0);
	fixture_shell(fixture, "test -z \"$(ls -A upper/)\"");
}

static void test_links_in_upper_lead_nowhere(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "mkdir outside && echo canary >outside/f && mkdir host/d && "
			       "echo old >host/d/f");
	/* A link where the guest's directory should be is a link. */
	fixture_note_base(fixture, "d");
	fixture_note_base(fixture, "d/f");
	assert_int_equal(symlinkat("../../../../../../outside", fixture->upper, "d"), 0);
	assert_int_equal(symlinkat("/", fixture->upper, "root"), 0);
	assert_int_equal(symlinkat("root", fixture->upper, "loop"), 0);
	EXPECT_CHANGES(fixture, NULL, {"d", REVIEW_TYPE, REVIEW_GOOD},
		       {"d/f", REVIEW_DELETED, REVIEW_GOOD}, {"loop", REVIEW_CREATED, REVIEW_GOOD},
		       {"root", REVIEW_CREATED, REVIEW_GOOD});
	assert_int_equal(upper_remove_contents(fixture->upper), 0);
	fixture_expect_content(AT_FDCWD, "outside/f", "canary\n");
}

static void test_devices_are_refused(void **state)
{
	struct review_fixture *fixture = *state;

	if (mknodat(fixture->upper, "null", S_IFCHR | 0666, makedev(1, 3)))
		skip(); /* needs a privilege */
	assert_int_equal(mknodat(fixture->upper, "disk", S_IFBLK | 0666, makedev(0, 0)), 0);
	EXPECT_CHANGES(fixture, NULL, {"disk", REVIEW_CHANGED, REVIEW_DEVICE},
		       {"null", REVIEW_CHANGED, REVIEW_DEVICE});
}

/* Whiteouts and marks that stand for nothing. */
static void test_whiteouts_of_nothing(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_whiteout(fixture, "never");
	fixture_mkdir(fixture->upper, "d", 0755);
	fixture_set_opaque(fixture, "d");
	fixture_whiteout(fixture, "d/never");
	fixture_set_opaque(fixture, ".");
	EXPECT_CHANGES(fixture, NULL, {"d", REVIEW_CREATED, REVIEW_GOOD});
	fixture_write(fixture->host, "f", "", 0644);
	EXPECT_CHANGES(fixture, NULL, {"d", REVIEW_CREATED, REVIEW_GOOD},
		       {"f", REVIEW_DELETED, REVIEW_HOST_CREATED});
}

static void find_unreadable(const struct review_fixture *fixture)
{
	/* Root may read everything. */
	if (geteuid() == 0)
		return;
	fixture_change(fixture, "f", "new", 0);
	EXPECT_CHANGES(fixture, NULL, {"closed", REVIEW_CREATED, REVIEW_GOOD},
		       {"closed", REVIEW_CHANGED, REVIEW_UNREADABLE},
		       {"f", REVIEW_CHANGED, REVIEW_GOOD},
		       {"unsearchable", REVIEW_CREATED, REVIEW_GOOD},
		       {"unsearchable/f", REVIEW_CHANGED, REVIEW_UNREADABLE});
}

/* What the user may not read on the host. */
static void find_unreadable_host(const struct review_fixture *fixture)
{
	if (geteuid() == 0)
		return;
	EXPECT_CHANGES(fixture, NULL, {"closed", REVIEW_DELETED, REVIEW_HOST_CREATED},
		       {"closed", REVIEW_CHANGED, REVIEW_UNREADABLE},
		       {"f", REVIEW_CHANGED, REVIEW_UNREADABLE},
		       {"unsearchable", REVIEW_DELETED, REVIEW_HOST_CREATED},
		       {"unsearchable/f", REVIEW_CHANGED, REVIEW_UNREADABLE});
}

static void test_host_without_permissions(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "cd host && mkdir closed unsearchable && echo x >closed/f && "
			       "echo x >unsearchable/f && echo x >f && chmod 0 closed f && "
			       "chmod 444 unsearchable");
	fixture_write(fixture->upper, "f", "y\n", 0644);
	fixture_whiteout(fixture, "closed");
	fixture_whiteout(fixture, "unsearchable");
	fixture_as_user(fixture, find_unreadable_host);
}

static void find_mounted(const struct review_fixture *fixture)
{
	struct review_fixture inside = *fixture;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "host/d", "tmpfs", 0, NULL))
		return; /* needs a privilege */
	fixture_write(AT_FDCWD, "host/d/f", "elsewhere", 0644);
	/* A descriptor leads into the mounts of the time when it was opened. */
	inside.host = open("host", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(inside.host >= 0);
	EXPECT_CHANGES(&inside, NULL, {"d", REVIEW_CHANGED, REVIEW_MOUNTED});
}

/* What is mounted in the host's directory is not part of it. */
static void test_mounts_are_not_entered(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_mkdir(fixture->host, "d", 0755);
	fixture_copy_directory(fixture, "d");
	fixture_write(fixture->upper, "d/f", "guest", 0644);
	fixture_run_child(fixture, false, find_mounted);
}

static void remove_all(const struct review_fixture *fixture)
{
	assert_int_equal(upper_remove_contents(fixture->upper), 0);
}

static void test_permissions_taken_away(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->host, "f", "old", 0644);
	fixture_mkdir(fixture->upper, "closed", 0755);
	fixture_mkdir(fixture->upper, "closed/closed", 0755);
	fixture_write(fixture->upper, "closed/closed/f", "", 0);
	fixture_mkdir(fixture->upper, "unsearchable", 0755);
	fixture_write(fixture->upper, "unsearchable/f", "", 0644);
	assert_int_equal(fchmodat(fixture->upper, "closed/closed", 0, 0), 0);
	assert_int_equal(fchmodat(fixture->upper, "closed", 0, 0), 0);
	assert_int_equal(fchmodat(fixture->upper, "unsearchable", 0444, 0), 0);
	fixture_as_user(fixture, find_unreadable);
	fixture_as_user(fixture, remove_all);
	fixture_shell(fixture, "test -z \"$(ls -A upper/)\"");
}

static void test_many_names(void **state)
{
	struct review_fixture *fixture = *state;
	struct review_changes changes;
	struct review_share share;

	fixture_shell(fixture, "mkdir host/d && cd host/d && seq 3000 | xargs touch");
	fixture_shell(fixture, "mkdir upper/d && cd upper/d && seq 3001 6000 | xargs touch");
	fixture_note_base(fixture, "d");
	fixture_set_opaque(fixture, "d");
	share_open(&share, fixture);
	share_find(&share, NULL, &changes);
	assert_int_equal(changes.count, 6000);
	for (size_t i = 1; i < changes.count; i++)
		assert_true(tree_compare_paths(changes.list[i - 1].path, changes.list[i].path) < 0);
	review_changes_destroy(&changes);
	share_close(&share);
	assert_int_equal(upper_remove_contents(fixture->upper), 0);
	fixture_shell(fixture, "test -z \"$(ls -A upper/)\"");
}

static void test_names_in_the_way_of_removal(void **state)
{
	struct review_fixture *fixture = *state;

	/* Names that the removal itself would choose. */
	for (int i = 1; i < 6; i++) {
		char name[32];

		snprintf(name, sizeof(name), "removed-%d", i);
		make_deep(fixture->upper, name, 5);
	}
	assert_int_equal(upper_remove_contents(fixture->upper), 0);
	fixture_shell(fixture, "test -z \"$(ls -A upper/)\"");
}

static void test_names_must_be_names(void **state)
{
	static const char *const bad[] = {"", ".", "..", "a/b", "/"};
	struct review_fixture *fixture = *state;
	struct review_object object;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(tree_look(fixture->host, bad[i], &object), -EINVAL);
	assert_int_equal(tree_open_directory(fixture->host, "..", O_PATH), -EXDEV);
	assert_int_equal(tree_open_directory(fixture->host, "/", O_PATH), -EXDEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(test_deep_tree),
		TEST(test_too_deep_tree),
		TEST(test_links_in_upper_lead_nowhere),
		TEST(test_devices_are_refused),
		TEST(test_whiteouts_of_nothing),
		TEST(test_mounts_are_not_entered),
		TEST(test_permissions_taken_away),
		TEST(test_host_without_permissions),
		TEST(test_many_names),
		TEST(test_names_in_the_way_of_removal),
		TEST(test_names_must_be_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What mvagent-fs tells of the guest's changes: the files as they were and are, not how they came
 * to be so. */
#include "tests/unit/fs_harness.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include "vmm/base/fd.h"
#include "vmm/base/sha256.h"
#include "vmm/fs/journal_table.h"
#include "vmm/wire/fs_report.h"

#define REPORTS_MAX 600

struct fixture {
	struct harness *h;
	int reports_fd;
	unsigned int count;
	struct fs_report reports[REPORTS_MAX]; /* but the last */
	struct fs_report share;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct fs_config config = {.policy = policy_create()};
	char path[512];
	int pair[2];

	f->h = harness_create_place("/dev/shm");
	assert_int_equal(fd_create_socket_pair(SOCK_SEQPACKET, pair), 0);
	f->reports_fd = pair[0];
	config.journal_fd = pair[1];
	config.scan = true;
	assert_int_equal(policy_add_defaults(config.policy), 0);
	for (const char *const *name = (const char *const[]){"d", "d/sub", ".ssh", NULL}; *name;
	     name++) {
		harness_path(f->h, *name, path);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	harness_host_write(f->h, "a", "first");
	harness_host_write(f->h, "b", "second");
	harness_host_write(f->h, "d/c", "third");
	harness_host_write(f->h, "d/sub/e", "fourth");
	harness_host_write(f->h, "Makefile", "all:\n");
	harness_host_write(f->h, ".env", "secret");
	harness_host_write(f->h, ".exrc", "set");
	harness_serve(f->h, &config);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	harness_destroy(f->h);
	fd_close(&f->reports_fd);
	free(f);
	return 0;
}

/* The guest is gone: takes all reports. */
static void finish(struct fixture *f)
{
	uint8_t bytes[FS_REPORT_BYTES + 1];
	struct fs_report report;
	ssize_t length;
	bool last = false;

	fs_server_tell_changes(f->h->server);
	while ((length = recv(f->reports_fd, bytes, sizeof(bytes), 0)) > 0) {
		assert_false(last);
		assert_int_equal(fs_report_decode(&report, bytes, (size_t)length), 0);
		last = report.type == FS_REPORT_SHARE;
		if (last)
			f->share = report;
		else
			f->reports[f->count++] = report;
		assert_true(f->count < REPORTS_MAX);
	}
	assert_true(last);
}

static const struct fs_report *find(const struct fixture *f, uint32_t type, const char *path)
{
	for (unsigned int i = 0; i < f->count; i++) {
		if (f->reports[i].type == type && strcmp(f->reports[i].path, path) == 0)
			return &f->reports[i];
	}
	return NULL;
}

static unsigned int count_of(const struct fixture *f, uint32_t type)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < f->count; i++)
		count += f->reports[i].type == type;
	return count;
}

static void expect_hash(const uint8_t hash[SHA256_BYTES], const char *text)
{
	uint8_t wanted[SHA256_BYTES];

	sha256_of(text, strlen(text), wanted);
	assert_memory_equal(hash, wanted, SHA256_BYTES);
}

/* @before and @after: contents; NULL: there was or is no file. */
static void expect_change(const struct fixture *f, uint32_t kind, const char *path,
			  const char *before, const char *after)
{
	const struct fs_report *report = find(f, FS_REPORT_CHANGE, path);

	if (!report)
		fail_msg("no change of %s is told", path);
	assert_int_equal(report->kind, kind);
	assert_int_equal(!!(report->flags & FS_REPORT_BEFORE), before != NULL);
	assert_int_equal(!!(report->flags & FS_REPORT_AFTER), after != NULL);
	if (before) {
		assert_true(report->flags & FS_REPORT_HASH_BEFORE);
		assert_int_equal(report->size_before, strlen(before));
		expect_hash(report->hash_before, before);
	}
	if (after) {
		assert_true(report->flags & FS_REPORT_HASH_AFTER);
		assert_int_equal(report->size_after, strlen(after));
		expect_hash(report->hash_after, after);
	}
}

static uint64_t node(struct fixture *f, uint64_t parent, const char *name)
{
	uint64_t id;

	assert_int_equal(call_lookup(f->h, parent, name, &id), 0);
	return id;
}

static void write_file(struct fixture *f, uint64_t parent, const char *name, const char *text)
{
	uint32_t written;
	uint64_t id, fh;

	assert_int_equal(call_create(f->h, parent, name, O_RDWR | O_TRUNC, 0644, &id, &fh), 0);
	assert_int_equal(call_write(f->h, fh, 0, text, (uint32_t)strlen(text), 0, 0, &written), 0);
	assert_int_equal(call_release(f->h, FUSE_RELEASE, id, fh), 0);
}

static void test_nothing_done_is_nothing_told(void **state)
{
	struct fixture *f = *state;
	struct fuse_open_out out;
	uint64_t a = node(f, FUSE_ROOT_ID, "a");

	/* Opened to be written, and not written; permissions set to what they were. */
	struct fuse_setattr_in set = {.valid = FATTR_MODE, .mode = 0644};

	assert_int_equal(call_open(f->h, FUSE_OPEN, a, O_RDWR, &out), 0);
	assert_int_equal(call_release(f->h, FUSE_RELEASE, a, out.fh), 0);
	assert_int_equal(call_setattr(f->h, a, &set, NULL), 0);
	finish(f);
	assert_int_equal(f->count, 0);
	assert_int_equal(f->share.counts[FS_COUNT_OPENED], 1);
	assert_int_equal(f->share.counts[FS_COUNT_MODES], 1);
	assert_int_equal(f->share.counts[FS_COUNT_HIDDEN], 2);
	assert_int_equal(f->share.counts[FS_COUNT_PROTECTED], 1);
}

static void test_each_kind_of_change(void **state)
{
	struct fixture *f = *state;
	uint64_t d = node(f, FUSE_ROOT_ID, "d");
	struct fuse_setattr_in set = {.valid = FATTR_MODE, .mode = 0600};

	write_file(f, FUSE_ROOT_ID, "new", "made");
	write_file(f, FUSE_ROOT_ID, "a", "other");
	assert_int_equal(call_remove(f->h, FUSE_UNLINK, FUSE_ROOT_ID, "b"), 0);
	assert_int_equal(call_rename(f->h, d, "c", FUSE_ROOT_ID, "moved", 0), 0);
	assert_int_equal(call_setattr(f->h, node(f, node(f, d, "sub"), "e"), &set, NULL), 0);
	finish(f);
	assert_int_equal(count_of(f, FS_REPORT_CHANGE), 5);
	expect_change(f, FS_CHANGE_CREATED, "new", NULL, "made");
	expect_change(f, FS_CHANGE_CHANGED, "a", "first", "other");
	expect_change(f, FS_CHANGE_DELETED, "b", "second", NULL);
	expect_change(f, FS_CHANGE_RENAMED, "moved", "third", "third");
	assert_string_equal(find(f, FS_REPORT_CHANGE, "moved")->other, "d/c");
	expect_change(f, FS_CHANGE_MODE, "d/sub/e", "fourth", "fourth");
	assert_int_equal(find(f, FS_REPORT_CHANGE, "d/sub/e")->mode_before, S_IFREG | 0644);
	assert_int_equal(find(f, FS_REPORT_CHANGE, "d/sub/e")->mode_after, S_IFREG | 0600);
	assert_int_equal(f->share.counts[FS_COUNT_UNTOLD], 0);
}

/* What editors and git do: a new file takes the place of the old one. */
static void test_replaced_file_has_changed(void **state)
{
	struct fixture *f = *state;

	write_file(f, FUSE_ROOT_ID, "a.tmp", "better");
	assert_int_equal(call_rename(f->h, FUSE_ROOT_ID, "a.tmp", FUSE_ROOT_ID, "a", 0), 0);
	assert_int_equal(call_remove(f->h, FUSE_UNLINK, FUSE_ROOT_ID, "b"), 0);
	write_file(f, FUSE_ROOT_ID, "b.tmp", "again");
	assert_int_equal(call_rename(f->h, FUSE_ROOT_ID, "b.tmp", FUSE_ROOT_ID, "b", 0), 0);
	write_file(f, FUSE_ROOT_ID, "passing", "by");
	assert_int_equal(call_remove(f->h, FUSE_UNLINK, FUSE_ROOT_ID, "passing"), 0);
	finish(f);
	assert_int_equal(count_of(f, FS_REPORT_CHANGE), 2);
	expect_change(f, FS_CHANGE_CHANGED, "a", "first", "better");
	expect_change(f, FS_CHANGE_CHANGED, "b", "second", "again");
}

static void test_file_takes_the_place_of_another(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(call_rename(f->h, FUSE_ROOT_ID, "a", FUSE_ROOT_ID, "b", 0), 0);
	finish(f);
	assert_int_equal(count_of(f, FS_REPORT_CHANGE), 2);
	assert_int_equal(f->reports[0].kind + f->reports[1].kind,
			 FS_CHANGE_RENAMED + FS_CHANGE_DELETED);
	for (unsigned int i = 0; i < 2; i++) {
		assert_string_equal(f->reports[i].path, "b");
		expect_hash(f->reports[i].hash_before,
			    f->reports[i].kind == FS_CHANGE_RENAMED ? "first" : "second");
	}
}

/* A directory that moved takes what is in it along, and what is changed there later was elsewhere
 * before the run. */
static void test_moved_directory(void **state)
{
	struct fixture *f = *state;
	uint64_t d = node(f, FUSE_ROOT_ID, "d");

	write_file(f, d, "c", "changed");
	assert_int_equal(call_rename(f->h, FUSE_ROOT_ID, "d", FUSE_ROOT_ID, "D", 0), 0);
	assert_int_equal(call_remove(f->h, FUSE_UNLINK, node(f, d, "sub"), "e"), 0);
	finish(f);
	assert_int_equal(count_of(f, FS_REPORT_CHANGE), 3);
	assert_int_equal(find(f, FS_REPORT_CHANGE, "D")->kind, FS_CHANGE_RENAMED);
	assert_string_equal(find(f, FS_REPORT_CHANGE, "D")->other, "d");
	expect_change(f, FS_CHANGE_RENAMED, "D/c", "third", "changed");
	assert_string_equal(find(f, FS_REPORT_CHANGE, "D/c")->other, "d/c");
	expect_change(f, FS_CHANGE_DELETED, "d/sub/e", "fourth", NULL);
}

/* Two directories that had one path at different times, since the host moved one of them: a file
 * that goes from one to the other seems to stay where it is. */
static void test_two_directories_of_one_path(void **state)
{
	struct fixture *f = *state;
	char from[512], to[512];
	uint64_t old = node(f, FUSE_ROOT_ID, "d"), new;

	write_file(f, old, "x", "moves");
	harness_path(f->h, "d", from);
	harness_path(f->h, "elsewhere", to);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(mkdir(from, 0755), 0);
	new = node(f, FUSE_ROOT_ID, "d");
	assert_true(new != old);
	write_file(f, new, "x", "goes");
	assert_int_equal(call_rename(f->h, old, "x", new, "x", 0), 0);
	write_file(f, old, "x", "one more");
	assert_int_equal(call_rename(f->h, old, "x", new, "x", RENAME_EXCHANGE), 0);
	finish(f);
	expect_change(f, FS_CHANGE_CREATED, "d/x", NULL, "one more");
}

static void test_exchange(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(call_rename(f->h, FUSE_ROOT_ID, "a", FUSE_ROOT_ID, "b", RENAME_EXCHANGE),
			 0);
	finish(f);
	assert_int_equal(count_of(f, FS_REPORT_CHANGE), 2);
	expect_change(f, FS_CHANGE_RENAMED, "a", "second", "second");
	expect_change(f, FS_CHANGE_RENAMED, "b", "first", "first");
}

/* A second name, through which a file is changed, does not hide the change. */
static void test_change_through_a_link(void **state)
{
	struct fixture *f = *state;
	uint64_t a = node(f, FUSE_ROOT_ID, "a"), link;
	struct fuse_open_out out;
	uint32_t written;

	assert_int_equal(call_link(f->h, a, FUSE_ROOT_ID, "link"), 0);
	link = node(f, FUSE_ROOT_ID, "link");
	assert_int_equal(call_open(f->h, FUSE_OPEN, link, O_WRONLY, &out), 0);
	assert_int_equal(call_write(f->h, out.fh, 0, "FIRST", 5, 0, 0, &written), 0);
	assert_int_equal(call_release(f->h, FUSE_RELEASE, link, out.fh), 0);
	assert_int_equal(call_remove(f->h, FUSE_UNLINK, FUSE_ROOT_ID, "link"), 0);
	finish(f);
	assert_int_equal(count_of(f, FS_REPORT_CHANGE), 1);
	expect_change(f, FS_CHANGE_CHANGED, "a", "first", "FIRST");
}

static void test_refusals_and_findings(void **state)
{
	struct fixture *f = *state;
	const struct fs_report *report;
	struct fuse_open_out out;
	uint64_t repository;

	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(
			call_open(f->h, FUSE_OPEN, node(f, FUSE_ROOT_ID, ".exrc"), O_WRONLY, &out),
			-EACCES);
	assert_int_equal(call_mkdir(f->h, FUSE_ROOT_ID, ".aws", 0700, NULL), -EACCES);
	assert_int_equal(call_mkdir(f->h, FUSE_ROOT_ID, "nested", 0700, &repository), 0);
	assert_int_equal(call_mkdir(f->h, repository, ".git", 0700, NULL), 0);
	write_file(f, FUSE_ROOT_ID, "Makefile", "all: evil\n");
	assert_int_equal(call_mknod(f->h, FUSE_ROOT_ID, "tool", S_IFREG | 0755, NULL), 0);
	finish(f);
	report = find(f, FS_REPORT_REFUSAL, ".exrc");
	assert_string_equal(report->other, ".exrc");
	assert_false(report->flags & FS_REPORT_HIDDEN);
	report = find(f, FS_REPORT_REFUSAL, ".aws");
	assert_true(report->flags & FS_REPORT_HIDDEN);
	report = find(f, FS_REPORT_REFUSAL, "*");
	assert_string_equal(report->other, ".exrc");
	assert_int_equal(report->counts[0], 3);
	assert_int_equal(f->share.counts[FS_COUNT_REFUSALS], 4);
	assert_int_equal(find(f, FS_REPORT_FINDING, "nested/.git")->kind, FS_FINDING_REPOSITORY);
	assert_int_equal(find(f, FS_REPORT_FINDING, "Makefile")->kind, FS_FINDING_BUILD);
	assert_int_equal(find(f, FS_REPORT_FINDING, "tool")->kind, FS_FINDING_EXECUTABLE);
	assert_int_equal(count_of(f, FS_REPORT_FINDING), 3);
}

/* A guest that makes more files than are told of gets none of its changes of the user's out of
 * sight; all it did is counted. */
static void test_flood_hides_nothing(void **state)
{
	struct fixture *f = *state;
	const unsigned int count = LIMIT_JOURNAL_FILES + 100;
	uint8_t bytes[FS_REPORT_BYTES + 1];
	struct fs_report report;
	unsigned int created = 0;
	bool last = false, changed = false, build = false;
	ssize_t length;
	char name[32];
	pid_t pid;

	for (unsigned int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "flood%u", i);
		assert_int_equal(call_mknod(f->h, FUSE_ROOT_ID, name, S_IFREG | 0600, NULL), 0);
	}
	write_file(f, FUSE_ROOT_ID, "a", "hidden?");
	write_file(f, FUSE_ROOT_ID, ".gitlab-ci.yml", "hidden?");
	/* What was made without being told of is no loss of the user's when it goes. */
	assert_int_equal(call_remove(f->h, FUSE_UNLINK, FUSE_ROOT_ID, name), 0);
	/* A socket holds far less than all of it. */
	pid = fork();
	if (pid == 0) {
		fs_server_tell_changes(f->h->server);
		_exit(0);
	}
	while (!last && (length = recv(f->reports_fd, bytes, sizeof(bytes), 0)) > 0) {
		assert_int_equal(fs_report_decode(&report, bytes, (size_t)length), 0);
		last = report.type == FS_REPORT_SHARE;
		if (report.type != FS_REPORT_CHANGE)
			continue;
		created += report.kind == FS_CHANGE_CREATED;
		assert_int_not_equal(report.kind, FS_CHANGE_DELETED);
		changed |= report.kind == FS_CHANGE_CHANGED && strcmp(report.path, "a") == 0;
		build |= strcmp(report.path, ".gitlab-ci.yml") == 0;
	}
	assert_true(last && changed && build);
	assert_int_equal(created, LIMIT_JOURNAL_FILES + 1);
	assert_int_equal(report.counts[FS_COUNT_MADE], count + 1);
	assert_int_equal(report.counts[FS_COUNT_UNTOLD], 100 + 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_done_is_nothing_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each_kind_of_change, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replaced_file_has_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_takes_the_place_of_another, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_moved_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_directories_of_one_path, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exchange, setup, teardown),
		cmocka_unit_test_setup_teardown(test_change_through_a_link, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refusals_and_findings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flood_hides_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a share before the guest comes, and is not told by names alone. */
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/cli_capture.h"
#include "tests/unit/fs_harness.h"

static int setup(void **state)
{
	*state = harness_create_place("/dev/shm");
	return 0;
}

static void directories(struct harness *h, const char *const *names)
{
	char path[512];

	for (; *names; names++) {
		harness_path(h, *names, path);
		assert_int_equal(mkdir(path, 0755), 0);
	}
}

#define DIRECTORIES(h, ...) directories(h, (const char *const[]){__VA_ARGS__, NULL})

static void link_to(struct harness *h, const char *name, const char *target)
{
	char path[512];

	harness_path(h, name, path);
	assert_int_equal(symlink(target, path), 0);
}

static void serve(struct harness *h, struct capture *report)
{
	struct fs_config config = {.policy = policy_create(), .scan = true};

	assert_int_equal(policy_add_defaults(config.policy), 0);
	assert_int_equal(policy_add(config.policy, POLICY_PROTECT, "ci/deploy"), 0);
	capture_begin(report);
	harness_serve(h, &config);
	capture_end(report);
}

/* A repository of that name (or none: the directory itself). */
static void repository(struct harness *h, const char *prefix)
{
	static const char *const parts[] = {"objects", "refs", "hooks", "modules", NULL};
	char name[128];

	for (const char *const *part = parts; *part; part++) {
		snprintf(name, sizeof(name), "%s%s", prefix, *part);
		DIRECTORIES(h, name);
	}
	snprintf(name, sizeof(name), "%sHEAD", prefix);
	harness_host_write(h, name, "ref: refs/heads/main\n");
	snprintf(name, sizeof(name), "%sconfig", prefix);
	harness_host_write(h, name, "[core]\n\tbare = true\n");
}

/* The repository @id is protected, and git can work in it. */
static void expect_protected(struct harness *h, uint64_t id)
{
	struct fuse_open_out out;
	uint64_t modules;

	assert_int_equal(call_open(h, FUSE_OPEN, harness_node(h, id, "config"), O_RDWR, &out),
			 -EACCES);
	assert_int_equal(call_remove(h, FUSE_UNLINK, id, "config"), -EACCES);
	assert_int_equal(call_create(h, harness_node(h, id, "hooks"), "pre-commit", O_RDWR, 0755,
				     NULL, NULL),
			 -EACCES);
	assert_int_equal(call_create(h, id, "commondir", O_RDWR, 0644, NULL, NULL), -EACCES);
	assert_int_equal(call_create(h, id, "HEAD.lock", O_RDWR, 0644, NULL, NULL), 0);
	assert_int_equal(call_rename(h, id, "HEAD.lock", id, "HEAD", 0), 0);
	/* A submodule of the guest's in it. */
	assert_int_equal(call_mkdir(h, harness_node(h, id, "modules"), "new", 0755, &modules), 0);
	assert_int_equal(call_create(h, modules, "config", O_RDWR, 0644, NULL, NULL), 0);
	assert_int_equal(call_mkdir(h, modules, "hooks", 0755, &modules), 0);
	assert_int_equal(call_create(h, modules, "pre-commit", O_RDWR, 0755, NULL, NULL), -EACCES);
}

static void test_repositories_of_any_name(void **state)
{
	struct harness *h = *state;
	struct capture report;
	uint64_t a;

	DIRECTORIES(h, ".bare", "a", "a/store", "half", "half/objects", "half/refs", "half/hooks");
	repository(h, ".bare/");
	repository(h, "a/store/");
	serve(h, &report);
	assert_string_equal(report.text, "");
	a = harness_node(h, FUSE_ROOT_ID, "a");
	expect_protected(h, harness_node(h, FUSE_ROOT_ID, ".bare"));
	expect_protected(h, harness_node(h, a, "store"));
	/* What lies above it may move, it itself may not; without a HEAD it is one to
	 * "commondir". */
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, ".bare", FUSE_ROOT_ID, "b", 0), -EACCES);
	assert_int_equal(call_rename(h, a, "store", FUSE_ROOT_ID, "store", 0), -EACCES);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "a", FUSE_ROOT_ID, "c", 0), 0);
	assert_int_equal(call_create(h,
				     harness_node(h, harness_node(h, FUSE_ROOT_ID, "c"), "store"),
				     "commondir", O_RDWR, 0644, NULL, NULL),
			 -EACCES);
	assert_int_equal(call_create(h, harness_node(h, FUSE_ROOT_ID, "half"), "config", O_RDWR,
				     0644, NULL, NULL),
			 -EACCES);
}

static void test_the_share_is_one(void **state)
{
	struct harness *h = *state;
	struct capture report;

	repository(h, "");
	serve(h, &report);
	expect_protected(h, FUSE_ROOT_ID);
}

static void test_where_links_lead(void **state)
{
	struct harness *h = *state;
	char path[512], other[512];
	struct fuse_open_out out;
	struct capture report;
	uint64_t conf, scripts, src;

	DIRECTORIES(h, "conf", "scripts", ".git", "agents", "agents/more", "src", "skills");
	harness_host_write(h, "conf/secret", "secret");
	harness_host_write(h, "scripts/pre-commit", "#!/bin/sh\n");
	harness_host_write(h, "agents/settings", "x");
	harness_host_write(h, "skills/one", "x");
	link_to(h, ".env", "./conf//secret");
	link_to(h, ".envrc", "by/envrc");
	link_to(h, "by", "conf");
	link_to(h, ".git/hooks", "../scripts");
	link_to(h, "agents/more/skills", "../../skills");
	link_to(h, "ci", "src");
	harness_path(h, "agents", path);
	link_to(h, ".claude", path);
	link_to(h, ".cursor", "../outside");
	link_to(h, ".codex", ".codex");
	/* A second name of a file that is hidden for where a link leads. */
	harness_path(h, "conf/secret", path);
	harness_path(h, "src/copy", other);
	assert_int_equal(link(path, other), 0);
	serve(h, &report);
	assert_non_null(strstr(report.text, "symbolic links under hidden or protected names lead "
					    "to what is hidden or protected for that: "));
	conf = harness_node(h, FUSE_ROOT_ID, "conf");
	scripts = harness_node(h, FUSE_ROOT_ID, "scripts");
	assert_int_equal(call_lookup(h, conf, "secret", NULL), -ENOENT);
	src = harness_node(h, FUSE_ROOT_ID, "src");
	assert_int_equal(call_lookup(h, src, "copy", NULL), -ENOENT);
	assert_int_equal(call_rename(h, src, "copy", src, "x", 0), -ENOENT);
	assert_int_equal(call_mknod(h, src, "new", S_IFREG | 0644, NULL), 0);
	assert_int_equal(call_rename(h, src, "new", src, "copy", 0), -EACCES);
	assert_int_equal(call_rename(h, src, "new", src, "copy", RENAME_EXCHANGE), -ENOENT);
	assert_int_equal(call_remove(h, FUSE_UNLINK, src, "copy"), -ENOENT);
	/* Absent, and by way of a link that must stay. */
	assert_int_equal(call_create(h, conf, "envrc", O_RDWR, 0644, NULL, NULL), -EACCES);
	assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, "by"), -EACCES);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "conf", FUSE_ROOT_ID, "c", 0), -EACCES);
	assert_int_equal(
		call_open(h, FUSE_OPEN, harness_node(h, scripts, "pre-commit"), O_RDWR, &out),
		-EACCES);
	assert_int_equal(call_create(h, scripts, "post-merge", O_RDWR, 0755, NULL, NULL), -EACCES);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "scripts", FUSE_ROOT_ID, "s", 0), -EACCES);
	assert_int_equal(
		call_open(h, FUSE_OPEN,
			  harness_node(h, harness_node(h, FUSE_ROOT_ID, "agents"), "settings"),
			  O_RDWR, &out),
		-EACCES);
	/* A link in what a link leads to. */
	assert_int_equal(call_open(h, FUSE_OPEN,
				   harness_node(h, harness_node(h, FUSE_ROOT_ID, "skills"), "one"),
				   O_RDWR, &out),
			 -EACCES);
	/* A rule that goes on below a link. */
	assert_int_equal(call_create(h, harness_node(h, FUSE_ROOT_ID, "src"), "deploy", O_RDWR,
				     0755, NULL, NULL),
			 -EACCES);
	assert_int_equal(call_create(h, harness_node(h, FUSE_ROOT_ID, "src"), "main.c", O_RDWR,
				     0644, NULL, NULL),
			 0);
}

/* More links than can be kept in mind: nothing is served. */
static void test_too_many_links(void **state)
{
	struct harness *h = *state;
	struct fs_config config = {
		.policy = policy_create(),
		.scan = true,
		.notify_fd = -1,
	};
	struct capture report;
	char name[64], target[64];

	assert_int_equal(policy_add_defaults(config.policy), 0);
	DIRECTORIES(h, ".claude", "d");
	for (int i = 0; i < LIMIT_POLICY_PATHS + 1; i++) {
		snprintf(name, sizeof(name), ".claude/l%d", i);
		snprintf(target, sizeof(target), "../d/t%d", i);
		link_to(h, name, target);
	}
	config.root_fd = open(h->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	capture_begin(&report);
	assert_int_equal(fs_server_create(&h->server, &config), 0);
	assert_int_equal(harness_init_session(h), -ENFILE);
	assert_int_equal(harness_init_session(h), -ENFILE);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "d", NULL), -EIO);
	capture_end(&report);
	assert_non_null(strstr(report.text, "cannot look through the share for what to hide and "
					    "protect, at .claude/l"));
	close(config.root_fd);
}

/* A hidden file with a second name, far down: by more directories than may be open, and by a path
 * longer than the kernel takes at once. */
static void hide_far_down(struct harness *h, const char *name, int depth)
{
	int fd = open(h->directory, O_PATH | O_CLOEXEC);
	char path[512];

	for (int i = 0; i < depth; i++) {
		int next;

		/* Something to come back for at each level. */
		assert_int_equal(mkdirat(fd, name, 0755), 0);
		assert_true(mkdirat(fd, "beside", 0755) == 0 || errno == EEXIST);
		next = openat(fd, name, O_PATH | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	harness_path(h, "visible", path);
	assert_int_equal(linkat(AT_FDCWD, path, fd, ".env", 0), 0);
	close(fd);
}

static void test_far_down(void **state)
{
	struct harness *h = *state;
	struct rlimit before, limit;
	struct capture report;
	char name[256] = "", remove[96];

	memset(name, 'x', 250);
	harness_host_write(h, "visible", "secret");
	hide_far_down(h, "d", 300);
	hide_far_down(h, name, 20);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = (struct rlimit){200, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	serve(h, &report);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	capture_expect_sentence(&report, "2 names in the share are hidden from the guest: ");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "visible", NULL), -ENOENT);
	/* Too deep for who removes the rest. */
	snprintf(remove, sizeof(remove), "rm -rf '%s'/*", h->directory);
	assert_int_equal(system(remove), 0);
}

/* What the user cannot look into, but could let himself: it stays closed, and is named. */
static void test_closed(void **state)
{
	bool root = geteuid() == 0;
	struct capture report;
	struct harness *h;

	assert_int_equal(root ? seteuid(65534) : 0, 0);
	setup(state);
	h = *state;
	DIRECTORIES(h, "open", "dark", "open/darker");
	harness_host_write(h, "dark/.env", "secret");
	for (int i = 0; i < 2; i++) {
		char path[512];

		harness_path(h, i ? "open/darker" : "dark", path);
		assert_int_equal(chmod(path, i ? 0444 : 0), 0);
	}
	serve(h, &report);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "dark", NULL), -EACCES);
	assert_int_equal(call_lookup(h, harness_node(h, FUSE_ROOT_ID, "open"), "darker", NULL),
			 -EACCES);
	capture_expect_sentence(
		&report, "2 directories that you may not look into are closed to the guest: ");
	assert_int_equal(root ? seteuid(0) : 0, 0);
	for (int i = 0; i < 2; i++) {
		char path[512];

		harness_path(h, i ? "open/darker" : "dark", path);
		assert_int_equal(chmod(path, 0755), 0);
	}
}

/* A process that was killed has left files in the making; another one is at work. */
static void test_left_behind(void **state)
{
	static const char left[] = ".mvagent-0123456789abcdef",
			  live[] = ".mvagent-fedcba9876543210";
	struct harness *h = *state;
	char path[512], other[512];
	struct capture report;
	int fd;

	DIRECTORIES(h, "d");
	harness_host_write(h, "d/.mvagent-0123456789abcdef", "a copy");
	harness_host_write(h, "../outside/original", "original");
	harness_path(h, "../outside/original", path);
	harness_path(h, ".mvagent-apply-0123456789abcdef", other);
	assert_int_equal(link(path, other), 0);
	harness_host_write(h, live, "at work");
	harness_host_write(h, ".mvagent-0123", "the user's");
	harness_path(h, live, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	serve(h, &report);
	capture_expect_sentence(&report, "left behind when it was killed: ");
	assert_false(harness_host_exists(h, "d/.mvagent-0123456789abcdef"));
	assert_false(harness_host_exists(h, ".mvagent-apply-0123456789abcdef"));
	assert_true(harness_host_exists(h, "../outside/original"));
	assert_true(harness_host_exists(h, live));
	/* The guest neither sees nor makes such names. */
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, live, NULL), -ENOENT);
	assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, live), -ENOENT);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, left, O_RDWR, 0644, NULL, NULL), -EACCES);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, ".mvagent-0123", NULL), 0);
	close(fd);
}

/* Killed at any moment of giving names copies of their own: each name has what it had or what was
 * written, the files outside are as they were, and the next start leaves nothing else. */
static void break_links(struct harness *h)
{
	struct fs_config config = {0};

	harness_serve(h, &config);
	for (int i = 0; i < 40; i++) {
		struct fuse_open_out out;
		uint32_t written;
		char name[16];

		snprintf(name, sizeof(name), "f%d", i);
		if (call_open(h, FUSE_OPEN, harness_node(h, FUSE_ROOT_ID, name), O_WRONLY, &out) ==
		    0)
			call_write(h, out.fh, 0, "NEW", 3, 0, 0, &written);
	}
}

static void test_killed_at_any_moment(void **state)
{
	struct harness *h = *state;
	struct capture report;
	char path[512], other[512], name[64], text[64];

	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "../outside/f%d", i);
		harness_host_write(h, name, "old");
	}
	for (int round = 0; round < 40; round++) {
		const struct timespec pause = {.tv_nsec = 100000 * round};
		pid_t child;

		for (int i = 0; i < 40; i++) {
			snprintf(name, sizeof(name), "../outside/f%d", i);
			harness_path(h, name, path);
			harness_path(h, name + strlen("../outside/"), other);
			unlink(other);
			assert_int_equal(link(path, other), 0);
		}
		fflush(NULL);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			break_links(h);
			_exit(0);
		}
		nanosleep(&pause, NULL);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		serve(h, &report);
		fs_server_destroy(h->server);
		h->server = NULL;
		snprintf(path, sizeof(path), "test $(ls -A '%s' | wc -l) = 40", h->directory);
		assert_int_equal(system(path), 0);
		for (int i = 0; i < 40; i++) {
			snprintf(name, sizeof(name), "f%d", i);
			harness_host_read(h, name, text, sizeof(text));
			assert_true(strcmp(text, "old") == 0 || strcmp(text, "NEW") == 0);
			snprintf(name, sizeof(name), "../outside/f%d", i);
			harness_host_read(h, name, text, sizeof(text));
			assert_string_equal(text, "old");
		}
	}
	serve(h, &report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_repositories_of_any_name, setup,
						harness_teardown),
		cmocka_unit_test_setup_teardown(test_the_share_is_one, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_where_links_lead, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_too_many_links, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_far_down, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_left_behind, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_killed_at_any_moment, setup, harness_teardown),
		cmocka_unit_test_teardown(test_closed, harness_teardown),
	};

	return cmocka_run_group_tests_name("fs scan", tests, NULL, NULL);
}

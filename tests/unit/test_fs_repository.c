/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repositories that a guest makes, looked at by git on the host: nothing that the guest writes
 * there may have git run a program, though the guest's index leads git there.
 */
#include <sys/wait.h>

#include "tests/unit/cli_capture.h"
#include "tests/unit/fs_harness.h"

static void host_shell(struct harness *h, const char *command)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "cd '%s' && export HOME='%s' GIT_CONFIG_NOSYSTEM=1 && (%s) >/dev/null 2>&1",
		 h->directory, h->outside, command);
	assert_int_not_equal(system(text), -1);
}

static int setup(void **state)
{
	struct harness *h = harness_create_place("/dev/shm");
	struct fs_config config = {.policy = policy_create()};

	*state = h;
	assert_int_equal(policy_add_defaults(config.policy), 0);
	/* A submodule that is not there yet, as a fresh clone has it; git on the host looks into
	 * it as soon as there is a repository. */
	host_shell(h, "git init -q . && git -c user.name=n -c user.email=e commit -q "
		      "--allow-empty -m first && mkdir sub plain node_modules && "
		      "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub && "
		      "git update-index --add --cacheinfo 160000,$(git rev-parse "
		      "HEAD),node_modules/sub");
	assert_true(harness_host_exists(h, ".git/index"));
	harness_serve(h, &config);
	return 0;
}

static uint64_t directory(struct harness *h, uint64_t parent, const char *name)
{
	uint64_t id;

	assert_int_equal(call_mkdir(h, parent, name, 0755, &id), 0);
	return id;
}

/* Creates a file with that text, and leaves it open. The first error. */
static int put(struct harness *h, uint64_t parent, const char *name, const char *text, uint64_t *fh)
{
	uint64_t handle;
	uint32_t written;
	int error = call_create(h, parent, name, O_RDWR, 0755, NULL, &handle);

	if (!error)
		error = call_write(h, handle, 0, text, (uint32_t)strlen(text), 0, 0, &written);
	if (fh)
		*fh = handle;
	return error;
}

/* The text of a configuration that has git run a program which leaves a trace outside the share. */
static const char *evil(struct harness *h)
{
	static char text[256];

	snprintf(text, sizeof(text),
		 "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"touch '%s/canary'\"\n",
		 h->outside);
	return text;
}

#define PLAIN "[core]\n\trepositoryformatversion = 0\n"

/* All of a repository but its configuration. */
static uint64_t make_repository(struct harness *h, uint64_t parent, const char *name)
{
	uint64_t git = directory(h, parent, name);

	directory(h, git, "objects");
	directory(h, git, "refs");
	assert_int_equal(put(h, git, "HEAD", "ref: refs/heads/main\n", NULL), 0);
	return git;
}

static void assert_git_is_safe(struct harness *h)
{
	char path[128];

	host_shell(h, "git status; git diff; cd sub && git status; git diff; cd .. && "
		      "cd node_modules/sub && git status");
	snprintf(path, sizeof(path), "%s/canary", h->outside);
	assert_int_equal(access(path, F_OK), -1);
}

/* What this test stands on: git does run it when the host itself writes such a file. */
static void test_git_obeys_it(void **state)
{
	struct harness *h = *state;
	char path[128];

	make_repository(h, harness_node(h, FUSE_ROOT_ID, "sub"), ".git");
	harness_host_write(h, "sub/.git/config", evil(h));
	host_shell(h, "git status");
	snprintf(path, sizeof(path), "%s/canary", h->outside);
	assert_int_equal(access(path, F_OK), 0);
}

static void test_written_in_place(void **state)
{
	struct harness *h = *state;
	uint64_t git = make_repository(h, harness_node(h, FUSE_ROOT_ID, "sub"), ".git"), fh;
	struct fuse_setattr_in size = {.valid = FATTR_SIZE, .size = 4000};
	struct fuse_fallocate_in allocate = {.length = 4000};
	struct fuse_copy_file_range_in copy = {.len = 4000};
	const char *text = evil(h);
	uint32_t written;

	assert_int_equal(put(h, git, "config", text, &fh), -EACCES);
	/* In parts, each of which is the beginning of something harmless. */
	assert_int_equal(call_write(h, fh, 0, "[core]\n\tfs", 10, 0, 0, &written), -EACCES);
	assert_int_equal(call_write(h, fh, 0, PLAIN, strlen(PLAIN), 0, 0, &written), 0);
	assert_int_equal(written, strlen(PLAIN));
	assert_int_equal(call_write(h, fh, 7, "\tfsmonitor = x\n", 15, 0, 0, &written), -EACCES);
	assert_int_equal(call_write(h, fh, strlen(PLAIN), "\tfsmonitor = x\n", 15, 0, 0, &written),
			 -EACCES);
	assert_int_equal(call_write(h, fh, 0, "\tfsmonitor = x\n", 15, O_APPEND, 0, &written),
			 -EACCES);
	/* Over what is there, or behind its end: no. More of it, and the same again: yes. */
	assert_int_equal(call_write(h, fh, 1, "CORE", 4, 0, 0, &written), -EACCES);
	assert_int_equal(call_write(h, fh, 100, "#", 1, 0, 0, &written), -EACCES);
	assert_int_equal(call_write(h, fh, 7, PLAIN + 7, strlen(PLAIN) - 7, 0, 0, &written), 0);
	assert_int_equal(call_write(h, fh, 0, "\tbare = false\n", 14, O_APPEND, 0, &written), 0);
	assert_int_equal(written, 14);
	assert_int_equal(harness_host_stat(h, "sub/.git/config").st_size, strlen(PLAIN) + 14);
	size.fh = allocate.fh = copy.fh_out = fh;
	assert_int_equal(put(h, git, "other", text, &copy.fh_in), 0);
	assert_int_equal(harness_call(h, FUSE_FALLOCATE, 1, PIECE(allocate), NONE, NONE),
			 -EOPNOTSUPP);
	assert_int_equal(harness_call(h, FUSE_COPY_FILE_RANGE, 1, PIECE(copy), NONE, NONE), -EXDEV);
	assert_int_equal(call_setattr(h, harness_node(h, git, "config"), &size, NULL), -EACCES);
	/* By the handle of another file. */
	size.valid = FATTR_SIZE | FATTR_FH;
	assert_int_equal(call_setattr(h, harness_node(h, git, "other"), &size, NULL), -EBADF);
	assert_git_is_safe(h);
}

static void test_renamed_into_place(void **state)
{
	struct harness *h = *state;
	uint64_t sub = harness_node(h, FUSE_ROOT_ID, "sub"), fh, id, again;
	uint64_t git = make_repository(h, sub, ".git");
	struct fuse_create_in in = {.flags = O_RDWR, .mode = 0644};
	uint32_t written;

	assert_int_equal(put(h, git, "config.lock", evil(h), NULL), 0);
	assert_int_equal(call_rename(h, git, "config.lock", git, "config", 0), -EACCES);
	assert_int_equal(call_rename(h, git, "config.lock", git, "CONFIG", 0), -EACCES);
	assert_int_equal(put(h, git, "ok.lock", PLAIN, &fh), 0);
	/* With another name to write it by. */
	assert_int_equal(call_link(h, harness_node(h, git, "ok.lock"), sub, "other"), 0);
	assert_int_equal(call_rename(h, git, "ok.lock", git, "config", 0), -EACCES);
	assert_int_equal(call_remove(h, FUSE_UNLINK, sub, "other"), 0);
	assert_int_equal(call_rename(h, git, "ok.lock", git, "config", 0), 0);
	/* With a file that is still open, and from then on. */
	assert_int_equal(call_write(h, fh, 0, "[x]", 3, 0, 0, &written), -EACCES);
	id = harness_node(h, git, "config");
	assert_int_equal(call_link(h, id, sub, "other"), -EACCES);
	assert_int_equal(call_rename(h, git, "config.lock", git, "config", RENAME_EXCHANGE),
			 -EACCES);
	/* The guest claims to have forgotten it. */
	harness_forget(h, id, 1000);
	assert_int_equal(call_write(h, fh, 0, "[x]", 3, 0, 0, &written), -EBADF);
	again = harness_node(h, git, "config");
	assert_int_not_equal(again, id);
	assert_int_equal(call_write(h, fh, 0, "[x]", 3, 0, 0, &written), -EBADF);
	/* By a link from elsewhere, or of a file without a name. */
	assert_int_equal(call_remove(h, FUSE_UNLINK, git, "config"), 0);
	assert_int_equal(call_link(h, harness_node(h, git, "config.lock"), git, "config"), -EACCES);
	assert_int_equal(
		call_entry(h, harness_call(h, FUSE_TMPFILE, sub, PIECE(in), NAME("/"), NONE), &id),
		0);
	assert_int_equal(call_link(h, id, git, "config"), -EACCES);
	assert_int_equal(call_symlink(h, git, "config", "config.lock", NULL), -EACCES);
	assert_int_equal(call_mkdir(h, git, "config", 0755, NULL), -EACCES);
	assert_git_is_safe(h);
}

static void test_hooks(void **state)
{
	struct harness *h = *state;
	uint64_t sub = harness_node(h, FUSE_ROOT_ID, "sub"), hooks;
	uint64_t git = make_repository(h, sub, ".git"), other = directory(h, sub, "other");

	assert_int_equal(put(h, other, "pre-commit", "#!/bin/sh\n", NULL), 0);
	assert_int_equal(call_rename(h, sub, "other", git, "hooks", 0), -EACCES);
	assert_int_equal(call_symlink(h, git, "hooks", "../other", NULL), -EACCES);
	hooks = directory(h, git, "hooks");
	assert_int_equal(call_create(h, hooks, "post-index-change", O_RDWR, 0755, NULL, NULL),
			 -EACCES);
	assert_int_equal(call_mknod(h, hooks, "pre-commit", S_IFREG | 0755, NULL), -EACCES);
	assert_int_equal(call_rename(h, other, "pre-commit", hooks, "pre-commit", 0), -EACCES);
	assert_int_equal(call_link(h, harness_node(h, other, "pre-commit"), hooks, "pre-commit"),
			 -EACCES);
	assert_int_equal(call_link(h, harness_node(h, other, "pre-commit"), hooks, "x.sample"),
			 -EACCES);
	assert_int_equal(call_rename(h, sub, "other", git, "hooks", RENAME_EXCHANGE), -EACCES);
	/* As "git init" does. */
	assert_int_equal(put(h, hooks, "pre-commit.sample", "#!/bin/sh\n", NULL), 0);
	assert_int_equal(call_rename(h, hooks, "pre-commit.sample", hooks, "pre-commit", 0),
			 -EACCES);
	assert_int_equal(call_symlink(h, hooks, "x.sample", "../x", NULL), -EACCES);
	assert_git_is_safe(h);
}

/* A file .git leads elsewhere: to no place where there is a configuration of the guest's liking. */
static void test_led_elsewhere(void **state)
{
	struct harness *h = *state;
	uint64_t sub = harness_node(h, FUSE_ROOT_ID, "sub"),
		 plain = harness_node(h, FUSE_ROOT_ID, "plain");
	uint64_t old = harness_node(h, FUSE_ROOT_ID, ".git"),
		 modules = directory(h, old, "modules");
	uint64_t module = make_repository(h, modules, "new"), other;

	/* All but the configuration, which "commondir" would have git look for elsewhere. */
	assert_int_equal(put(h, sub, ".git", "gitdir: ../.git/modules/new\n", NULL), 0);
	assert_int_equal(put(h, module, "config", evil(h), NULL), -EACCES);
	assert_int_equal(put(h, module, "commondir", "../../../plain\n", NULL), -EACCES);
	assert_int_equal(call_remove(h, FUSE_UNLINK, module, "commondir"), 0);
	assert_int_equal(put(h, plain, "there", "../../../plain\n", NULL), 0);
	assert_int_equal(call_rename(h, plain, "there", module, "commondir", 0), -EACCES);
	assert_int_equal(call_link(h, harness_node(h, plain, "there"), module, "commondir"),
			 -EACCES);
	harness_host_write(h, ".git/modules/new/commondir", "../../../plain\n");
	directory(h, plain, "objects");
	directory(h, plain, "refs");
	assert_int_equal(put(h, plain, "config", evil(h), NULL), -EACCES);
	assert_int_equal(call_mkdir(h, plain, "hooks", 0755, NULL), -EACCES);
	assert_git_is_safe(h);
	/* As "git worktree" has it; not two directories above what is called X.git. */
	assert_int_equal(put(h, directory(h, modules, "tree"), "commondir", "../..\n", NULL), 0);
	assert_int_equal(put(h, directory(h, plain, "x.git"), "commondir", "..", NULL), -EACCES);
	/* In the other order. */
	other = directory(h, FUSE_ROOT_ID, "other");
	assert_int_equal(put(h, other, "config", evil(h), NULL), 0);
	directory(h, other, "objects");
	assert_int_equal(call_mkdir(h, other, "refs", 0755, NULL), -EACCES);
	assert_int_equal(call_rename(h, plain, "refs", other, "refs", 0), -EACCES);
	/* Where no rule expects a repository inside one. */
	other = directory(h, old, "other");
	directory(h, other, "objects");
	directory(h, other, "refs");
	assert_int_equal(put(h, other, "config", evil(h), NULL), -EACCES);
	assert_git_is_safe(h);
}

/* What was made ready where it is a directory like any other does not come to be a repository. */
static void test_moved_into_place(void **state)
{
	struct harness *h = *state;
	uint64_t sub = harness_node(h, FUSE_ROOT_ID, "sub"),
		 old = harness_node(h, FUSE_ROOT_ID, ".git");
	uint64_t git = make_repository(h, sub, ".git"), modules = directory(h, git, "modules");
	uint64_t ready = directory(h, sub, "ready"), inside = directory(h, git, "inside");
	uint64_t module, other;
	uint64_t packages = harness_node(h, FUSE_ROOT_ID, "node_modules");
	uint64_t package = directory(h, packages, "sub");

	assert_int_equal(put(h, ready, "config", evil(h), NULL), 0);
	assert_int_equal(put(h, inside, "config", evil(h), NULL), -EACCES);
	assert_int_equal(call_rename(h, sub, "ready", modules, "ready", 0), -EACCES);
	/* What is below .git is looked at there already. */
	assert_int_equal(call_rename(h, git, "inside", modules, "inside", 0), 0);
	assert_int_equal(put(h, inside, "config", evil(h), NULL), -EACCES);
	assert_int_equal(call_rename(h, sub, "ready", sub, "x.git", 0), -EACCES);
	assert_int_equal(call_rename(h, sub, "ready", git, "ready", 0), -EACCES);
	assert_int_equal(call_rename(h, sub, "ready", harness_node(h, old, "refs"), "ready", 0),
			 -EXDEV);
	/* Nor one that was looked at leave for where nobody looks. */
	module = make_repository(h, modules, "module");
	assert_int_equal(put(h, module, "config", PLAIN, NULL), 0);
	assert_int_equal(call_rename(h, modules, "module", sub, "module", 0), -EACCES);
	assert_int_equal(call_rename(h, git, "modules", sub, "modules", 0), -EACCES);
	assert_int_equal(call_rename(h, modules, "module", git, "module", 0), -EXDEV);
	assert_int_equal(call_rename(h, modules, "module", modules, "renamed", 0), 0);
	/* As "git submodule absorbgitdirs" does; and what is below it then was below .git. */
	other = make_repository(h, harness_node(h, FUSE_ROOT_ID, "plain"), ".git");
	assert_int_equal(call_rename(h, sub, ".git", directory(h, other, "modules"), "m", 0), 0);
	assert_int_equal(put(h, inside, "config", evil(h), NULL), -EACCES);
	assert_int_equal(call_create(h, directory(h, inside, "hooks"), "post-index-change", O_RDWR,
				     0755, NULL, NULL),
			 -EACCES);
	/* Nor where package managers may do what they like otherwise. */
	make_repository(h, package, ".git");
	assert_int_equal(put(h, harness_node(h, package, ".git"), "config", evil(h), NULL),
			 -EACCES);
	assert_int_equal(call_rename(h, packages, "sub", old, "sub", 0), -EACCES);
	assert_git_is_safe(h);
}

/* Under a name that says nothing, and not there at the start: the host makes it meanwhile. */
static void test_made_by_the_host(void **state)
{
	struct harness *h = *state;
	struct fuse_open_out out;
	uint64_t bare, hooks, fh;
	uint32_t written;

	host_shell(h, "git init -q --bare bare && echo exit >bare/hooks/post-update && "
		      "mkdir -p node_modules/p && git init -q node_modules/p && "
		      "echo exit >node_modules/p/.git/hooks/pre-commit");
	bare = harness_node(h, FUSE_ROOT_ID, "bare");
	hooks = harness_node(h, bare, "hooks");
	assert_int_equal(call_open(h, FUSE_OPEN, harness_node(h, bare, "config"), O_RDWR, &out), 0);
	fh = out.fh;
	assert_int_equal(call_write(h, fh, 0, "\n\tfsmonitor=x\n", 14, O_APPEND, 0, &written),
			 -EACCES);
	assert_int_equal(
		call_open(h, FUSE_OPEN, harness_node(h, hooks, "post-update"), O_RDWR, &out),
		-EACCES);
	assert_int_equal(call_create(h, hooks, "pre-receive", O_RDWR, 0755, NULL, NULL), -EACCES);
	assert_int_equal(call_link(h, harness_node(h, hooks, "post-update"), hooks, "update"),
			 -EACCES);
	assert_int_equal(call_rename(h, hooks, "post-update", hooks, "update", 0), -EACCES);
	assert_int_equal(put(h, bare, "config.worktree", evil(h), NULL), -EACCES);
	bare = harness_node(h, harness_node(h, harness_node(h, FUSE_ROOT_ID, "node_modules"), "p"),
			    ".git");
	hooks = harness_node(h, bare, "hooks");
	assert_int_equal(
		call_open(h, FUSE_OPEN, harness_node(h, hooks, "pre-commit"), O_RDWR, &out),
		-EACCES);
	assert_int_equal(call_remove(h, FUSE_UNLINK, hooks, "pre-commit"), 0);
	/* A directory of that name is one like any other. */
	hooks = directory(h, harness_node(h, FUSE_ROOT_ID, "plain"), "hooks");
	assert_int_equal(put(h, hooks, "useThis.js", "x", NULL), 0);
}

/* Where a submodule's repository says that its work tree is does not come to be outside of the
 * share by moving the repository up. */
static void test_moved_upwards(void **state)
{
	struct harness *h = *state;
	uint64_t git = make_repository(h, harness_node(h, FUSE_ROOT_ID, "sub"), ".git");
	uint64_t modules = directory(h, git, "modules"), deep = directory(h, modules, "deep");
	uint64_t module = make_repository(h, deep, "module");

	assert_int_equal(put(h, module, "config", "[core]\n\tworktree = ../../../../x\n", NULL), 0);
	assert_int_equal(call_rename(h, deep, "module", modules, "module", 0), -EXDEV);
	assert_int_equal(call_rename(h, deep, "module", git, "module.git", 0), -EXDEV);
	assert_int_equal(call_rename(h, git, "modules", FUSE_ROOT_ID, "m.git", 0), -EXDEV);
	directory(h, modules, "other");
	assert_int_equal(call_rename(h, deep, "module", modules, "other", RENAME_EXCHANGE), -EXDEV);
	assert_int_equal(call_rename(h, modules, "other", deep, "module", RENAME_EXCHANGE), -EXDEV);
	/* Down, or to its side: it stays within. A repository may come to be a submodule's. */
	assert_int_equal(call_rename(h, deep, "module", deep, "renamed", 0), 0);
	assert_int_equal(call_rename(h, deep, "renamed", directory(h, deep, "deeper"), "m", 0), 0);
	make_repository(h, harness_node(h, FUSE_ROOT_ID, "plain"), ".git");
	assert_int_equal(
		call_rename(h, harness_node(h, FUSE_ROOT_ID, "plain"), ".git", modules, "plain", 0),
		0);
}

/* What this stands on: git on the host writes through symbolic links in its repository. */
static void test_git_writes_through_links(void **state)
{
	struct harness *h = *state;
	char path[128];
	struct stat status;

	host_shell(h, "echo old > '../outside/log' && rm -rf .git/logs/HEAD && "
		      "ln -s '../../../outside/log' .git/logs/HEAD && git checkout -q -b new");
	snprintf(path, sizeof(path), "%s/log", h->outside);
	assert_int_equal(stat(path, &status), 0);
	assert_true(status.st_size > 100);
}

/* None of them is the guest's: not in the user's repository nor in its own, by no operation. */
static void test_links_in_repositories(void **state)
{
	struct harness *h = *state;
	uint64_t sub = harness_node(h, FUSE_ROOT_ID, "sub"),
		 plain = harness_node(h, FUSE_ROOT_ID, "plain");
	uint64_t old = harness_node(h, FUSE_ROOT_ID, ".git"), logs = harness_node(h, old, "logs");
	uint64_t git = make_repository(h, sub, ".git"), bare = make_repository(h, sub, "x.git");
	uint64_t deep = directory(h, directory(h, bare, "logs"), "y.git"), link, at;
	static const char *const names[] = {"index", "HEAD", "COMMIT_EDITMSG", "a", "index", "a"};
	static const char target[] = "../../outside/log";

	assert_int_equal(call_remove(h, FUSE_UNLINK, old, "index"), 0);
	assert_int_equal(call_remove(h, FUSE_UNLINK, logs, "HEAD"), 0);
	assert_int_equal(call_symlink(h, plain, "link", target, &link), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		const uint64_t places[] = {old,  logs, git, harness_node(h, git, "refs"),
					   bare, deep};

		at = places[i];
		assert_int_equal(call_symlink(h, at, names[i], target, NULL), -EACCES);
		assert_int_equal(call_rename(h, plain, "link", at, "link", 0), -EACCES);
		assert_int_equal(call_link(h, link, at, "link"), -EACCES);
		assert_int_equal(put(h, at, "file", "", NULL), 0);
		assert_int_equal(call_rename(h, plain, "link", at, "file", RENAME_EXCHANGE),
				 -EACCES);
		assert_int_equal(call_rename(h, at, "file", plain, "link", RENAME_EXCHANGE),
				 -EACCES);
	}
	/* As "git init" does to find out whether it can. */
	assert_int_equal(call_symlink(h, git, "tAbCdEf", "testing", NULL), 0);
	/* In a work tree of that name they are as anywhere else; and do not come to be where git
	 * writes with a directory. */
	at = directory(h, bare, "src");
	assert_int_equal(call_symlink(h, at, "link", target, NULL), 0);
	assert_int_equal(call_rename(h, bare, "src", bare, "rr-cache", 0), -EXDEV);
	assert_int_equal(call_rename(h, bare, "src", bare, "lib", 0), 0);
	assert_int_equal(call_rename(h, bare, "lib", git, "lib", 0), -EACCES);
	assert_int_equal(call_rename(h, sub, "x.git", directory(h, git, "modules"), "x", 0),
			 -EXDEV);
}

/* What the user lifts is lifted, and said how. */
static void test_unprotected(void **state)
{
	struct harness *h = harness_create_place("/dev/shm");
	struct fs_config config = {.policy = policy_create()};
	struct capture report;
	uint64_t sub, git;

	*state = h;
	assert_int_equal(policy_add_defaults(config.policy), 0);
	assert_int_equal(policy_add(config.policy, POLICY_UNPROTECT, "sub/.git/config"), 0);
	assert_int_equal(policy_add(config.policy, POLICY_UNPROTECT, "sub/.git/hooks"), 0);
	harness_serve(h, &config);
	sub = directory(h, FUSE_ROOT_ID, "sub");
	git = make_repository(h, sub, ".git");
	assert_int_equal(put(h, git, "config", evil(h), NULL), 0);
	assert_int_equal(put(h, directory(h, git, "hooks"), "pre-commit", "x", NULL), 0);
	git = make_repository(h, directory(h, sub, "below"), ".git");
	capture_begin(&report);
	assert_int_equal(put(h, git, "config", evil(h), NULL), -EACCES);
	capture_end(&report);
	capture_expect_sentence(
		&report,
		"refused the guest to make or change sub/below/.git/config: git on the host would "
		"obey its setting 'core.fsmonitor' (--unprotect 'sub/below/.git/config' allows "
		"it)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_git_obeys_it, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_written_in_place, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_renamed_into_place, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_hooks, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_led_elsewhere, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_moved_into_place, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_made_by_the_host, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_moved_upwards, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_git_writes_through_links, setup,
						harness_teardown),
		cmocka_unit_test_setup_teardown(test_links_in_repositories, setup,
						harness_teardown),
		cmocka_unit_test_teardown(test_unprotected, harness_teardown),
	};

	return cmocka_run_group_tests_name("fs repository", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Hidden and protected names at every operation that could see, make, change or move them. */
#include "tests/unit/cli_capture.h"
#include "tests/unit/fs_harness.h"

static int setup(void **state)
{
	struct harness *h = harness_create_place("/dev/shm");
	struct fs_config config = {.policy = policy_create()};
	char path[512];

	*state = h;
	assert_non_null(config.policy);
	assert_int_equal(policy_add_defaults(config.policy), 0);
	assert_int_equal(policy_add(config.policy, POLICY_PROTECT, "ci/deploy"), 0);
	for (const char *const *name = (const char *const[]){".git", "empty.git", ".git/hooks",
							     ".git/objects", ".git/objects/info",
							     ".ssh", "src", "ci", "module", NULL};
	     *name; name++) {
		harness_path(h, *name, path);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	harness_host_write(h, ".env", "secret");
	harness_host_write(h, ".git/config", "config");
	harness_host_write(h, ".git/HEAD", "head");
	harness_host_write(h, "module/.git", "gitdir: ../.git/modules/module");
	harness_host_write(h, "src/a", "a");
	harness_serve(h, &config);
	return 0;
}

static bool listed(struct harness *h, uint64_t directory, uint32_t opendir_list, const char *name)
{
	bool found = false;
	struct fuse_open_out out;

	assert_int_equal(call_open(h, FUSE_OPENDIR, directory, O_RDONLY, &out), 0);
	h->capacity = 65536;
	assert_int_equal(call_read(h, opendir_list, out.fh, 0, 65536), 0);
	found = memmem(h->payload, h->payload_size, name, strlen(name)) != NULL;
	h->capacity = 1024;
	assert_int_equal(call_release(h, FUSE_RELEASEDIR, directory, out.fh), 0);
	return found;
}

static void test_hidden_is_not_there(void **state)
{
	struct harness *h = *state;

	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, ".env", NULL), -ENOENT);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, ".ENV", NULL), -ENOENT);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, ".ssh", NULL), -ENOENT);
	assert_false(listed(h, FUSE_ROOT_ID, FUSE_READDIR, ".env"));
	assert_false(listed(h, FUSE_ROOT_ID, FUSE_READDIRPLUS, ".env"));
	assert_false(listed(h, FUSE_ROOT_ID, FUSE_READDIRPLUS, ".ssh"));
	assert_true(listed(h, FUSE_ROOT_ID, FUSE_READDIR, "src"));
	assert_int_equal(call_remove(h, FUSE_UNLINK, FUSE_ROOT_ID, ".env"), -ENOENT);
	assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, ".ssh"), -ENOENT);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, ".env", FUSE_ROOT_ID, "e", 0), -ENOENT);
	assert_true(harness_host_exists(h, ".env"));
	assert_true(harness_host_exists(h, ".ssh"));
}

static void test_hidden_cannot_be_made(void **state)
{
	struct harness *h = *state;
	uint64_t src = harness_node(h, FUSE_ROOT_ID, "src");
	uint64_t a = harness_node(h, src, "a");
	static const char *const names[] = {".env", ".ENV", ".netrc", "id_rsa", ".env.x.local"};

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		const char *name = names[i];

		assert_int_equal(call_create(h, src, name, O_RDWR, 0600, NULL, NULL), -EACCES);
		assert_int_equal(call_mkdir(h, src, name, 0700, NULL), -EACCES);
		assert_int_equal(call_mknod(h, src, name, S_IFREG | 0600, NULL), -EACCES);
		assert_int_equal(call_symlink(h, src, name, "x", NULL), -EACCES);
		assert_int_equal(call_link(h, a, src, name), -EACCES);
		assert_int_equal(call_rename(h, src, "a", src, name, 0), -EACCES);
		assert_int_equal(call_rename(h, src, "a", src, name, RENAME_EXCHANGE), -EACCES);
		assert_int_equal(call_rename(h, src, "a", FUSE_ROOT_ID, name, 0), -EACCES);
	}
	assert_int_equal(harness_host_stat(h, ".env").st_size, 6);
	assert_true(harness_host_exists(h, "src/a"));
}

/* Contents, attributes and name of a file that is there. */
static void refuse_all_changes(struct harness *h, uint64_t directory, const char *name)
{
	uint64_t id = harness_node(h, directory, name);
	struct fuse_setattr_in set = {.valid = FATTR_MODE, .mode = 0777};
	struct fuse_setattr_in cut = {.valid = FATTR_SIZE, .size = 0};
	struct fuse_setattr_in touch = {.valid = FATTR_MTIME_NOW};
	struct fuse_open_out out;

	assert_int_equal(call_open(h, FUSE_OPEN, id, O_WRONLY, &out), -EACCES);
	assert_int_equal(call_open(h, FUSE_OPEN, id, O_RDWR, &out), -EACCES);
	assert_int_equal(call_open(h, FUSE_OPEN, id, O_RDONLY | O_TRUNC, &out), -EACCES);
	assert_int_equal(harness_call(h, FUSE_SETATTR, id, PIECE(set), NONE, NONE), -EACCES);
	assert_int_equal(harness_call(h, FUSE_SETATTR, id, PIECE(cut), NONE, NONE), -EACCES);
	assert_int_equal(harness_call(h, FUSE_SETATTR, id, PIECE(touch), NONE, NONE), -EACCES);
	assert_int_equal(call_remove(h, FUSE_UNLINK, directory, name), -EACCES);
	assert_int_equal(call_rename(h, directory, name, directory, "moved", 0), -EACCES);
	assert_int_equal(call_link(h, id, FUSE_ROOT_ID, "another"), -EACCES);
	/* It may be read. */
	assert_int_equal(call_open(h, FUSE_OPEN, id, O_RDONLY, &out), 0);
	assert_int_equal(call_read(h, FUSE_READ, out.fh, 0, 64), 0);
	assert_true(h->payload_size > 0);
	assert_int_equal(call_release(h, FUSE_RELEASE, id, out.fh), 0);
}

static void test_protected_file(void **state)
{
	struct harness *h = *state;
	uint64_t git = harness_node(h, FUSE_ROOT_ID, ".git");
	uint64_t src = harness_node(h, FUSE_ROOT_ID, "src");
	uint64_t lock, fh;
	uint32_t written;
	char text[32];
	ino_t inode;

	refuse_all_changes(h, git, "config");
	refuse_all_changes(h, harness_node(h, FUSE_ROOT_ID, "module"), ".git");
	/* It is there to a guest that asks for a new one, and may be read by one that does not. */
	assert_int_equal(call_create(h, git, "config", O_RDWR | O_EXCL, 0600, NULL, NULL), -EEXIST);
	assert_int_equal(call_create(h, git, "config", O_RDONLY, 0600, NULL, NULL), 0);
	assert_int_equal(call_create(h, git, "config", O_RDWR, 0600, NULL, NULL), -EACCES);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, ".env", O_RDWR | O_EXCL, 0600, NULL, NULL),
			 -EACCES);
	/* As git changes it: a new file that takes its name. */
	assert_int_equal(call_create(h, git, "config.lock", O_RDWR, 0600, NULL, NULL), 0);
	assert_int_equal(call_rename(h, git, "config.lock", git, "config", 0), -EACCES);
	assert_int_equal(call_rename(h, git, "config.lock", git, "CONFIG", 0), -EACCES);
	assert_int_equal(call_rename(h, git, "config.lock", git, "config", RENAME_EXCHANGE),
			 -EACCES);
	assert_int_equal(call_rename(h, src, "a", git, "config", 0), -EACCES);
	assert_int_equal(call_remove(h, FUSE_UNLINK, git, "config.lock"), 0);
	/* A new file that is the old one's equal does no harm: it goes, the old one stays. */
	assert_int_equal(call_create(h, git, "config.lock", O_RDWR, 0644, &lock, &fh), 0);
	assert_int_equal(call_write(h, fh, 0, "confiG", 6, 0, 0, &written), 0);
	assert_int_equal(call_rename(h, git, "config.lock", git, "config", 0), -EACCES);
	assert_int_equal(call_write(h, fh, 0, "config", 6, 0, 0, &written), 0);
	inode = harness_host_stat(h, ".git/config").st_ino;
	assert_int_equal(call_rename(h, git, "config.lock", git, "config", 0), 0);
	assert_false(harness_host_exists(h, ".git/config.lock"));
	assert_int_equal(harness_host_stat(h, ".git/config").st_ino, inode);
	assert_int_equal(call_write(h, fh, 0, "evil!!", 6, 0, 0, &written), 0);
	harness_host_read(h, ".git/config", text, sizeof(text));
	assert_string_equal(text, "config");
}

static void test_protected_though_absent(void **state)
{
	struct harness *h = *state;
	uint64_t git = harness_node(h, FUSE_ROOT_ID, ".git");
	uint64_t hooks = harness_node(h, git, "hooks");
	uint64_t objects = harness_node(h, git, "objects");
	uint64_t info = harness_node(h, objects, "info");
	uint64_t ci = harness_node(h, FUSE_ROOT_ID, "ci");

	assert_int_equal(call_create(h, hooks, "pre-commit", O_RDWR, 0755, NULL, NULL), -EACCES);
	assert_int_equal(call_mkdir(h, hooks, "d", 0755, NULL), -EACCES);
	assert_int_equal(call_symlink(h, hooks, "post-merge", "../../x", NULL), -EACCES);
	assert_int_equal(call_create(h, git, "commondir", O_RDWR, 0644, NULL, NULL), -EACCES);
	assert_int_equal(call_create(h, info, "alternates", O_RDWR, 0644, NULL, NULL), -EACCES);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, ".vscode", 0755, NULL), -EACCES);
	assert_int_equal(call_create(h, ci, "deploy", O_RDWR, 0755, NULL, NULL), -EACCES);
	/* Nor by making the way there anew. */
	assert_int_equal(call_remove(h, FUSE_RMDIR, objects, "info"), 0);
	assert_int_equal(call_mkdir(h, objects, "info", 0755, &info), 0);
	assert_int_equal(call_create(h, info, "alternates", O_RDWR, 0644, NULL, NULL), -EACCES);
	assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, "ci"), 0);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "ci", 0755, &ci), 0);
	assert_int_equal(call_create(h, ci, "deploy", O_RDWR, 0755, NULL, NULL), -EACCES);
}

static void test_ancestors_keep_their_names(void **state)
{
	struct harness *h = *state;
	uint64_t other;

	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "other", 0755, &other), 0);
	assert_int_equal(call_create(h, other, "deploy", O_RDWR, 0755, NULL, NULL), 0);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, ".git", FUSE_ROOT_ID, "g", 0), -EACCES);
	assert_int_equal(
		call_rename(h, FUSE_ROOT_ID, ".git", FUSE_ROOT_ID, "other", RENAME_EXCHANGE),
		-EACCES);
	assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, ".git"), -ENOTEMPTY);
	assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, "empty.git"), -EACCES);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "ci", FUSE_ROOT_ID, "c", 0), -EACCES);
	/* What was prepared elsewhere cannot take the place. */
	assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, "ci"), 0);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "other", FUSE_ROOT_ID, "ci", 0), -EACCES);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "other", FUSE_ROOT_ID, "x.git", 0), -EACCES);
	/* Directories without such a name move freely, with all that they hold. */
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "module", FUSE_ROOT_ID, "m", 0), 0);
	refuse_all_changes(h, harness_node(h, FUSE_ROOT_ID, "m"), ".git");
}

static void test_new_repositories_are_free(void **state)
{
	struct harness *h = *state;
	uint64_t src = harness_node(h, FUSE_ROOT_ID, "src");
	uint64_t git, hooks, file, old = harness_node(h, FUSE_ROOT_ID, ".git"), modules, module;
	struct fuse_open_out out;

	assert_int_equal(call_mkdir(h, src, ".git", 0755, &git), 0);
	assert_int_equal(call_create(h, git, "config", O_RDWR, 0644, NULL, NULL), 0);
	assert_int_equal(call_mkdir(h, git, "hooks", 0755, &hooks), 0);
	assert_int_equal(call_create(h, hooks, "pre-commit.sample", O_RDWR, 0755, NULL, NULL), 0);
	/* Also when the guest has forgotten it meanwhile. */
	harness_forget(h, git, 1);
	git = harness_node(h, src, ".git");
	assert_int_equal(call_create(h, git, "commondir", O_RDWR, 0644, NULL, NULL), 0);
	assert_int_equal(call_rename(h, src, ".git", src, "repository", 0), -EACCES);
	assert_int_equal(call_mkdir(h, src, "tree", 0755, &src), 0);

	/* A new worktree's pointer and a new submodule of the old repository. */
	assert_int_equal(call_create(h, src, ".git", O_RDWR, 0644, &file, NULL), 0);
	assert_int_equal(call_open(h, FUSE_OPEN, file, O_RDWR, &out), 0);
	assert_int_equal(call_remove(h, FUSE_UNLINK, src, ".git"), 0);
	assert_int_equal(call_mkdir(h, old, "modules", 0755, &modules), 0);
	assert_int_equal(call_mkdir(h, modules, "new", 0755, &module), 0);
	assert_int_equal(call_create(h, module, "config", O_RDWR, 0644, NULL, NULL), 0);
	/* The old one is as closed as ever. */
	assert_int_equal(call_create(h, old, "commondir", O_RDWR, 0644, NULL, NULL), -EACCES);
}

static void test_packages_are_free(void **state)
{
	struct harness *h = *state;
	uint64_t modules, package, settings;

	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "node_modules", 0755, &modules), 0);
	assert_int_equal(call_mkdir(h, modules, "p", 0755, &package), 0);
	assert_int_equal(call_mkdir(h, package, ".vscode", 0755, &settings), 0);
	assert_int_equal(call_create(h, settings, "tasks.json", O_RDWR, 0644, NULL, NULL), 0);
	assert_int_equal(call_create(h, package, ".env", O_RDWR, 0644, NULL, NULL), 0);
	/* But not by way of them. */
	assert_int_equal(call_rename(h, modules, "p", FUSE_ROOT_ID, "p", 0), -EXDEV);
	assert_int_equal(call_rename(h, package, ".vscode", FUSE_ROOT_ID, ".vscode", 0), -EACCES);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "node_modules", FUSE_ROOT_ID, "x", 0),
			 -EXDEV);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "src", modules, "src", 0), -EXDEV);
	assert_int_equal(call_rename(h, modules, "p", modules, "q", 0), 0);
}

/* Where a rule goes on below, a symbolic link would lead it elsewhere. */
static void test_symlinks_in_the_way(void **state)
{
	struct harness *h = *state;
	uint64_t git = harness_node(h, FUSE_ROOT_ID, ".git");
	uint64_t objects = harness_node(h, git, "objects"), link;

	assert_int_equal(call_remove(h, FUSE_RMDIR, objects, "info"), 0);
	assert_int_equal(call_symlink(h, objects, "info", "../../src", NULL), -EACCES);
	assert_int_equal(call_remove(h, FUSE_RMDIR, FUSE_ROOT_ID, "ci"), 0);
	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "ci", "src", NULL), -EACCES);
	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "harmless", "src", &link), 0);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "harmless", FUSE_ROOT_ID, "ci", 0), -EACCES);
	assert_int_equal(call_rename(h, FUSE_ROOT_ID, "harmless", git, "modules", 0), -EACCES);
	assert_int_equal(call_link(h, link, git, "worktrees"), -EACCES);
	assert_int_equal(call_symlink(h, harness_node(h, FUSE_ROOT_ID, "src"), ".git", "..", NULL),
			 -EACCES);
}

/* Git takes a directory with these three for a repository, whatever its name. */
static void test_repositories_without_a_name(void **state)
{
	struct harness *h = *state;
	uint64_t src = harness_node(h, FUSE_ROOT_ID, "src"), bare, id;

	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "objects", 0755, NULL), 0);
	assert_int_equal(call_mkdir(h, FUSE_ROOT_ID, "refs", 0755, NULL), 0);
	assert_int_equal(call_create(h, FUSE_ROOT_ID, "HEAD", O_RDWR, 0644, NULL, NULL), -EACCES);
	assert_int_equal(call_rename(h, src, "a", FUSE_ROOT_ID, "HEAD", 0), -EACCES);
	assert_int_equal(call_symlink(h, FUSE_ROOT_ID, "HEAD", "x", NULL), -EACCES);
	/* Nor made under a name that the rules know, and renamed. */
	assert_int_equal(call_mkdir(h, src, "new.git", 0755, &bare), 0);
	assert_int_equal(call_mkdir(h, bare, "objects", 0755, NULL), 0);
	assert_int_equal(call_mkdir(h, bare, "refs", 0755, NULL), 0);
	assert_int_equal(call_create(h, bare, "HEAD", O_RDWR, 0644, NULL, NULL), 0);
	assert_int_equal(call_rename(h, src, "new.git", src, "new", 0), -EACCES);
	assert_int_equal(call_rename(h, src, "new.git", src, "other.git", 0), -EACCES);
	/* Two of the three are a directory like any other. */
	assert_int_equal(call_mkdir(h, src, "plain", 0755, &id), 0);
	assert_int_equal(call_create(h, id, "HEAD", O_RDWR, 0644, NULL, NULL), 0);
	assert_int_equal(call_mkdir(h, id, "refs", 0755, NULL), 0);
}

/* A hidden file has another name, which nothing but the file itself betrays. */
static void test_hidden_by_another_name(void **state)
{
	struct harness *h = harness_create_place("/dev/shm");
	struct fs_config config = {.policy = policy_create(), .scan = true};
	struct capture report;
	char from[512], to[512];

	*state = h;
	assert_int_equal(policy_add_defaults(config.policy), 0);
	harness_path(h, "conf", from);
	assert_int_equal(mkdir(from, 0755), 0);
	harness_host_write(h, "conf/.env", "secret");
	harness_host_write(h, "plain", "text");
	harness_path(h, "conf/.env", from);
	harness_path(h, "settings", to);
	assert_int_equal(link(from, to), 0);
	capture_begin(&report);
	harness_serve(h, &config);
	capture_end(&report);
	capture_expect_sentence(&report, "1 name in the share is hidden from the guest: conf/.env");
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "settings", NULL), -ENOENT);
	assert_false(listed(h, FUSE_ROOT_ID, FUSE_READDIR, "settings"));
	assert_false(listed(h, FUSE_ROOT_ID, FUSE_READDIRPLUS, "settings"));
	assert_true(listed(h, FUSE_ROOT_ID, FUSE_READDIRPLUS, "plain"));
	/* Nor does it become visible when the hidden name goes. */
	assert_int_equal(unlink(from), 0);
	assert_int_equal(call_lookup(h, FUSE_ROOT_ID, "settings", NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hidden_is_not_there, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_hidden_cannot_be_made, setup,
						harness_teardown),
		cmocka_unit_test_setup_teardown(test_protected_file, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_protected_though_absent, setup,
						harness_teardown),
		cmocka_unit_test_setup_teardown(test_ancestors_keep_their_names, setup,
						harness_teardown),
		cmocka_unit_test_setup_teardown(test_new_repositories_are_free, setup,
						harness_teardown),
		cmocka_unit_test_setup_teardown(test_packages_are_free, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_symlinks_in_the_way, setup, harness_teardown),
		cmocka_unit_test_setup_teardown(test_repositories_without_a_name, setup,
						harness_teardown),
		cmocka_unit_test_teardown(test_hidden_by_another_name, harness_teardown),
	};

	return cmocka_run_group_tests_name("fs guard", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which configurations of git are harmless, and what git makes of names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/fs/git_config.h"
#include "vmm/fs/git_place.h"

static bool harmless(const char *text)
{
	char key[GIT_CONFIG_KEY_BYTES];

	return git_config_is_harmless(text, strlen(text), 2, key);
}

static void test_what_repositories_have(void **state)
{
	static const char *const texts[] = {
		"",
		"# comment\n; another\n\n   \n",
		"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
		"[CORE]\n\tBare\n",
		"[remote \"origin\"]\n\turl = https://example.org/x.git\n"
		"\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
		"[branch \"a \\\"b\\\"\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
		"[user]\n\tname = \"A # B\" # a comment\n\temail = a@b\n",
		"[core]\n\tworktree = ../../module\n",
		"[core]\n\tbare = true",
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(texts); i++)
		assert_true(harmless(texts[i]));
}

static void test_what_runs_programs(void **state)
{
	static const char *const texts[] = {
		"[core]\n\tfsmonitor = /tmp/evil\n",
		"[core] fsmonitor = /tmp/evil\n",
		"[Core]\n\tFSMonitor=/tmp/evil",
		"[core \"\"]\n\tbare = true\n",
		"[core.x]\n\tbare = true\n",
		"[include]\n\tpath = ../x\n",
		"[includeIf \"gitdir:/\"]\n\tpath = ../x\n",
		"[filter \"x\"]\n\tclean = evil\n",
		"[alias]\n\tst = !evil\n",
		"[core]\n\thooksPath = x\n",
		"[diff]\n\texternal = x\n",
		"[diff \"x\"]\n\ttextconv = x\n",
		"[remote \"x\"]\n\tuploadpack = x\n",
		"[remote \"x\"]\n\turl = ext::sh -c evil\n",
		"[remote \"x\"]\n\turl = \"ext:\"\":sh\"\n",
		"[remote \"x\"]\n\turl = --upload-pack=x\n",
		"[remote \"x\"]\n\turl = \"\"-x\n",
		"[branch \"x\"]\n\tremote = ext::x\n",
		"[submodule \"x\"]\n\tupdate = !x\n",
		"[user]\n\tname = x\\\n[core]\\\n\tfsmonitor = x\n",
		"[user]\n\tname = x\r[core]\n",
		"[user]\r\n\tname = x\r\n",
		"[core]\n\tworktree = ../../../outside\n",
		"[core]\n\tworktree = /home\n",
		"[core]\n\tworktree = a/../../../../b\n",
		"[core]\n\tworktree = \"../../../../b\"\n",
		"[core]\n\tworktree\n\tworktree = ..\n",
		"[remote \"x]\n",
		"[]\n\tbare = true\n",
		"bare = true\n",
		"[core]\n\t= true\n",
		"[core]\n\tbare true\n",
		"\xef\xbb\xbf[core]\n",
		"[gc]\n\trecentObjectsHook = x\n",
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(texts); i++)
		if (harmless(texts[i]))
			fail_msg("taken for harmless: %s", texts[i]);
}

static void test_the_key_is_named(void **state)
{
	static const char text[] = "[core]\n\tbare = true\n\tfsmonitor = x\n";
	static const char zero[] = "[core]\n\0fsmonitor = x\n";
	static char large[GIT_CONFIG_BYTES + 1];
	char key[GIT_CONFIG_KEY_BYTES];

	(void)state;
	assert_false(git_config_is_harmless(text, strlen(text), 0, key));
	assert_string_equal(key, "core.fsmonitor");
	assert_false(git_config_is_harmless(zero, sizeof(zero) - 1, 0, key));
	memset(large, '\n', sizeof(large));
	assert_true(git_config_is_harmless(large, sizeof(large) - 1, 0, key));
	assert_false(git_config_is_harmless(large, sizeof(large), 0, key));
}

/* Whatever is taken for harmless, git itself finds no other keys in. */
static void test_git_reads_the_same(void **state)
{
	static const char *const pieces[] = {
		"[core]",
		"[core \"",
		"\"]",
		"bare",
		" = ",
		"true",
		"\\",
		"\"",
		"#",
		";",
		"\n",
		"\t",
		"[",
		"]",
		"fsmonitor",
		"=",
		".",
		"x",
		"\\\n",
		" ",
		"[user]",
		"name",
		"[remote \"o\"]",
		"url",
		"::",
		"worktree",
		"../",
	};
	char path[] = "/tmp/mvagent-config-XXXXXX", command[128], line[512];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	snprintf(command, sizeof(command), "git config --file %s --list 2>/dev/null", path);
	srand(4711);
	for (unsigned int round = 0, tried = 0; tried < 200 && round < 2000000; round++) {
		char text[512] = "", key[GIT_CONFIG_KEY_BYTES];
		FILE *git;

		for (int i = rand() % 12 + 2; i > 0; i--)
			strcat(text, pieces[(unsigned int)rand() % ARRAY_SIZE(pieces)]);
		/* Interesting is what is let through though a program's key is in it. */
		if (!strstr(text, "fsmonitor") ||
		    !git_config_is_harmless(text, strlen(text), 1, key))
			continue;
		tried++;
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
		git = popen(command, "r");
		assert_non_null(git);
		while (fgets(line, sizeof(line), git))
			if (strncmp(line, "core.fsmonitor", 14) == 0)
				fail_msg("git finds core.fsmonitor in: %s", text);
		pclose(git);
	}
	close(fd);
	unlink(path);
}

static enum git_directory walk(const char *const *names)
{
	struct git_walk walk = {0};
	enum git_directory found = GIT_DIRECTORY_OPEN;

	for (; *names && found == GIT_DIRECTORY_OPEN; names++)
		found = git_walk_up(&walk, *names);
	return found == GIT_DIRECTORY_OPEN ? GIT_DIRECTORY_OUTSIDE : found;
}

#define WALK(...) walk((const char *const[]){__VA_ARGS__, NULL})

static void test_places(void **state)
{
	(void)state;
	assert_int_equal(WALK(".git", "src"), GIT_DIRECTORY_REPOSITORY);
	assert_int_equal(WALK("x.GIT"), GIT_DIRECTORY_REPOSITORY);
	assert_int_equal(WALK("a", "modules", ".git"), GIT_DIRECTORY_REPOSITORY);
	assert_int_equal(WALK("b", "a", "modules", ".git"), GIT_DIRECTORY_REPOSITORY);
	assert_int_equal(WALK("w", "worktrees", ".git"), GIT_DIRECTORY_REPOSITORY);
	assert_int_equal(WALK("heads", "refs", "a", "modules", ".git"), GIT_DIRECTORY_INSIDE);
	assert_int_equal(WALK("heads", "refs", ".git"), GIT_DIRECTORY_INSIDE);
	assert_int_equal(WALK("a", "modules", "x", "y.git"), GIT_DIRECTORY_INSIDE);
	assert_int_equal(WALK("a", "modules", "x", ".git"), GIT_DIRECTORY_REPOSITORY);
	assert_int_equal(WALK("modules", "src"), GIT_DIRECTORY_OUTSIDE);
	assert_int_equal(
		git_place_of(GIT_DIRECTORY_OUTSIDE, ".git", GIT_DIRECTORY_REPOSITORY, "Config"),
		GIT_PLACE_CONFIG);
	assert_int_equal(
		git_place_of(GIT_DIRECTORY_INSIDE, "heads", GIT_DIRECTORY_INSIDE, "config"),
		GIT_PLACE_NONE);
	assert_int_equal(
		git_place_of(GIT_DIRECTORY_REPOSITORY, "hooks", GIT_DIRECTORY_INSIDE, "pre-commit"),
		GIT_PLACE_HOOK);
	assert_int_equal(git_place_of(GIT_DIRECTORY_OUTSIDE, "hooks", GIT_DIRECTORY_OUTSIDE, "x"),
			 GIT_PLACE_NONE);
	assert_int_equal(git_place_of(GIT_DIRECTORY_OUTSIDE, NULL, GIT_DIRECTORY_UNKNOWN, "hooks"),
			 GIT_PLACE_HOOKS);
}

/* Where git writes by the names that it finds. */
static void test_kept_places(void **state)
{
	static const char *const kept[] = {".git",        "a/.GIT",         ".git/x/y",
					   "x.git",       "x.git/logs/a/b", "x.git/refs/y.git/z",
					   ".git/y.git/z"};
	static const char *const open[] = {"",       "src",           "x.git/src",
					   "logs/x", "x.git/src/lib", "x.gitt/refs"};

	(void)state;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (!git_keeps_at(kept[i], strlen(kept[i])))
			fail_msg("git writes in %s", kept[i]);
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		if (git_keeps_at(open[i], strlen(open[i])))
			fail_msg("git writes nothing in %s", open[i]);
}

/* A commondir leads to the repository, or is on its way there. */
static void test_commondir(void **state)
{
	(void)state;
	assert_true(git_commondir_is_harmless("tree", "../..\n", 6));
	assert_true(git_commondir_is_harmless("tree", "../", 3));
	assert_true(git_commondir_is_harmless("x.git", "", 0));
	assert_false(git_commondir_is_harmless("x.git", "../..\n", 6));
	assert_false(git_commondir_is_harmless("tree", "../../", 6));
	assert_false(git_commondir_is_harmless("tree", "../..\n\n", 7));
	assert_false(git_commondir_is_harmless("tree", "/", 1));
	assert_false(git_commondir_is_harmless("tree", "../..", 6)); /* with the NUL */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_repositories_have),
		cmocka_unit_test(test_what_runs_programs),
		cmocka_unit_test(test_the_key_is_named),
		cmocka_unit_test(test_git_reads_the_same),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_kept_places),
		cmocka_unit_test(test_commondir),
	};

	return cmocka_run_group_tests_name("git config", tests, NULL, NULL);
}

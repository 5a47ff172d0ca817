/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns and what they say of names: the built-in rules, and the user's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/fs/case_fold.h"
#include "vmm/fs/policy.h"

static struct policy_verdict examine(const struct policy *policy, const char *path)
{
	struct policy_verdict verdict;

	policy_examine_path(policy, path, &verdict);
	return verdict;
}

static struct policy *with(enum policy_list list, const char *pattern)
{
	struct policy *policy = policy_create();

	assert_non_null(policy);
	assert_int_equal(policy_add(policy, list, pattern), 0);
	return policy;
}

struct row {
	const char *pattern;
	const char *path;
	bool matches;
};

static void test_patterns(void **state)
{
	static const struct row rows[] = {
		{"a", "a", true},
		{"*.git", ".git", true},
		{"*.git", "x.git", true},
		{"*.git", "git", false},
		{"*.git", "x.gi", false},
		{"*a*b", "xaxb", true},
		{"*a*b", "xbxa", false},
		{"*", "x", true},
		{"[ab]c", "bc", true},
		{"[ab]c", "cc", false},
		{"a[bc]", "ac", true},
		{"a\\*", "a*", true},
		{"a\\*", "ab", false},
		{"\\.a", ".a", true},
		{"a", "d/a", true},
		{"a", "d/a/below", true},
		{"a", "ab", false},
		{"a/", "a", true},
		{"/a", "a", true},
		{"/a", "d/a", false},
		{"./a", "d/a", false},
		{"a/b", "a/b", true},
		{"a/b", "a/b/c/d", true},
		{"a/b", "d/a/b", false},
		{"a/b", "a", false},
		{"**/a/b", "d/a/b", true},
		{"**/a/b", "a/b", true},
		{"**/a/b", "a/x/b", false},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b", true},
		{"a/**/b", "x/b", false},
		{"a/**", "a", false},
		{"a/**", "a/x", true},
		{"a/**", "a/x/y", true},
		{"**/a/a/b", "a/a/a/b", true},
		{"*.key", "x.key", true},
		{"*.key", ".key", true},
		{"*.key", "x.keys", false},
		{"x?z", "xyz", true},
		{"x[ab]z", "xbz", true},
		{"x[ab]z", "xcz", false},
		{"d/*/z", "d/q/z", true},
		{"d/*/z", "d/q/r/z", false},
		/* case, also where a directory folds beyond ASCII */
		{".ssh", ".SSH", true},
		{".SSH", ".ssh", true},
		{".ssh", ".\xc5\xbfsh", true},
		{".kube", ".\xe2\x84\xaaube", true},
		{"*.KEY", "a.Key", true},
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy *policy = with(POLICY_HIDE, rows[i].pattern);
		struct policy *protect = with(POLICY_PROTECT, rows[i].pattern);

		if (examine(policy, rows[i].path).hidden != rows[i].matches ||
		    examine(protect, rows[i].path).protected != rows[i].matches)
			fail_msg("pattern '%s', path '%s'", rows[i].pattern, rows[i].path);
		policy_destroy(policy);
		policy_destroy(protect);
	}
}

static void test_bad_patterns(void **state)
{
	static const char *const bad[] = {"", "/", "a//b", "..", "a/../b", ".", "a/."};
	struct policy *policy = policy_create();
	char *slashes = test_malloc(8192);
	char long_name[300];
	int error = 0;

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (policy_add(policy, POLICY_HIDE, bad[i]) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
	memset(long_name, 'a', sizeof(long_name));
	long_name[256] = '\0';
	assert_int_equal(policy_add(policy, POLICY_HIDE, long_name), -EINVAL);
	for (unsigned int i = 0; i < LIMIT_POLICY_COMPONENTS + 1; i++)
		memcpy(slashes + i * 2, "a/", 3);
	assert_int_equal(policy_add(policy, POLICY_HIDE, slashes), -E2BIG);
	for (unsigned int i = 0; i < LIMIT_POLICY_POSITIONS && !error; i++)
		error = policy_add(policy, POLICY_HIDE, "a/b/c");
	assert_int_equal(error, -E2BIG);
	/* What did not fit has left nothing behind: single names need no position. */
	for (error = 0; !error;)
		error = policy_add(policy, POLICY_HIDE, "x");
	assert_int_equal(error, -E2BIG);
	assert_true(examine(policy, "a/b/c").hidden);
	assert_false(examine(policy, "a/b").hidden);
	test_free(slashes);
	policy_destroy(policy);
}

static void test_exceptions(void **state)
{
	struct policy *policy = with(POLICY_HIDE, ".env");

	(void)state;
	assert_int_equal(policy_add(policy, POLICY_SHOW, "demo/.env"), 0);
	assert_int_equal(policy_add(policy, POLICY_PROTECT, "ci"), 0);
	assert_int_equal(policy_add(policy, POLICY_UNPROTECT, "ci/cache"), 0);
	assert_true(examine(policy, ".env").hidden);
	assert_false(examine(policy, "demo/.env").hidden);
	assert_true(examine(policy, "demo/x/.env").hidden);
	assert_true(examine(policy, "ci/run").protected);
	assert_true(examine(policy, "ci").protected);
	assert_false(examine(policy, "ci/cache").protected);
	assert_false(examine(policy, "ci/cache/a/b").protected);
	assert_string_equal(policy_rule(policy, examine(policy, "ci/run").rule), "ci");
	assert_string_equal(policy_rule(policy, examine(policy, ".env").rule), ".env");
	policy_destroy(policy);
}

static void test_defaults(void **state)
{
	static const char *const hidden[] = {
		".env",        "a/.env",          ".ENV",   ".env.local",   ".env.test.local",
		".envrc",      ".netrc",          ".ssh/x", "d/.aws/creds", ".gnupg",
		"deep/id_rsa", "home/id_ed25519",
	};
	static const char *const shown[] = {
		".env.example",      ".envoy", ".env.production", "ssh", "id_rsa.pub",
		"node_modules/.env", "a.pem",
	};
	static const char *const protected[] = {
		".git/hooks/pre-commit",
		".git/hooks",
		".git/config",
		".GIT/Config",
		"sub/.git/config",
		".git/config.worktree",
		".git/commondir",
		".git/objects/info/alternates",
		".git/worktrees/w/gitdir",
		".git/modules/a/hooks/x",
		".git/modules/a/b/config",
		"bare.git/hooks/update",
		".vscode/tasks.json",
		"web/.vscode",
		".claude/settings.json",
		".mcp.json",
		".gdbinit",
		".hg/sharedpath",
		"r/.rprofile",
		".helix/languages.toml",
		".direnv/flake-profile.rc",
		".devcontainer/devcontainer.json",
		".windsurf/hooks.json",
	};
	static const char *const open[] = {
		".git",
		".git/config.lock",
		".git/HEAD",
		".git/refs/heads/config",
		".git/index",
		".git/worktrees/w/HEAD",
		".git/modules/a/HEAD",
		".gitmodules",
		".gitignore",
		"hooks/x",
		"config",
		"node_modules/x/.vscode/settings.json",
		"Makefile",
	};
	struct policy *policy = policy_create();

	(void)state;
	assert_int_equal(policy_add_defaults(policy), 0);
	for (unsigned int i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (!examine(policy, hidden[i]).hidden)
			fail_msg("%s is not hidden", hidden[i]);
	for (unsigned int i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (examine(policy, shown[i]).hidden)
			fail_msg("%s is hidden", shown[i]);
	for (unsigned int i = 0; i < sizeof(protected) / sizeof(protected[0]); i++)
		if (!examine(policy, protected[i]).protected)
			fail_msg("%s is not protected", protected[i]);
	for (unsigned int i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		if (examine(policy, open[i]).protected)
			fail_msg("%s is protected", open[i]);
	assert_true(examine(policy, "sub/.git").protected_if_old);
	policy_destroy(policy);
}

/* In a directory of a repository that was made in this run, the built-in rules do not go on; but
 * what only is missing in an old one does not become free by being made. */
static void test_new_places(void **state)
{
	static const struct {
		const char *path;
		bool bound;
	} rows[] = {
		{".git", false},           {".git/worktrees", true}, {".git/worktrees/w", false},
		{".git/modules/m", false}, {".git/objects", true},   {".git/objects/info", true},
	};
	struct policy *policy = policy_create();
	struct policy_verdict verdict;

	(void)state;
	assert_int_equal(policy_add_defaults(policy), 0);
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool bound = false;

		verdict = examine(policy, rows[i].path);
		assert_true(policy_state_has_begun(&verdict.state));
		for (unsigned int word = 0; word < POLICY_STATE_WORDS; word++)
			bound |= verdict.matched_if_new[word] != 0;
		if (bound != rows[i].bound)
			fail_msg("%s made anew: %d", rows[i].path, bound);
	}
	policy_destroy(policy);

	/* The user's own rules bind always. */
	policy = with(POLICY_PROTECT, "*/deploy");
	verdict = examine(policy, "ci");
	assert_true(policy_state_has_begun(&verdict.state));
	assert_memory_equal(verdict.state.matched, verdict.matched_if_new,
			    sizeof(verdict.matched_if_new));
	policy_destroy(policy);
}

/* Names that a directory which ignores case may take for ASCII ones. */
static void test_other_cases(void **state)
{
	static const char *const suspect[] = {
		".\xc3\x9fh",
		".e\xe2\x80\x8bnv",
		".en\xc2\xadv",
		".\xc5\xbf\xc5\xbfh",
		".git/con\xef\xac\x81g",
		"\xff",
		"a\xc3",
		"\xc4\xb1",
		"\xc0\xaf",
	};
	static const char *const distinct[] = {
		".env",
		"B\xc3\xbc"
		"cher",
		"caf"
		"e\xcc\x81",
		"\xd0\xbf\xd1\x80",
		"\xe6\x97\xa5\xe6\x9c\xac",
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(suspect); i++)
		assert_int_equal(case_fold_of_name(suspect[i]), CASE_FOLD_UNICODE);
	for (unsigned int i = 0; i < ARRAY_SIZE(distinct); i++)
		assert_int_equal(case_fold_of_name(distinct[i]), 0);
	assert_int_equal(case_fold_of_name("GIT~1"), CASE_FOLD_DOS);
	assert_int_equal(case_fold_of_name(".env."), CASE_FOLD_DOS);
	assert_int_equal(case_fold_of_name("a~"), 0);
	assert_int_equal(case_fold_of_name(".env:x"), CASE_FOLD_STREAM);
}

/* The names of the built-in list, changed a little, against what fnmatch says of all of them. */
static void test_random_names(void **state)
{
	static const char letters[] = ".~#_-abegilnorstvwxy[*?\\EVNK";
	struct policy *policy = policy_create();
	unsigned int random = 1, hits = 0, misses = 0;

	(void)state;
	for (unsigned int i = 0; policy_default(POLICY_HIDE, i); i++)
		assert_int_equal(policy_add(policy, POLICY_HIDE, policy_default(POLICY_HIDE, i)),
				 0);
	for (unsigned int round = 0; round < 200000; round++) {
		char name[64];
		bool wanted = false;
		unsigned int i;

		random = random * 1664525U + 1013904223U;
		snprintf(name, sizeof(name), "%s",
			 policy_default(POLICY_HIDE, (random >> 20) % 28));
		if (strchr(name, '/'))
			continue;
		/* Two out of three have another character somewhere, or end there. */
		random = random * 1664525U + 1013904223U;
		i = (random >> 20) % (unsigned int)strlen(name);
		if ((random >> 10) % 3)
			name[i] = letters[(random >> 12) % sizeof(letters)];
		if (!*name)
			continue;
		for (i = 0; policy_default(POLICY_HIDE, i); i++) {
			const char *pattern = policy_default(POLICY_HIDE, i);

			wanted |=
				!strchr(pattern, '/') && fnmatch(pattern, name, FNM_CASEFOLD) == 0;
		}
		if (examine(policy, name).hidden != wanted)
			fail_msg("%s is %shidden", name, wanted ? "not " : "");
		hits += wanted;
		misses += !wanted;
	}
	assert_true(hits > 10000 && misses > 10000);
	policy_destroy(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_cases),  cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_bad_patterns), cmocka_unit_test(test_exceptions),
		cmocka_unit_test(test_defaults),     cmocka_unit_test(test_new_places),
		cmocka_unit_test(test_random_names),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}

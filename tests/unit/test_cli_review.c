/* SPDX-License-Identifier: Apache-2.0 */
/* The review commands as a user meets them. */
#include "tests/unit/review_command.h"
#include "vmm/base/bytes.h"

#include <cjson/cJSON.h>

#include "vmm/cli/outcome.h"
#include "vmm/cli/review_paths.h"

static struct command_result result;

static void test_diff_and_apply_everything(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->host, "changed", "one\ntwo\n", 0644);
	fixture_write(fixture->host, "gone", "text\n", 0644);
	fixture_write(fixture->host, "tool", "#!/bin/sh\n", 0644);
	fixture_change(fixture, "changed", "one\n2\n", 0644);
	fixture_change(fixture, "tool", "#!/bin/sh\n", 0755);
	fixture_delete(fixture, "gone");
	fixture_mkdir(fixture->upper, "new", 0755);
	fixture_write(fixture->upper, "new/file", "hello\n", 0640);
	assert_int_equal(symlinkat("/etc/passwd", fixture->upper, "link"), 0);
	fixture_end_run(fixture);

	command_run(&result, "diff", NULL);
	command_expect(&result, 0, "diff --git a/changed b/changed\n--- a/changed\n+++ b/changed\n",
		       fixture->name);
	command_expect(&result, 0, " one\n-two\n+2\n", NULL);
	command_expect(&result, 0, "deleted file mode 100644\n--- a/gone\n+++ /dev/null\n", NULL);
	command_expect(&result, 0, "new file mode 120000\n--- /dev/null\n+++ b/link\n", NULL);
	command_expect(&result, 0, "old mode 100644\nnew mode 100755\n", NULL);
	command_expect(&result, 0, "new file mode 100640\n--- /dev/null\n+++ b/new/file\n", NULL);

	command_run(&result, "apply", fixture->name, NULL);
	command_expect(&result, 0, "deleted  gone\n", NULL);
	fixture_expect_content(fixture->host, "changed", "one\n2\n");
	fixture_expect_content(fixture->host, "new/file", "hello\n");
	assert_int_equal(fixture_mode(fixture->host, "new/file"), S_IFREG | 0640);
	assert_int_equal(fixture_mode(fixture->host, "tool"), S_IFREG | 0755);
	assert_true(S_ISLNK(fixture_mode(fixture->host, "link")));
	fixture_expect_absent(fixture->host, "gone");

	command_run(&result, "apply", fixture->name, NULL);
	command_expect(&result, 0, NULL, "were applied");
	command_run(&result, "runs", NULL);
	command_expect(&result, 0, "applied", NULL);
	fixture_shell(fixture, "test \"$(ls state/mvagent/runs/*/)\" = \"$(printf "
			       "'applied\\nrun.json\\nshare0')\" && ! test -e upper");
}

static void test_nothing_was_ever_run(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "rm -r state");
	command_run(&result, "diff", NULL);
	command_expect(&result, 0, NULL, "no run has changes");
	command_run(&result, "apply", NULL);
	command_expect(&result, 0, NULL, "no run has changes");
	command_run(&result, "runs", NULL);
	assert_string_equal(result.output, "");
	command_expect(&result, 0, NULL, NULL);
	command_run(&result, "runs", "--json", NULL);
	assert_string_equal(result.output, "[]\n");
	command_run(&result, "discard", "20261129-194633-5fa0", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "there is no run '20261129-194633-5fa0'");
	fixture_shell(fixture, "! test -e state");
}

static void test_conflicts_are_named_and_nothing_applied(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "cd host && echo 1 >both && echo 1 >good && echo 1 >lost");
	fixture_change(fixture, "both", "guest\n", 0644);
	fixture_change(fixture, "good", "guest\n", 0644);
	fixture_change(fixture, "lost", "guest\n", 0644);
	fixture_write(fixture->upper, "new", "guest\n", 0644);
	fixture_end_run(fixture);
	fixture_shell(fixture, "cd host && echo mine >both && rm lost && echo mine >new");
	command_run(&result, "apply", NULL);
	command_expect(&result, EXIT_APPLY_REFUSED, NULL, "'both' was changed on the host");
	command_expect(&result, EXIT_APPLY_REFUSED, NULL, "'lost' was deleted on the host");
	command_expect(&result, EXIT_APPLY_REFUSED, NULL, "'new' was made on the host");
	command_expect(&result, EXIT_APPLY_REFUSED, NULL, "3 of 4 changes");
	assert_string_equal(result.output, "");
	fixture_expect_content(fixture->host, "good", "1\n");
	fixture_expect_content(fixture->host, "both", "mine\n");
	command_run(&result, "diff", NULL);
	command_expect(&result, 0, "-mine\n+guest\n", "'new' was made on the host");
	/* What does not conflict can be applied by itself. */
	command_run(&result, "apply", "host/good", NULL);
	command_expect(&result, 0, "changed  good\n", "3 changes of run");
	fixture_expect_content(fixture->host, "good", "guest\n");
	fixture_expect_content(fixture->host, "both", "mine\n");
}

static void test_protected_names_need_unprotect(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "mkdir -p host/.git/hooks");
	fixture_copy_directory(fixture, ".git");
	fixture_copy_directory(fixture, ".git/hooks");
	fixture_write(fixture->upper, ".git/hooks/pre-commit", "#!/bin/sh\n", 0755);
	fixture_write(fixture->upper, ".git/description", "text\n", 0644);
	fixture_end_run(fixture);
	command_run(&result, "apply", NULL);
	command_expect(&result, EXIT_APPLY_REFUSED, NULL,
		       "'.git/hooks/pre-commit' is protected by the rule");
	fixture_expect_absent(fixture->host, ".git/description");
	command_run(&result, "apply", "--unprotect", ".git/hooks", NULL);
	command_expect(&result, 0, "created  .git/hooks/pre-commit\n", NULL);
	fixture_expect_content(fixture->host, ".git/hooks/pre-commit", "#!/bin/sh\n");
}

static void write_repository(const char *prefix, int tree)
{
	static const char *const directories[] = {"", "/objects", "/refs", "/hooks"};
	char name[128];

	for (unsigned int i = 0; i < ARRAY_SIZE(directories); i++) {
		snprintf(name, sizeof(name), "%s%s", prefix, directories[i]);
		assert_int_equal(mkdirat(tree, name, 0755), 0);
	}
	snprintf(name, sizeof(name), "%s/HEAD", prefix);
	fixture_write(tree, name, "ref: refs/heads/main\n", 0644);
}

/* What git on the host would obey, under whatever name. */
static void test_repositories_need_unprotect(void **state)
{
	static const char *const refused[] = {
		"plain/HEAD",
		"node_modules/p/.git/config",
		"node_modules/p/.git/hooks/pre-commit",
		".bare/hooks/pre-commit",
		".bare/config",
	};
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "mkdir -p host/node_modules");
	write_repository(".bare", fixture->host);
	fixture_copy_directory(fixture, ".bare");
	fixture_copy_directory(fixture, ".bare/hooks");
	fixture_copy_directory(fixture, "node_modules");
	fixture_write(fixture->upper, ".bare/hooks/pre-commit", "#!/bin/sh\n", 0755);
	fixture_write(fixture->upper, ".bare/config", "[core]\n\tbare = true\n", 0644);
	fixture_write(fixture->upper, ".bare/description", "text\n", 0644);
	write_repository("plain", fixture->upper);
	assert_int_equal(mkdirat(fixture->upper, "node_modules/p", 0755), 0);
	write_repository("node_modules/p/.git", fixture->upper);
	fixture_write(fixture->upper, "node_modules/p/.git/config", "[alias]\n\tst = !evil\n",
		      0644);
	fixture_write(fixture->upper, "node_modules/p/.git/hooks/pre-commit", "#!/bin/sh\n", 0755);
	assert_int_equal(mkdirat(fixture->upper, "node_modules/q", 0755), 0);
	write_repository("node_modules/q/.git", fixture->upper);
	fixture_write(fixture->upper, "node_modules/q/.git/config", "[core]\n\tbare = false\n",
		      0644);
	fixture_write(fixture->upper, "node_modules/q/.git/hooks/x.sample", "#!/bin/sh\n", 0755);
	fixture_end_run(fixture);
	command_run(&result, "apply", NULL);
	assert_int_equal(result.status, EXIT_APPLY_REFUSED);
	for (unsigned int i = 0; i < ARRAY_SIZE(refused); i++) {
		char part[128];

		snprintf(part, sizeof(part), "--unprotect '%s' applies it", refused[i]);
		if (!strstr(result.errors, part))
			fail_msg("not refused: %s in %s", refused[i], result.errors);
	}
	assert_null(strstr(result.errors, "node_modules/q"));
	assert_null(strstr(result.errors, ".bare/description"));
	command_run(&result, "apply", "node_modules/q", ".bare/description", NULL);
	assert_int_equal(result.status, 0);
	fixture_expect_content(fixture->host, "node_modules/q/.git/config",
			       "[core]\n\tbare = false\n");
	command_run(&result, "apply", "--unprotect", "node_modules/p/.git", "node_modules/p", NULL);
	assert_int_equal(result.status, 0);
}

/* Symbolic links where a rule goes on, and what is at the end of those that are there. */
static void test_links_need_unprotect(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "mkdir -p host/conf && ln -s conf/envrc host/.autoenv.zsh");
	fixture_copy_directory(fixture, "conf");
	fixture_write(fixture->upper, "conf/envrc", "evil\n", 0644);
	fixture_write(fixture->upper, "conf/other", "good\n", 0644);
	assert_int_equal(symlinkat("conf", fixture->upper, "x.git"), 0);
	assert_int_equal(symlinkat("conf", fixture->upper, "link"), 0);
	fixture_end_run(fixture);
	command_run(&result, "apply", NULL);
	assert_int_equal(result.status, EXIT_APPLY_REFUSED);
	assert_non_null(strstr(result.errors, "'conf/envrc' is protected by the rule "
					      "'.autoenv.zsh'"));
	assert_non_null(strstr(result.errors, "'x.git' is protected by the rule"));
	assert_null(strstr(result.errors, "'link'"));
	command_run(&result, "apply", "link", "conf/other", NULL);
	assert_int_equal(result.status, 0);
	command_run(&result, "apply", "--unprotect", "conf/envrc", "--unprotect", "x.git", NULL);
	assert_int_equal(result.status, 0);
	fixture_expect_content(fixture->host, "conf/envrc", "evil\n");
}

/* Git on the host would write where they lead. */
static void test_links_in_repositories(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "mkdir -p host/.git/logs upper/x.git/src upper/x.git/refs");
	fixture_copy_directory(fixture, ".git");
	fixture_copy_directory(fixture, ".git/logs");
	assert_int_equal(symlinkat("../../victim", fixture->upper, ".git/index"), 0);
	assert_int_equal(symlinkat("../../victim", fixture->upper, ".git/logs/HEAD"), 0);
	assert_int_equal(symlinkat("../../victim", fixture->upper, "x.git/refs/a"), 0);
	assert_int_equal(symlinkat("../../victim", fixture->upper, "x.git/src/fine"), 0);
	fixture_end_run(fixture);
	command_run(&result, "apply", NULL);
	assert_int_equal(result.status, EXIT_APPLY_REFUSED);
	assert_non_null(strstr(result.errors, "'.git/index' is something that git"));
	assert_non_null(strstr(result.errors, "'.git/logs/HEAD' is something that git"));
	assert_non_null(strstr(result.errors, "'x.git/refs/a' is something that git"));
	assert_null(strstr(result.errors, "x.git/src"));
}

static void test_hidden_names_are_never_applied(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->upper, ".env", "KEY=guest\n", 0644);
	fixture_end_run(fixture);
	command_run(&result, "apply", "--unprotect", ".env", NULL);
	command_expect(&result, EXIT_APPLY_REFUSED, NULL, "'.env' is hidden from guests");
	fixture_expect_absent(fixture->host, ".env");
	command_run(&result, "diff", NULL);
	assert_null(strstr(result.output, "KEY=guest"));
}

static void test_active_run_is_not_applied(void **state)
{
	struct review_fixture *fixture = *state;
	int FD_CLEANUP lock = -1;

	fixture_write(fixture->upper, "new", "guest\n", 0644);
	lock = fcntl(fixture->run, F_DUPFD_CLOEXEC, 0);
	fixture_end_run(fixture); /* but for the lock */
	command_run(&result, "apply", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "is still going on");
	command_run(&result, "discard", fixture->name, NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "is still going on");
	command_run(&result, "diff", NULL);
	command_expect(&result, 0, "+guest\n", "is still going on");
	command_run(&result, "runs", NULL);
	command_expect(&result, 0, "running, 1 change ", NULL);
	fd_close(&lock);
	command_run(&result, "apply", NULL);
	command_expect(&result, 0, "created  new\n", NULL);
}

static void test_discard(void **state)
{
	struct review_fixture *fixture = *state;
	char first[REVIEW_RUN_NAME_BYTES];

	fixture_write(fixture->upper, "new", "guest\n", 0644);
	fixture_end_run(fixture);
	strcpy(first, fixture->name);
	fixture_begin_run(fixture);
	fixture_write(fixture->upper, "new2", "guest\n", 0644);
	fixture_end_run(fixture);
	command_run(&result, "discard", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "more than one run has changes");
	command_run(&result, "discard", first, NULL);
	command_expect(&result, 0, "created  new\n", "1 change of run");
	command_expect(&result, 0, NULL, "listed above, is discarded");
	command_run(&result, "diff", first, NULL);
	command_expect(&result, 0, NULL, "were discarded");
	assert_string_equal(result.output, "");
	command_run(&result, "discard", NULL);
	command_expect(&result, 0, "created  new2\n", fixture->name);
	command_run(&result, "apply", NULL);
	command_expect(&result, 0, NULL, "no run has changes");
	fixture_expect_absent(fixture->host, "new");
	command_run(&result, "discard", first, NULL);
	command_expect(&result, 0, NULL, "were discarded");
	assert_string_equal(result.output, "");
	fixture_shell(fixture, "test $(ls -d state/mvagent/runs/*/discarded | wc -l) = 2 && "
			       "! ls state/mvagent/runs/*/share0/upper 2>/dev/null");
}

static void test_discard_of_nothing(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_end_run(fixture);
	command_run(&result, "discard", fixture->name, NULL);
	command_expect(&result, 0, NULL, "had changed nothing; it is discarded");
	assert_string_equal(result.output, "");
}

static void test_newest_run_of_the_directory(void **state)
{
	struct review_fixture *fixture = *state;
	char here[REVIEW_RUN_NAME_BYTES];

	fixture_write(fixture->upper, "new", "here\n", 0644);
	fixture_end_run(fixture);
	strcpy(here, fixture->name);
	/* A later one on another directory; the name's time has seconds. */
	fixture_shell(fixture, "mv host first && mkdir host && sleep 1.1");
	fd_close(&fixture->host);
	fixture->host = open("host", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fixture_begin_run(fixture);
	fixture_write(fixture->upper, "new", "there\n", 0644);
	fixture_end_run(fixture);
	fixture_shell(fixture, "mv host second && mv first host && "
			       "sed -i 's|/host\"|/second\"|' state/mvagent/runs/*/run.json");
	fixture_shell(fixture, "sed -i 's|/second\"|/host\"|' upper/../../run.json || true");
	command_run(&result, "diff", here, NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "is not the directory that was shared");
	command_run(&result, "diff", here, "--moved", NULL);
	command_expect(&result, 0, "+here\n", NULL);
	assert_int_equal(chdir("second"), 0);
	command_run(&result, "diff", "--moved", NULL);
	command_expect(&result, 0, "+here\n", here);
}

static void test_paths_of_the_user(void **state)
{
	struct review_fixture *fixture = *state;
	char absolute[PATH_MAX + 16];

	fixture_mkdir(fixture->host, "sub", 0755);
	fixture_copy_directory(fixture, "sub");
	fixture_write(fixture->upper, "sub/a", "a\n", 0644);
	fixture_write(fixture->upper, "b", "b\n", 0644);
	fixture_end_run(fixture);
	/* From elsewhere they begin at the share. */
	command_run(&result, "diff", "--stat", "sub", NULL);
	command_expect(&result, 0, " sub/a |     1 +\n 1 file changed", NULL);
	assert_int_equal(chdir("host/sub"), 0);
	command_run(&result, "diff", "a", "--stat", NULL);
	command_expect(&result, 0, " sub/a |     1 +\n 1 file changed", NULL);
	command_run(&result, "diff", fixture->name, "--stat", "..", NULL);
	command_expect(&result, 0, " 2 files changed", NULL);
	command_run(&result, "diff", "--stat", "--", "../b", NULL);
	command_expect(&result, 0, " b |     1 +\n 1 file changed", NULL);
	snprintf(absolute, sizeof(absolute), "%s/host/b", fixture->scratch);
	command_run(&result, "diff", "--stat", absolute, NULL);
	command_expect(&result, 0, " b |     1 +\n 1 file changed", NULL);
	command_run(&result, "diff", "../../x", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "'../../x' is in no directory");
	command_run(&result, "apply", ".", NULL);
	command_expect(&result, 0, "created  sub/a\n", "1 change of run");
	fixture_expect_absent(fixture->host, "b");
	command_run(&result, "apply", ".", NULL);
	command_expect(&result, EXIT_APPLY_REFUSED, NULL, "is at or below '.'");
}

static void test_path_arithmetic(void **state)
{
	static const struct {
		const char *path, *share, *current, *wanted;
	} cases[] = {
		{"a", "/s", "/s", "a"},
		{"./a//b/", "/s", "/s/x", "x/a/b"},
		{"..", "/s", "/s/x", ""},
		{"../..", "/s", "/s/x", NULL},
		{"../../s/y", "/s", "/s/x", "y"},
		{"/s/a/../b", "/s", "/elsewhere", "b"},
		{"/sa", "/s", "/s", NULL},
		{"a", "/s", "/sa", "a"},
		{"../a", "/s", "/elsewhere", NULL},
		{"s/a", "/s", "/", "a"},
		{"b", "/s", "/", "b"},
		{"/a", "/", "/x", "a"},
		{"a", "/", "/x", "x/a"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *found = review_path_in_share(cases[i].path, cases[i].share, cases[i].current);

		if (!found != !cases[i].wanted || (found && strcmp(found, cases[i].wanted) != 0))
			fail_msg("%s: %s", cases[i].path, found ? found : "none");
		free(found);
	}
}

static void apply_halfway(const struct review_fixture *fixture)
{
	(void)fixture;
	command_run(&result, "apply", NULL);
	command_expect(&result, geteuid() == 0 ? 0 : EXIT_APPLY_PARTIAL, "created  a\n", NULL);
	if (geteuid() != 0) {
		command_expect(&result, EXIT_APPLY_PARTIAL, NULL,
			       "cannot apply the change of 'closed/b': Permission denied");
		command_expect(&result, EXIT_APPLY_PARTIAL, NULL, "1 of 3 changes were applied");
	}
}

static void test_failure_halfway(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->upper, "a", "a\n", 0644);
	fixture_mkdir(fixture->host, "closed", 0555);
	fixture_note_base(fixture, "closed");
	fixture_mkdir(fixture->upper, "closed", 0755);
	fixture_write(fixture->upper, "closed/b", "b\n", 0644);
	assert_int_equal(fchmodat(fixture->upper, "closed", 0555, 0), 0);
	fixture_write(fixture->upper, "d", "d\n", 0644);
	fixture_end_run(fixture);
	fixture_as_user(fixture, apply_halfway);
	fixture_expect_content(fixture->host, "a", "a\n");
	/* The rest is still there, and what was applied is not. */
	assert_int_equal(fchmodat(fixture->host, "closed", 0755, 0), 0);
	assert_int_equal(fchmodat(fixture->upper, "closed", 0755, 0), 0);
	command_run(&result, "apply", NULL);
	command_expect(&result, 0, "created  d\n", NULL);
	assert_null(strstr(result.output, " a\n"));
	fixture_expect_content(fixture->host, "d", "d\n");
}

static void test_two_shares(void **state)
{
	struct review_fixture *fixture = *state;
	int FD_CLEANUP directory = -1, FD_CLEANUP upper = -1, FD_CLEANUP second = -1;
	char paths[2][PATH_MAX + 16];
	char *words[] = {(char *)"true"};
	struct review_record record = {
		.command = {1, words}, .started = 1, .ended = 2, .share_count = 2};

	fixture_shell(fixture, "mkdir second");
	second = open("second", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(review_store_create_share(fixture->run, 1, 0755, &directory, &upper), 0);
	fixture_write(fixture->upper, "f", "first\n", 0644);
	fixture_write(upper, "f", "second\n", 0644);
	for (unsigned int i = 0; i < 2; i++) {
		struct stat status;

		assert_int_equal(fstat(i ? second : fixture->host, &status), 0);
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", fixture->scratch,
			 i ? "second" : "host");
		record.shares[i] =
			(struct review_record_share){paths[i], status.st_dev, status.st_ino,
						     (char *)(i ? "share1/upper" : "share0/upper"),
						     (char *)(i ? "share1/base" : "share0/base")};
	}
	assert_int_equal(review_record_write(&record, fixture->run), 0);
	fd_close(&fixture->run);
	command_run(&result, "diff", NULL);
	command_expect(&result, 0, "/host\ndiff --git a/f b/f\n", NULL);
	command_expect(&result, 0, "/second\ndiff --git a/f b/f\n", NULL);
	command_run(&result, "runs", NULL);
	command_expect(&result, 0, "open, 2 changes", NULL);
	command_run(&result, "apply", "second", NULL);
	command_expect(&result, 0, "created  f\n", "1 change of run");
	fixture_expect_content(second, "f", "second\n");
	fixture_expect_absent(fixture->host, "f");
	command_run(&result, "apply", NULL);
	command_expect(&result, 0, "created  f\n", NULL);
	fixture_expect_content(fixture->host, "f", "first\n");
	command_run(&result, "runs", NULL);
	command_expect(&result, 0, "applied", NULL);
}

static void test_list(void **state)
{
	struct review_fixture *fixture = *state;
	const cJSON *run;
	cJSON *list;

	fixture_write(fixture->upper, "new", "guest\n", 0644);
	fixture_end_run(fixture);
	command_run(&result, "runs", NULL);
	command_expect(&result, 0, "2026-11-30T19:46:33Z  open, 1 change", NULL);
	command_expect(&result, 0, "/host  -- make test all\n", NULL);
	command_run(&result, "runs", "--json", NULL);
	list = cJSON_Parse(result.output);
	run = cJSON_GetArrayItem(list, 0);
	assert_int_equal(cJSON_GetArraySize(list), 1);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(run, "run")), fixture->name);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(run, "state")), "open");
	assert_int_equal(cJSON_GetObjectItem(run, "changes")->valueint, 1);
	assert_int_equal(cJSON_GetObjectItem(run, "exit")->valueint, 0);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(run, "command")), 2);
	cJSON_Delete(list);
	/* One that is only being made is none yet. */
	fixture_begin_run(fixture);
	command_run(&result, "runs", NULL);
	assert_null(strstr(result.output, fixture->name));
	assert_string_equal(result.errors, "");
}

static void test_wrong_command_lines(void **state)
{
	(void)state;
	command_run(&result, "diff", "--stats", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL,
		       "unknown option '--stats'; see 'mvagent diff --help'\n");
	command_run(&result, "runs", "x", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "unexpected argument 'x'");
	command_run(&result, "discard", "x", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "there is no run 'x'");
	command_run(&result, "discard", "../x", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "there is no run '../x'");
	command_run(&result, "discard", "20261129-194633-5fa0", "y", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "unexpected argument 'y'");
	command_run(&result, "apply", "--unprotect", NULL);
	command_expect(&result, EXIT_MVAGENT, NULL, "--unprotect needs a value");
	command_run(&result, "apply", "--help", NULL);
	command_expect(&result, 0, "usage: mvagent apply", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(test_diff_and_apply_everything),
		TEST(test_nothing_was_ever_run),
		TEST(test_conflicts_are_named_and_nothing_applied),
		TEST(test_protected_names_need_unprotect),
		TEST(test_repositories_need_unprotect),
		TEST(test_links_need_unprotect),
		TEST(test_links_in_repositories),
		TEST(test_hidden_names_are_never_applied),
		TEST(test_active_run_is_not_applied),
		TEST(test_discard),
		TEST(test_discard_of_nothing),
		TEST(test_newest_run_of_the_directory),
		TEST(test_paths_of_the_user),
		cmocka_unit_test(test_path_arithmetic),
		TEST(test_failure_halfway),
		TEST(test_two_shares),
		TEST(test_list),
		TEST(test_wrong_command_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

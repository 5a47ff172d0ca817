/* SPDX-License-Identifier: Apache-2.0 */
/* The diff as git and a terminal take it. */
#include "tests/unit/review_share.h"

#include "vmm/review/diff.h"

/* Prints the diff (or --stat) of all changes. Freed by the caller. */
static char *print(const struct review_fixture *fixture, bool stat, bool terminal)
{
	struct review_output output = {.terminal = terminal};
	struct review_changes changes;
	struct review_share share;
	char *text = NULL;
	size_t size;

	output.file = open_memstream(&text, &size);
	assert_non_null(output.file);
	share_open(&share, fixture);
	share_find(&share, NULL, &changes);
	assert_int_equal(stat ? review_diff_print_stat(&output, &share, &changes)
			      : review_diff_print(&output, &share, &changes),
			 0);
	fclose(output.file);
	review_changes_destroy(&changes);
	share_close(&share);
	return text;
}

static void expect_diff(const struct review_fixture *fixture, const char *wanted)
{
	char *text = print(fixture, false, false);

	assert_string_equal(text, wanted);
	free(text);
}

/*
 * `git apply` makes of a copy of the host's directory what the guest had. @command: what it had,
 * made in the copy "wanted" by the shell.
 */
static void expect_git_applies(const struct review_fixture *fixture, const char *command)
{
	char *text = print(fixture, false, false);

	fixture_shell(fixture, "rm -rf wanted patched && cp -a host wanted && cp -a host patched");
	fixture_shell(fixture, command);
	fixture_write(AT_FDCWD, "patch", text, 0644);
	fixture_shell(fixture,
		      "cd patched && GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 HOME=/ "
		      "XDG_CONFIG_HOME=/ git -c core.fileMode=true apply --verbose ../patch "
		      ">../said 2>&1 || { cat ../said ../patch; false; }");
	fixture_shell(fixture, "! grep -i warning said && diff -r --no-dereference wanted patched");
	/* diff(1) does not look at modes. */
	fixture_shell(fixture,
		      "for d in wanted patched; do (cd $d; find . ! -type d -printf '%m %y "
		      "%p %l\\n' | sort >../$d.modes); done; cmp wanted.modes "
		      "patched.modes");
	free(text);
}

static void test_git_takes_contents(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "cd host && seq 100 >numbers && printf 'a\\nb' >unended && "
			       "printf x >gone && mkdir d && echo d >d/file && : >emptied && "
			       "echo text >filled");
	fixture_shell(fixture, "seq 100 | sed 's/^5$/five/;s/^77$/&\\n77a/' >upper-numbers");
	fixture_note_base(fixture, "numbers");
	fixture_shell(fixture, "mv upper-numbers upper/numbers");
	fixture_change(fixture, "unended", "a\nc\n", 0644);
	fixture_delete(fixture, "gone");
	fixture_note_base(fixture, "d/file");
	fixture_delete(fixture, "d");
	fixture_change(fixture, "emptied", "now", 0644);
	fixture_change(fixture, "filled", "", 0644);
	fixture_mkdir(fixture->upper, "new", 0755);
	fixture_write(fixture->upper, "new/a", "1\n2\n", 0644);
	fixture_write(fixture->upper, "new/empty", "", 0644);
	fixture_write(fixture->upper, "new/tool", "#!/bin/sh", 0755);
	expect_git_applies(fixture,
			   "cd wanted && cp ../upper/numbers . && "
			   "printf 'a\\nc\\n' >unended && rm -r gone d && printf now >emptied && "
			   ": >filled && mkdir new && printf '1\\n2\\n' >new/a && : >new/empty && "
			   "printf '#!/bin/sh' >new/tool && chmod 755 new/tool");
}

static void test_git_takes_modes_links_and_types(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_shell(fixture, "cd host && echo a >tool && echo b >both && ln -s old link && "
			       "echo file >becomes-link && ln -s old becomes-file && "
			       "mkdir becomes && echo x >becomes/x && ln -s gone gone");
	fixture_change(fixture, "tool", "a\n", 0755);
	fixture_change(fixture, "both", "c\n", 0755);
	fixture_note_base(fixture, "link");
	assert_int_equal(symlinkat("new", fixture->upper, "link"), 0);
	fixture_note_base(fixture, "becomes-link");
	assert_int_equal(symlinkat("/etc/passwd", fixture->upper, "becomes-link"), 0);
	fixture_change(fixture, "becomes-file", "file\n", 0644);
	fixture_note_base(fixture, "becomes/x");
	fixture_change(fixture, "becomes", "file\n", 0644);
	fixture_delete(fixture, "gone");
	assert_int_equal(symlinkat("a b", fixture->upper, "created"), 0);
	expect_git_applies(
		fixture, "cd wanted && chmod 755 tool both && echo c >both && ln -sfn new link && "
			 "ln -sf /etc/passwd becomes-link && rm becomes-file && echo file "
			 ">becomes-file && rm -r becomes && echo file >becomes && rm gone && "
			 "ln -s 'a b' created");
}

static void test_git_takes_strange_names(void **state)
{
	static const char *const names[] = {"with space",  "tab\there",   "new\nline", "quo\"te",
					    "back\\slash", "\xc3\xa4",    "\xff",      "-dash",
					    "$(touch x)",  "\033[31mred", " ",         "a => b"};
	struct review_fixture *fixture = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		fixture_write(fixture->host, names[i], "old\n", 0644);
		fixture_change(fixture, names[i], "new\n", 0644);
	}
	fixture_write(fixture->upper, "created here", "new\n", 0644);
	fixture_write(fixture->upper, "created\there", "new\n", 0755);
	expect_git_applies(fixture, "cd wanted && for f in *; do echo new >\"$f\"; done && "
				    "printf 'new\\n' >'created here' && t=$(printf "
				    "'created\\there') && cp 'created here' \"$t\" && chmod 755 "
				    "\"$t\"");
}

static void test_names_are_quoted_as_git_does(void **state)
{
	struct review_fixture *fixture = *state;

	fixture_write(fixture->upper, "a\n\"\\\xc3\xa4\001", "x\n", 0644);
	fixture_write(fixture->upper, "b c", "y\n", 0644);
	expect_diff(
		fixture,
		"diff --git \"a/a\\n\\\"\\\\\\303\\244\\001\" \"b/a\\n\\\"\\\\\\303\\244\\001\"\n"
		"new file mode 100644\n"
		"--- /dev/null\n"
		"+++ \"b/a\\n\\\"\\\\\\303\\244\\001\"\n"
		"@@ -0,0 +1 @@\n"
		"+x\n"
		"diff --git a/b c b/b c\n"
		"new file mode 100644\n"
		"--- /dev/null\n"
		"+++ b/b c\t\n"
		"@@ -0,0 +1 @@\n"
		"+y\n");
}

static void test_binary_and_remarks(void **state)
{
	struct review_fixture *fixture = *state;
	int FD_CLEANUP file = -1;

	fixture_shell(fixture, "cd host && mkdir moded gone && mkfifo pipe");
	fixture_write(fixture->upper, "binary", "", 0644);
	file = openat(fixture->upper, "binary", O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(file, "a\0b", 3), 3);
	fixture_mkdir(fixture->upper, "empty", 0755);
	fixture_mkdir(fixture->upper, "full", 0755);
	fixture_mkdir(fixture->upper, "full/empty", 0700);
	fixture_delete(fixture, "gone");
	fixture_note_base(fixture, "moded");
	fixture_mkdir(fixture->upper, "moded", 0700);
	assert_int_equal(mkfifoat(fixture->upper, "newpipe", 0644), 0);
	fixture_delete(fixture, "pipe");
	fixture_write(fixture->upper, "secret", "x", 0644);
	expect_diff(fixture, "diff --git a/binary b/binary\n"
			     "new file mode 100644\n"
			     "Binary files /dev/null and b/binary differ\n"
			     "# new directory, mode 755: empty\n"
			     "# new directory, mode 700: full/empty\n"
			     "# deleted directory: gone\n"
			     "# directory, mode 755 to 700: moded\n"
			     "# new fifo, mode 644: newpipe\n"
			     "# deleted fifo: pipe\n"
			     "# is hidden from guests and is never applied: secret\n");
}

static void test_terminal_sees_no_escapes(void **state)
{
	static const char content[] =
		"\033]0;title\a\r\nC1: \xc2\x9b"
		"31m raw: \x9b bidi: \xe2\x80\xae ok: \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\t\x7f\n";
	struct review_fixture *fixture = *state;
	char *text;

	fixture_write(fixture->upper, "f\033", content, 0644);
	text = print(fixture, false, true);
	assert_non_null(strstr(text, "+\\x1b]0;title\\x07\\x0d\n"));
	assert_non_null(strstr(text, "+C1: \\x9b31m raw: \\x9b bidi: \\u202e ok: "
				     "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\t\\x7f\n"));
	assert_null(strchr(text, '\033'));
	free(text);
	/* A file or a pipe gets what is there. */
	text = print(fixture, false, false);
	assert_non_null(strstr(text, "\033]0;title\a\r\n"));
	free(text);
}

/* Characters that are cut in two by the pieces in which text comes. */
static void test_characters_across_pieces(void **state)
{
	static const char input[] = "a\xe2\x82\xac\xf0\x9f\x98\x80\xe2\x80\xae\xe2\x82z\xf0\x9f";
	static const char wanted[] = "a\xe2\x82\xac\xf0\x9f\x98\x80\\u202e\\xe2\\x82z\\xf0\\x9f";

	(void)state;
	for (size_t piece = 1; piece < sizeof(input); piece++) {
		struct review_output output = {.terminal = true};
		char *text = NULL;
		size_t size;

		output.file = open_memstream(&text, &size);
		for (size_t at = 0; at < sizeof(input) - 1; at += piece) {
			size_t left = sizeof(input) - 1 - at;

			output_write(&output, input + at, piece < left ? piece : left);
		}
		output_finish(&output);
		fclose(output.file);
		assert_string_equal(text, wanted);
		free(text);
	}
}

static void test_stat(void **state)
{
	struct review_fixture *fixture = *state;
	int FD_CLEANUP file = -1;
	char *text;

	fixture_shell(fixture, "cd host && seq 5 >five && echo x >gone");
	fixture_change(fixture, "five", "1\n2\n3\n4\n6\n7\n", 0644);
	fixture_delete(fixture, "gone");
	fixture_write(fixture->upper, "bin", "", 0644);
	file = openat(fixture->upper, "bin", O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(file, "a\0b", 3), 3);
	text = print(fixture, true, false);
	assert_string_equal(text, " bin  | Bin 0 -> 3 bytes\n"
				  " five |     3 ++-\n"
				  " gone |     1 -\n"
				  " 3 files changed, 2 insertions(+), 2 deletions(-)\n");
	free(text);
}

static void test_stat_of_much(void **state)
{
	struct review_fixture *fixture = *state;
	char *text, *bar;
	size_t length;

	fixture_shell(fixture, "seq 100000 >upper/$(printf '%0100d' 7)");
	fixture_write(fixture->upper, "one", "1\n", 0644);
	text = print(fixture, true, false);
	length = strcspn(text, "\n");
	assert_true(length <= 80);
	bar = strchr(text, '|');
	assert_non_null(bar);
	assert_int_equal(strncmp(bar, "| 100000 ++", 11), 0);
	assert_non_null(strstr(text, " one "));
	assert_non_null(strstr(text, " 2 files changed, 100001 insertions(+)\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(test_git_takes_contents),
		TEST(test_git_takes_modes_links_and_types),
		TEST(test_git_takes_strange_names),
		TEST(test_names_are_quoted_as_git_does),
		TEST(test_binary_and_remarks),
		TEST(test_terminal_sees_no_escapes),
		cmocka_unit_test(test_characters_across_pieces),
		TEST(test_stat),
		TEST(test_stat_of_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

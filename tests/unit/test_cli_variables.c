/* SPDX-License-Identifier: Apache-2.0 */
/* --env-file: which lines are taken as what, what counts more, and what is said of those that are
 * wrong. */
#include "vmm/cli/run_variables.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli_capture.h"
#include "vmm/base/bytes.h"

#define SECRET "ghp_TheValueOfThisTest0123456789abcdef"

struct fixture {
	struct run_variables variables;
	char path[64];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	*state = f;
	if (!f)
		return -1;
	snprintf(f->path, sizeof(f->path), "/tmp/mvagent-variables-XXXXXX");
	fd = mkstemp(f->path);
	if (fd < 0)
		return -1;
	close(fd);
	return setenv("VARIABLES_GIVEN", "of mine", 1);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	run_variables_free(&f->variables);
	unlink(f->path);
	free(f);
	return 0;
}

static int add_text(struct fixture *f, const char *text, size_t length)
{
	FILE *file = fopen(f->path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
	return run_variables_add_file(&f->variables, f->path);
}

static int add(struct fixture *f, const char *text)
{
	return add_text(f, text, strlen(text));
}

static void test_lines(void **state)
{
	static const char *const wanted[] = {
		"A=1",  "EMPTY=",   "SPACES= a b  ", "VARIABLES_GIVEN", "QUOTES=\"x\" # y",
		"CR=2", "LAST=$A=b"};
	struct fixture *f = *state;

	assert_int_equal(
		add(f, "A=1\n\n# a comment = of mine\n  \t#another\n   \nEMPTY=\nSPACES= a b  \n"
		       "  VARIABLES_GIVEN\nQUOTES=\"x\" # y\nCR=2\r\nLAST=$A=b"),
		0);
	assert_int_equal(f->variables.count, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		assert_string_equal(f->variables.list[i].text, wanted[i]);
		assert_ptr_equal(f->variables.list[i].file, f->path);
	}
	assert_string_equal(run_variable_value(&f->variables.list[0]), "1");
	assert_string_equal(run_variable_value(&f->variables.list[3]), "of mine");
	assert_int_equal(add(f, ""), 0);
	assert_int_equal(f->variables.count, ARRAY_SIZE(wanted));
}

/* --env counts more, wherever it stands: the last of a name is what the command gets. */
static void test_order(void **state)
{
	static const char *const wanted[] = {"A=1", "B=1", "A=2", "A=given", "C=given"};
	struct fixture *f = *state;

	assert_int_equal(run_variables_add(&f->variables, "A=given"), 0);
	assert_int_equal(add(f, "A=1\nB=1\n"), 0);
	assert_int_equal(run_variables_add(&f->variables, "C=given"), 0);
	assert_int_equal(add(f, "A=2\n"), 0);
	assert_int_equal(f->variables.count, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		assert_string_equal(f->variables.list[i].text, wanted[i]);
	assert_null(f->variables.list[3].file);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *line, *words;
	} cases[] = {
		{"A=1\n=" SECRET "\n", "line 2:", "a line is NAME=VALUE or NAME"},
		{"\n\nA B=" SECRET, "line 3:", "a line is NAME=VALUE or NAME"},
		{"export A=" SECRET "\n", "line 1:", "leave out 'export'"},
		{"1A=" SECRET "\n", "line 1:", "does not begin with a digit"},
		{"A = " SECRET "\n", "line 1:", "no blanks come before the ="},
		{"A-B=" SECRET "\n", "line 1:", "letters, digits and _"},
		{"Authorization: " SECRET "\n", "line 1:", "a line is NAME=VALUE or NAME"},
		{"#\nVARIABLES_ABSENT\n", "line 2:", "VARIABLES_ABSENT is not set"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct capture capture;

		capture_begin(&capture);
		assert_int_equal(add(f, cases[i].text), -EINVAL);
		capture_end(&capture);
		capture_expect_sentence(&capture, f->path);
		capture_expect_sentence(&capture, cases[i].line);
		capture_expect_sentence(&capture, cases[i].words);
		assert_null(strstr(capture.text, SECRET));
	}
}

static void expect_refused(struct fixture *f, const char *path, int error, const char *words)
{
	struct capture capture;

	capture_begin(&capture);
	assert_int_equal(run_variables_add_file(&f->variables, path), error);
	capture_end(&capture);
	capture_expect_sentence(&capture, words);
}

static void test_files_that_are_none(void **state)
{
	static char large[RUN_VARIABLES_FILE_BYTES + 1];
	struct fixture *f = *state;

	expect_refused(f, "/nowhere/at/all", -ENOENT, "--env-file /nowhere/at/all: cannot read it");
	expect_refused(f, "/", -EISDIR, "--env-file /: cannot read it");
	expect_refused(f, "/dev/zero", -EFBIG, "it has more than 256 KiB");
	assert_int_equal(add_text(f, "A=1\nB=x\0y\n", 10), -EINVAL);
	assert_int_equal(f->variables.count, 1);
	memset(large, '\n', sizeof(large));
	assert_int_equal(add_text(f, large, sizeof(large)), -EFBIG);
	assert_int_equal(add_text(f, large, sizeof(large) - 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_files_that_are_none, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `mvagent run`: what each option does, and the sentence for each mistake. */
#include "tests/unit/cli_capture.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "vmm/base/bytes.h"
#include "vmm/cli/run_options.h"

#define MAX_ARGUMENTS 64

/* A command line of its own: the parser changes the strings, and keeps pointers to them. */
struct command_line {
	int count;
	char *arguments[MAX_ARGUMENTS + 1];
	struct run_options options;
	struct capture capture;
};

static void command_line_add(struct command_line *line, const char *argument)
{
	assert_true(line->count < MAX_ARGUMENTS);
	line->arguments[line->count] = strdup(argument);
	assert_non_null(line->arguments[line->count]);
	line->count++;
}

/* Parses "run" followed by @arguments, which ends with NULL. */
static enum run_options_result command_line_parse(struct command_line *line,
						  const char *const *arguments)
{
	enum run_options_result result;

	*line = (struct command_line){0};
	command_line_add(line, "run");
	while (*arguments)
		command_line_add(line, *arguments++);
	capture_begin(&line->capture);
	result = run_options_parse(&line->options, line->count, line->arguments);
	capture_end(&line->capture);
	return result;
}

static void command_line_free(struct command_line *line)
{
	run_options_free(&line->options);
	for (int i = 0; i < line->count; i++)
		free(line->arguments[i]);
}

#define PARSE(line, ...) command_line_parse(line, (const char *const[]){__VA_ARGS__, NULL})

static void test_defaults(void **state)
{
	struct command_line line;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	const struct run_options *options = &line.options;

	(void)state;
	assert_int_equal(PARSE(&line, "true"), RUN_OPTIONS_RUN);
	assert_string_equal(line.capture.text, "");
	assert_int_equal(options->share_count, 0);
	assert_int_equal(options->variables.count, 0);
	assert_null(options->root.image);
	assert_int_equal(options->root.add_count + options->root.hide_count, 0);
	assert_int_equal(options->root.scratch_mib, 0);
	assert_null(options->kernel);
	assert_null(options->json);
	assert_null(options->working_directory);
	assert_int_equal(options->cpus, online > 1 ? 2 : 1);
	assert_in_range(options->memory_mib, LIMIT_MEMORY_MIN_MIB, 2048);
	assert_int_equal(options->timeout_seconds, 0);
	assert_false(options->as_root || options->debug_console || options->terminal_passthrough ||
		     options->quiet || options->verbose || options->trap_registers ||
		     options->no_io_uring);
	assert_string_equal(options->command[0], "true");
	assert_null(options->command[1]);
	command_line_free(&line);
}

static void test_every_option(void **state)
{
	struct command_line line;
	const struct run_options *options = &line.options;

	(void)state;
	setenv("CLI_OPTIONS_GIVEN", "x", 1);
	assert_int_equal(PARSE(&line, "--share", "/a", "--at", "/b", "--share=/c:ro", "--share",
			       "/d:review", "--root", "r.erofs", "--workdir", "/w", "--user",
			       "root", "--env", "CLI_OPTIONS_GIVEN", "--env=A=b=c", "--cpus", "16",
			       "--memory", "64", "--timeout", "2m", "--json", "-", "--kernel", "k",
			       "--debug-console", "--terminal-passthrough", "--quiet", "-v",
			       "--trap-registers", "--no-io-uring", "--hide", "*.key",
			       "--show=a/.env", "--protect", "ci", "--unprotect", ".vscode",
			       "--cache", "exclusive", "--share-anyway", "--scratch", "3G", "--",
			       "ls", "-l"),
			 RUN_OPTIONS_RUN);
	assert_int_equal(options->rule_count, 4);
	assert_string_equal(options->rules[0].option, "--hide");
	assert_string_equal(options->rules[0].pattern, "*.key");
	assert_string_equal(options->rules[3].option, "--unprotect");
	assert_string_equal(options->rules[3].pattern, ".vscode");
	assert_int_equal(options->cache, FS_CACHE_EXCLUSIVE);
	assert_true(options->share_anyway);
	assert_int_equal(options->share_count, 3);
	assert_string_equal(options->shares[0].directory, "/a");
	assert_string_equal(options->shares[0].at, "/b");
	assert_false(options->shares[0].read_only);
	assert_string_equal(options->shares[1].directory, "/c");
	assert_null(options->shares[1].at);
	assert_true(options->shares[1].read_only && !options->shares[1].review);
	assert_string_equal(options->shares[2].directory, "/d");
	assert_true(options->shares[2].review && !options->shares[2].read_only);
	assert_string_equal(options->root.image, "r.erofs");
	assert_int_equal(options->root.scratch_mib, 3072);
	assert_string_equal(options->working_directory, "/w");
	assert_true(options->as_root);
	assert_int_equal(options->variables.count, 2);
	assert_string_equal(options->variables.list[0].text, "CLI_OPTIONS_GIVEN");
	assert_string_equal(options->variables.list[1].text, "A=b=c");
	assert_int_equal(options->cpus, 16);
	assert_int_equal(options->memory_mib, 64);
	assert_int_equal(options->timeout_seconds, 120);
	assert_string_equal(options->json, "-");
	assert_string_equal(options->kernel, "k");
	assert_true(options->debug_console && options->terminal_passthrough && options->quiet &&
		    options->verbose && options->trap_registers && options->no_io_uring);
	assert_string_equal(options->command[0], "ls");
	assert_string_equal(options->command[1], "-l");
	assert_null(options->command[2]);
	command_line_free(&line);
}

/* The command's own options are the command's, with and without "--". */
static void test_command_keeps_its_options(void **state)
{
	struct command_line line;

	(void)state;
	assert_int_equal(PARSE(&line, "--quiet", "sh", "-v", "--share", "x"), RUN_OPTIONS_RUN);
	assert_false(line.options.verbose);
	assert_int_equal(line.options.share_count, 0);
	assert_string_equal(line.options.command[1], "-v");
	command_line_free(&line);
	assert_int_equal(PARSE(&line, "--", "--odd-name", "--"), RUN_OPTIONS_RUN);
	assert_string_equal(line.options.command[0], "--odd-name");
	assert_string_equal(line.options.command[1], "--");
	command_line_free(&line);
}

static void test_sizes_and_times(void **state)
{
	static const struct {
		const char *option, *text;
		uint64_t memory_mib;
		unsigned int seconds;
	} cases[] = {
		{"--memory", "100M", 100, 0}, {"--memory", "100m", 100, 0},
		{"--memory", "1G", 1024, 0},  {"--memory", "1g", 1024, 0},
		{"--memory", "0100", 100, 0}, {"--timeout", "1", 0, 1},
		{"--timeout", "90s", 0, 90},  {"--timeout", "3m", 0, 180},
		{"--timeout", "2h", 0, 7200}, {"--timeout", "8760h", 0, 31536000},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct command_line line;

		assert_int_equal(PARSE(&line, cases[i].option, cases[i].text, "true"),
				 RUN_OPTIONS_RUN);
		if (cases[i].memory_mib)
			assert_int_equal(line.options.memory_mib, cases[i].memory_mib);
		assert_int_equal(line.options.timeout_seconds, cases[i].seconds);
		command_line_free(&line);
	}
}

/* Each with what its sentence must hold: the value, and what would be right. */
static void test_bad_values(void **state)
{
	static const struct {
		const char *option, *value, *first, *second;
	} cases[] = {
		{"--cpus", "0", "--cpus 0", "1 to 16"},
		{"--cpus", "17", "--cpus 17", "1 to 16"},
		{"--cpus", "2x", "--cpus 2x", "1 to 16"},
		{"--cpus", "", "--cpus needs a value", "--help"},
		{"--memory", "", "--memory needs a value", "--help"},
		{"--cpus", "-1", "--cpus -1", "1 to 16"},
		{"--memory", "63", "--memory 63", "from 64M"},
		{"--memory", "1000000000G", "--memory 1000000000G", "this host has"},
		{"--memory", "18446744073709551615G", "--memory 184", "this host has"},
		{"--memory", "99999999999999999999999", "--memory 999", "this host has"},
		{"--memory", "1T", "--memory 1T", "M or G"},
		{"--memory", "1GB", "--memory 1GB", "M or G"},
		{"--memory", "+100", "--memory +100", "M or G"},
		/* strtoull(3) alone would take this for 616. */
		{"--memory", " -18446744073709551000", "--memory  -184", "M or G"},
		{"--memory", " 100", "--memory  100", "M or G"},
		{"--timeout", "0", "--timeout 0", "above 0"},
		{"--timeout", "0h", "--timeout 0h", "above 0"},
		{"--timeout", "1.5", "--timeout 1.5", "s, m or h"},
		{"--timeout", "8761h", "--timeout 8761h", "at most 8760h"},
		{"--timeout", "99999999999999999999", "--timeout 999", "at most 8760h"},
		{"--timeout", "never", "--timeout never", "s, m or h"},
		{"--user", "nobody", "--user nobody", "'agent'"},
		{"--workdir", "src", "--workdir src", "absolute"},
		{"--env", "", "--env needs a value", "--help"},
		{"--env", "=x", "--env =x", "needs a name"},
		{"--env", "1A=x", "--env 1A:", "does not begin with a digit"},
		{"--env", "A-B=x", "--env A-B:", "letters, digits and _"},
		{"--env", "A B", "--env A B:", "letters, digits and _"},
		{"--env", "\xc3\x84=x", "--env \xc3\x84:", "letters, digits and _"},
		{"--env", "CLI_OPTIONS_ABSENT", "CLI_OPTIONS_ABSENT", "not set"},
		{"--share", "", "--share needs a value", "--help"},
		{"--at", "/x", "--at /x", "after the --share"},
		{"--hide", "", "--hide needs a value", "--help"},
		{"--protect", "../x", "--protect '../x'", "a name or a path within the share"},
		{"--cache", "auto", "--cache auto", "shared, exclusive or none"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct command_line line;

		assert_int_equal(PARSE(&line, cases[i].option, cases[i].value, "true"),
				 RUN_OPTIONS_ERROR);
		capture_expect_sentence(&line.capture, cases[i].first);
		capture_expect_sentence(&line.capture, cases[i].second);
		command_line_free(&line);
	}
}

static void test_bad_mount_points(void **state)
{
	static const char *const places[] = {"x", "./x", "/"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		struct command_line line;

		assert_int_equal(PARSE(&line, "--share", "/a", "--at", places[i], "true"),
				 RUN_OPTIONS_ERROR);
		capture_expect_sentence(&line.capture, "absolute path");
		command_line_free(&line);
	}
}

static void test_two_mount_points(void **state)
{
	struct command_line line;

	(void)state;
	assert_int_equal(PARSE(&line, "--share", "/a", "--at", "/w", "--at", "/x", "true"),
			 RUN_OPTIONS_ERROR);
	capture_expect_sentence(&line.capture, "--at /x: --share /a has its place already, /w");
	command_line_free(&line);
	assert_int_equal(
		PARSE(&line, "--share", "/a", "--at", "/w", "--share", "/b", "--at", "/x", "true"),
		RUN_OPTIONS_RUN);
	assert_string_equal(line.options.shares[0].at, "/w");
	assert_string_equal(line.options.shares[1].at, "/x");
	command_line_free(&line);
}

static void test_variable_names(void **state)
{
	struct command_line line;

	(void)state;
	assert_int_equal(PARSE(&line, "--env", "_=", "--env", "a1_Z=1=2", "--env", "A=\n-", "true"),
			 RUN_OPTIONS_RUN);
	assert_int_equal(line.options.variables.count, 3);
	assert_string_equal(line.options.variables.list[1].text, "a1_Z=1=2");
	command_line_free(&line);
}

/* The option that is wrong is the one that the sentence names, also inside a cluster. */
static void test_unknown_options(void **state)
{
	static const struct {
		const char *first, *second, *named;
	} cases[] = {
		{"--shrae", "x", "'--shrae'"},
		/* No abbreviations, also of an option that would take a value. */
		{"--quie", "true", "'--quie'"},
		{"--shar", "x", "'--shar'"},
		{"--shar=x", "true", "'--shar=x'"},
		{"--he", "true", "'--he'"},
		{"-x", "true", "'-x'"},
		{"-xv", "true", "'-x'"},
		{"-vx", "true", "'-x'"},
		{"--quiet", "-xv", "'-x'"},
		{"--quiet=yes", "true", "'--quiet=yes'"},
		{"--help=yes", "true", "'--help=yes'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct command_line line;

		assert_int_equal(PARSE(&line, cases[i].first, cases[i].second, "true"),
				 RUN_OPTIONS_ERROR);
		capture_expect_sentence(&line.capture, cases[i].named);
		capture_expect_sentence(&line.capture, "--help");
		command_line_free(&line);
	}
}

/* A record that is not kept has no place and no key. */
static void test_no_record_alone(void **state)
{
	static const char *const others[] = {"--record", "--record-key"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct command_line line;

		assert_int_equal(PARSE(&line, others[i], "/x", "--no-record", "true"),
				 RUN_OPTIONS_ERROR);
		capture_expect_sentence(&line.capture, "--no-record and");
		capture_expect_sentence(&line.capture, others[i]);
		command_line_free(&line);
	}
}

static void test_missing_value_and_command(void **state)
{
	struct command_line line;

	(void)state;
	assert_int_equal(PARSE(&line, "--share"), RUN_OPTIONS_ERROR);
	capture_expect_sentence(&line.capture, "--share needs a value");
	command_line_free(&line);
	assert_int_equal(PARSE(&line, "--share", ".", "--"), RUN_OPTIONS_ERROR);
	capture_expect_sentence(&line.capture, "no command was given");
	command_line_free(&line);
	assert_int_equal(command_line_parse(&line, (const char *const[]){NULL}), RUN_OPTIONS_ERROR);
	capture_expect_sentence(&line.capture, "no command was given");
	command_line_free(&line);
}

/* An image may say what is run. */
static void test_no_command_with_an_image(void **state)
{
	struct command_line line;

	(void)state;
	assert_int_equal(PARSE(&line, "--root", "python"), RUN_OPTIONS_RUN);
	assert_null(line.options.command);
	assert_string_equal(line.options.root.image, "python");
	command_line_free(&line);
	assert_int_equal(PARSE(&line, "--root", "host"), RUN_OPTIONS_ERROR);
	capture_expect_sentence(&line.capture, "no command was given");
	command_line_free(&line);
}

/* ":ro" is part of the name when a directory is called so. */
static void test_read_only_suffix(void **state)
{
	char parent[] = "/tmp/cli-options-XXXXXX", named[64], with_suffix[80];
	struct command_line line;

	(void)state;
	assert_non_null(mkdtemp(parent));
	snprintf(named, sizeof(named), "%s/d:ro", parent);
	snprintf(with_suffix, sizeof(with_suffix), "%s:ro", named);
	assert_int_equal(mkdir(named, 0700), 0);
	assert_int_equal(PARSE(&line, "--share", named, "--share", with_suffix, "--share", ":ro",
			       "--share", "/x:rw", "true"),
			 RUN_OPTIONS_RUN);
	assert_string_equal(line.options.shares[0].directory, named);
	assert_false(line.options.shares[0].read_only);
	assert_string_equal(line.options.shares[1].directory, named);
	assert_true(line.options.shares[1].read_only);
	assert_string_equal(line.options.shares[2].directory, ":ro");
	assert_string_equal(line.options.shares[3].directory, "/x");
	assert_false(line.options.shares[3].read_only || line.options.shares[3].review);
	command_line_free(&line);
	rmdir(named);
	rmdir(parent);
}

/* A slash at the end is how a shell completes a directory's name. */
static void test_mount_point_with_a_slash(void **state)
{
	struct command_line line;

	(void)state;
	assert_int_equal(PARSE(&line, "--share", "/a", "--at", "/w/x//", "true"), RUN_OPTIONS_RUN);
	assert_string_equal(line.options.shares[0].at, "/w/x");
	command_line_free(&line);
	assert_int_equal(PARSE(&line, "--share", "/a", "--at", "///", "true"), RUN_OPTIONS_ERROR);
	capture_expect_sentence(&line.capture, "absolute path");
	command_line_free(&line);
}

static void test_too_many_shares(void **state)
{
	const char *arguments[2 * (LIMIT_SHARES + 1) + 2] = {NULL};
	struct command_line line;

	(void)state;
	for (size_t i = 0; i < LIMIT_SHARES + 1; i++) {
		arguments[2 * i] = "--share";
		arguments[2 * i + 1] = i == LIMIT_SHARES ? "/ninth" : "/a";
	}
	arguments[2 * LIMIT_SHARES + 2] = "true";
	assert_int_equal(command_line_parse(&line, arguments), RUN_OPTIONS_ERROR);
	capture_expect_sentence(&line.capture, "--share /ninth: at most 8 shares");
	command_line_free(&line);
}

/* Every variable is kept, in order. */
static void test_thousand_variables(void **state)
{
	static char storage[1000][32];
	static char *arguments[2002];
	struct run_options options;
	int count = 0;

	(void)state;
	arguments[count++] = (char[]){"run"};
	for (size_t i = 0; i < ARRAY_SIZE(storage); i++) {
		snprintf(storage[i], sizeof(storage[i]), "--env=V%zu=%zu", i, i);
		arguments[count++] = storage[i];
	}
	arguments[count++] = (char[]){"true"};
	assert_int_equal(run_options_parse(&options, count, arguments), RUN_OPTIONS_RUN);
	assert_int_equal(options.variables.count, 1000);
	assert_string_equal(options.variables.list[0].text, "V0=0");
	assert_string_equal(options.variables.list[999].text, "V999=999");
	run_options_free(&options);
}

/* The text goes to standard output, and names every option that people use. */
static void test_help(void **state)
{
	static const char *const named[] = {
		"--share",
		"--at",
		"--root",
		"--workdir",
		"--user",
		"--env",
		"--cpus",
		"--memory",
		"--json",
		"--timeout",
		"--kernel",
		"--debug-console",
		"--terminal-passthrough",
		"--quiet",
		"--verbose",
		"--help",
	};
	struct command_line line;
	char text[8192];
	int saved = dup(STDOUT_FILENO), file = memfd_create("help", MFD_CLOEXEC);
	enum run_options_result result;
	ssize_t length;

	(void)state;
	assert_true(saved >= 0 && file >= 0);
	fflush(stdout);
	dup2(file, STDOUT_FILENO);
	result = PARSE(&line, "--help");
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	length = pread(file, text, sizeof(text) - 1, 0);
	fd_close(&saved);
	fd_close(&file);
	assert_int_equal(result, RUN_OPTIONS_DONE);
	assert_true(length > 0);
	text[length] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(named); i++)
		assert_non_null(strstr(text, named[i]));
	command_line_free(&line);
}

static void test_reasons(void **state)
{
	struct command_line line;

	(void)state;
	assert_int_equal(PARSE(&line, "--share", ".", "--at", "/src", "--why", "it edits",
			       "--allow", "example.com", "--allow", "example.org", "--why",
			       "packages", "true"),
			 RUN_OPTIONS_RUN);
	assert_int_equal(line.options.reason_count, 2);
	assert_string_equal(line.options.reasons[0].option, "share");
	assert_string_equal(line.options.reasons[0].value, ".");
	assert_string_equal(line.options.reasons[0].why, "it edits");
	assert_string_equal(line.options.reasons[1].option, "allow");
	assert_string_equal(line.options.reasons[1].value, "example.org");
	command_line_free(&line);
	assert_int_equal(PARSE(&line, "--why", "nothing is before it", "true"), RUN_OPTIONS_ERROR);
	assert_non_null(strstr(line.capture.text, "after the option that it is for"));
	command_line_free(&line);
	assert_int_equal(PARSE(&line, "--share", ".", "--why", "one", "--why", "two", "true"),
			 RUN_OPTIONS_ERROR);
	command_line_free(&line);
	assert_int_equal(PARSE(&line, "--share", ".", "--why", "", "true"), RUN_OPTIONS_ERROR);
	command_line_free(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_option),
		cmocka_unit_test(test_command_keeps_its_options),
		cmocka_unit_test(test_sizes_and_times),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_bad_mount_points),
		cmocka_unit_test(test_two_mount_points),
		cmocka_unit_test(test_variable_names),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_unknown_options),
		cmocka_unit_test(test_no_record_alone),
		cmocka_unit_test(test_missing_value_and_command),
		cmocka_unit_test(test_no_command_with_an_image),
		cmocka_unit_test(test_read_only_suffix),
		cmocka_unit_test(test_mount_point_with_a_slash),
		cmocka_unit_test(test_too_many_shares),
		cmocka_unit_test(test_thousand_variables),
		cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

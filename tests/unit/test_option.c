/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines: the common parser, numbers, and what mvagent-vmm, -fs and -blk do with both. */
#include "tests/unit/cli_capture.h"

#include <errno.h>
#include <fcntl.h>

#include "vmm/base/bytes.h"
#include "vmm/base/number.h"
#include "vmm/base/option.h"
#include "vmm/fs/options.h"
#include "vmm/fs/policy.h"
#include "vmm/machine/options.h"
#include "vmm/root/options.h"

enum { OPTION_SIZE = OPTION_FIRST, OPTION_SIZE_LIMIT, OPTION_PLAIN };

static const struct option options[] = {
	{"size", required_argument, NULL, OPTION_SIZE},
	{"size-limit", required_argument, NULL, OPTION_SIZE_LIMIT},
	{"plain", no_argument, NULL, OPTION_PLAIN},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

struct applied {
	unsigned int count;
	int options[8];
	char *values[8];
};

static int apply(void *context, int option, char *value)
{
	struct applied *applied = context;

	if (value && strcmp(value, "bad") == 0)
		return -ERANGE;
	applied->options[applied->count] = option;
	applied->values[applied->count++] = value;
	return 0;
}

/* Parses "program" and @arguments, which ends with NULL. */
static int parse(bool takes_command, struct applied *applied, struct capture *capture,
		 const char *const *arguments)
{
	static char storage[10][32];
	const struct option_set set = {
		.usage = "the usage\n",
		.help = "program --help",
		.letters = "+:hp",
		.options = options,
		.takes_command = takes_command,
		.apply = apply,
	};
	char *argv[11] = {(char[]){"program"}};
	int argc = 1, result;

	for (; arguments[argc - 1]; argc++) {
		snprintf(storage[argc], sizeof(storage[argc]), "%s", arguments[argc - 1]);
		argv[argc] = storage[argc];
	}
	*applied = (struct applied){0};
	capture_begin(capture);
	result = option_set_parse(&set, argc, argv, applied);
	capture_end(capture);
	return result;
}

#define PARSE(takes_command, ...) \
	parse(takes_command, &applied, &capture, (const char *const[]){__VA_ARGS__, NULL})

static void test_options_are_applied_in_order(void **state)
{
	struct applied applied;
	struct capture capture;

	(void)state;
	assert_int_equal(PARSE(false, "--size", "1", "--plain", "--size-limit=2=3", "-p"), 6);
	assert_string_equal(capture.text, "");
	assert_int_equal(applied.count, 4);
	assert_int_equal(applied.options[0], OPTION_SIZE);
	assert_string_equal(applied.values[0], "1");
	assert_int_equal(applied.options[1], OPTION_PLAIN);
	assert_null(applied.values[1]);
	assert_int_equal(applied.options[2], OPTION_SIZE_LIMIT);
	assert_string_equal(applied.values[2], "2=3");
	assert_int_equal(applied.options[3], 'p');
	/* A value may look like an option. */
	assert_int_equal(PARSE(false, "--size", "--plai"), 3);
	assert_string_equal(applied.values[0], "--plai");
}

static void test_a_command_is_left_alone(void **state)
{
	struct applied applied;
	struct capture capture;

	(void)state;
	assert_int_equal(PARSE(true, "--plain", "ls", "--siz"), 2);
	assert_int_equal(applied.count, 1);
	assert_int_equal(PARSE(true, "--plain", "--", "--siz", "x"), 3);
	assert_int_equal(PARSE(true, "--plain"), 2);
	assert_int_equal(PARSE(false, "--plain", "ls"), -EINVAL);
	capture_expect_sentence(&capture, "unexpected argument 'ls'; see 'program --help'");
}

/* Nothing is applied from the mistake on. */
/* Words are found wherever they stand, and after "--" there is nothing else. */
static void test_words_between_options(void **state)
{
	static const struct option_set set = {
		.usage = "the usage\n",
		.help = "program --help",
		.letters = "+:hp",
		.options = options,
		.takes_words = true,
		.apply = apply,
	};
	static const char *const words[] = {"a", "b", "--plain", "c"};
	char *argv[] = {(char *)"program", (char *)"a",  (char *)"--size", (char *)"1",
			(char *)"b",       (char *)"-p", (char *)"--",     (char *)"--plain",
			(char *)"c",       NULL};
	char *none[] = {(char *)"program", (char *)"-p", NULL};
	char *last[] = {(char *)"program", (char *)"a", (char *)"--", NULL};
	struct applied applied = {0};

	(void)state;
	assert_int_equal(option_set_parse(&set, 9, argv, &applied), 5);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		assert_string_equal(argv[5 + i], words[i]);
	assert_null(argv[9]);
	assert_int_equal(applied.count, 2);
	assert_int_equal(applied.options[0], OPTION_SIZE);
	assert_string_equal(applied.values[0], "1");
	assert_int_equal(applied.options[1], 'p');
	assert_int_equal(option_set_parse(&set, 2, none, &applied), 2);
	assert_int_equal(applied.count, 3);
	assert_int_equal(option_set_parse(&set, 3, last, &applied), 2);
	assert_string_equal(last[2], "a");
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *arguments[3];
		const char *says;
	} cases[] = {
		{{"--plai"}, "unknown option '--plai'; see 'program --help'"},
		{{"--siz", "1"}, "unknown option '--siz'"},
		{{"--siz=1"}, "unknown option '--siz=1'"},
		{{"--size-l"}, "unknown option '--size-l'"},
		{{"--hel"}, "unknown option '--hel'"},
		{{"--sizes", "1"}, "unknown option '--sizes'"},
		{{"--=1"}, "unknown option '--=1'"},
		{{"-x"}, "unknown option '-x'"},
		{{"--size"}, "--size needs a value; see 'program --help'"},
		{{"--plain=no"}, "'--plain=no': this option takes no value"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct applied applied;
		struct capture capture;

		assert_int_equal(PARSE(false, cases[i].arguments[0], cases[i].arguments[1]),
				 -EINVAL);
		capture_expect_sentence(&capture, cases[i].says);
		assert_int_equal(applied.count, 0);
		assert_int_equal(PARSE(true, "-p", cases[i].arguments[0], cases[i].arguments[1]),
				 -EINVAL);
		capture_expect_sentence(&capture, cases[i].says);
		assert_int_equal(applied.count, 1);
	}
}

static void test_a_bad_value_ends_it(void **state)
{
	struct applied applied;
	struct capture capture;

	(void)state;
	assert_int_equal(PARSE(false, "--size", "1", "--size", "bad", "--plain"), -ERANGE);
	assert_int_equal(applied.count, 1);
}

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		uint64_t minimum, maximum, number;
		int error;
	} cases[] = {
		{"0", 0, 0, 0, 0},
		{"007", 7, 7, 7, 0},
		{"18446744073709551615", 0, UINT64_MAX, UINT64_MAX, 0},
		{"18446744073709551616", 0, UINT64_MAX, 0, -ERANGE},
		{"4", 5, 6, 0, -ERANGE},
		{"7", 5, 6, 0, -ERANGE},
		{"", 0, 9, 0, -EINVAL},
		{" 1", 0, 9, 0, -EINVAL},
		{"1 ", 0, 9, 0, -EINVAL},
		{"+1", 0, 9, 0, -EINVAL},
		{"-1", 0, UINT64_MAX, 0, -EINVAL},
		{"0x1", 0, 9, 0, -EINVAL},
		{"1k", 0, 9, 0, -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t number = 0;

		if (number_parse(cases[i].text, cases[i].minimum, cases[i].maximum, &number) !=
		    cases[i].error)
			fail_msg("'%s'", cases[i].text);
		if (!cases[i].error)
			assert_int_equal(number, cases[i].number);
	}
}

static void test_scaled_numbers(void **state)
{
	static const struct number_unit units[] = {{'m', 60}, {'h', 3600}, {0}};
	uint64_t number;

	(void)state;
	assert_int_equal(number_parse_scaled("2", units, 7200, &number), 0);
	assert_int_equal(number, 120);
	assert_int_equal(number_parse_scaled("2h", units, 7200, &number), 0);
	assert_int_equal(number, 7200);
	assert_int_equal(number_parse_scaled("3h", units, 7200, &number), -ERANGE);
	assert_int_equal(number_parse_scaled("2hh", units, 7200, &number), -EINVAL);
	assert_int_equal(number_parse_scaled("h", units, 7200, &number), -EINVAL);
	assert_int_equal(number_parse_scaled("2s", units, 7200, &number), -EINVAL);
	assert_int_equal(number_parse_mib("3", 3, &number), 0);
	assert_int_equal(number, 3);
	assert_int_equal(number_parse_mib("2g", 2048, &number), 0);
	assert_int_equal(number, 2048);
	assert_int_equal(number_parse_mib("2G", 2047, &number), -ERANGE);
	/* The product would wrap to something small. */
	assert_int_equal(number_parse_scaled("5124095576030432h", units, UINT64_MAX, &number),
			 -ERANGE);
}

static void test_descriptors(void **state)
{
	static const char *const wrong[] = {"", "x", "-1", "3x", "4294967296", "999999"};
	int first = dup(STDOUT_FILENO), second = dup(STDOUT_FILENO), fd = -1;
	struct capture capture;
	char text[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		capture_begin(&capture);
		assert_true(option_parse_fd("--fd", wrong[i], &fd) < 0);
		capture_end(&capture);
		snprintf(text, sizeof(text), "'%s'", wrong[i]);
		capture_expect_sentence(&capture, "--fd needs the number of an open descriptor");
		capture_expect_sentence(&capture, text);
		assert_int_equal(fd, -1);
	}
	snprintf(text, sizeof(text), "%d", first);
	assert_int_equal(fcntl(first, F_GETFD), 0);
	assert_int_equal(option_parse_fd("--fd", text, &fd), 0);
	assert_int_equal(fd, first);
	assert_int_equal(fcntl(first, F_GETFD), FD_CLOEXEC);
	snprintf(text, sizeof(text), "%d", second);
	assert_int_equal(option_parse_fd("--fd", text, &fd), 0);
	assert_int_equal(fd, second);
	assert_int_equal(fcntl(first, F_GETFD), -1); /* nobody else had it */
	fd_close(&fd);
}

struct programs {
	struct options machine;
	struct fs_options fs;
	struct blk_options blk;
};

enum program { PROGRAM_MACHINE, PROGRAM_FS, PROGRAM_BLK };

/* Whether the program would go on with these arguments. */
static bool accepts(enum program program, struct programs *programs, struct capture *capture,
		    const char *const *arguments)
{
	static char storage[12][32];
	char *argv[13] = {(char[]){"program"}};
	bool accepted = false;
	int argc = 1;

	for (; arguments[argc - 1]; argc++) {
		snprintf(storage[argc], sizeof(storage[argc]), "%s", arguments[argc - 1]);
		argv[argc] = storage[argc];
	}
	capture_begin(capture);
	if (program == PROGRAM_MACHINE) {
		accepted = options_parse(&programs->machine, argc, argv) == OPTIONS_RUN;
	} else if (program == PROGRAM_FS) {
		accepted = fs_options_parse(&programs->fs, argc, argv) == 1;
		policy_destroy(programs->fs.policy);
	} else {
		accepted = blk_options_parse(&programs->blk, argc, argv) == 1;
	}
	capture_end(capture);
	return accepted;
}

#define ACCEPTS(program, ...) \
	accepts(program, &programs, &capture, (const char *const[]){__VA_ARGS__, NULL})

static void test_programs_take_what_they_are_given(void **state)
{
	struct programs programs;
	struct capture capture;

	(void)state;
	assert_true(ACCEPTS(PROGRAM_FS, "--root", "/", "--socket", "s", "--guest-uid", "7",
			    "--guest-gid=4294967294", "--read-only"));
	assert_int_equal(programs.fs.socket_fd, -1);
	assert_string_equal(programs.fs.socket_path, "s");
	assert_int_equal(programs.fs.guest_uid, 7);
	assert_int_equal(programs.fs.guest_gid, 4294967294);
	assert_true(programs.fs.read_only);
	assert_false(programs.fs.verbose || programs.fs.no_io_uring);
	fd_close(&programs.fs.root_fd);

	assert_true(ACCEPTS(PROGRAM_BLK, "--image", "/dev/null", "--fd", "2", "--no-io-uring"));
	assert_int_equal(programs.blk.socket_fd, 2);
	assert_true(programs.blk.no_io_uring);
	assert_false(programs.blk.verbose);
	fd_close(&programs.blk.image_fd);

	assert_true(ACCEPTS(PROGRAM_MACHINE, "--monitor-fd=2", "--kvm-fd=2", "--kernel-fd=2",
			    "--initrd-fd=2", "--share=a:b:2", "--port=1024:2", "--memory", "64",
			    "--cpus=16", "--verbose"));
	assert_int_equal(programs.machine.share_count, 1);
	assert_string_equal(programs.machine.shares[0].tag, "a:b");
	assert_int_equal(programs.machine.shares[0].fd, 2);
	assert_int_equal(programs.machine.port_count, 1);
	assert_int_equal(programs.machine.ports[0].port, 1024);
	assert_int_equal(programs.machine.ports[0].fd, 2);
	assert_int_equal(programs.machine.memory_mib, 64);
	assert_int_equal(programs.machine.vcpu_count, 16);
	assert_int_equal(programs.machine.blk_fd, -1);
	assert_true(programs.machine.verbose);
}

static void test_programs_refuse_the_rest(void **state)
{
	static const struct {
		enum program program;
		const char *arguments[2];
		const char *says;
	} cases[] = {
		{PROGRAM_FS, {"--read"}, "unknown option '--read'; see 'mvagent-fs --help'"},
		{PROGRAM_FS, {"--guest-uid=4294967295"}, "a number of 0 to 4294967294"},
		{PROGRAM_FS, {"--root=/absent"}, "cannot share '/absent'"},
		{PROGRAM_FS, {"--upper=/absent"}, "cannot put changes in '/absent'"},
		{PROGRAM_FS, {"--root=/"}, "one of --fd N and --socket PATH"},
		{PROGRAM_FS, {"--fd=2"}, "--root DIR or --root-fd N"},
		{PROGRAM_FS, {"--fd=2", "x"}, "unexpected argument 'x'"},
		{PROGRAM_BLK, {"--imag=x"}, "unknown option '--imag=x'; see 'mvagent-blk --help'"},
		{PROGRAM_BLK, {"--image=/absent"}, "cannot open the image '/absent'"},
		{PROGRAM_BLK, {"--image=/dev/null"}, "one of --fd N and --socket PATH"},
		{PROGRAM_BLK, {"--fd=2"}, "--image PATH, --image-fd N and --host"},
		{PROGRAM_MACHINE, {"--mem=64"}, "unknown option '--mem=64'"},
		{PROGRAM_MACHINE, {"--memory=63"}, "--memory needs a number of 64 to 16777216"},
		{PROGRAM_MACHINE, {"--cpus=17"}, "--cpus needs a number of 1 to 16, not '17'"},
		{PROGRAM_MACHINE, {"--share=2"}, "NAME:N, not '2'"},
		{PROGRAM_MACHINE, {"--share=:2"}, "a tag of 1 to 36 bytes"},
		{PROGRAM_MACHINE, {"--share=a:x"}, "an open descriptor, not 'x'"},
		{PROGRAM_MACHINE, {"--port=0:2"}, "--port needs a number of 1 to"},
		{PROGRAM_MACHINE, {"--kvm-fd=2"}, "--monitor-fd is needed"},
		{PROGRAM_MACHINE, {"x"}, "unexpected argument 'x'; see 'mvagent-vmm --help'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct programs programs;
		struct capture capture;

		if (ACCEPTS(cases[i].program, cases[i].arguments[0], cases[i].arguments[1]))
			fail_msg("'%s' was accepted", cases[i].arguments[0]);
		capture_expect_sentence(&capture, cases[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_are_applied_in_order),
		cmocka_unit_test(test_a_command_is_left_alone),
		cmocka_unit_test(test_words_between_options),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_a_bad_value_ends_it),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_scaled_numbers),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_programs_take_what_they_are_given),
		cmocka_unit_test(test_programs_refuse_the_rest),
	};

	return cmocka_run_group_tests_name("option", tests, NULL, NULL);
}

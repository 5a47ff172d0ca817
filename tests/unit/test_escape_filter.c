/* SPDX-License-Identifier: Apache-2.0 */
/* Terminal output made harmless: what passes, what does not, and that no way of cutting the stream
 * into pieces or of breaking a sequence makes a difference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"
#include "vmm/cli/escape_filter.h"

#define ST "\033\\"

struct sample {
	const char *input;
	const char *output; /* NULL: as the input */
};

/* Filters a text in pieces of @step bytes, the first of which has @first. */
static char *filter_text(const char *input, size_t first, size_t step)
{
	struct escape_filter filter = {0};
	size_t length = strlen(input), written = 0;
	uint8_t *output = malloc(ESCAPE_FILTER_OUTPUT(length) + 1);

	assert_non_null(output);
	for (size_t done = 0; done < length;) {
		size_t count = done ? step : first;

		if (count > length - done)
			count = length - done;
		written += escape_filter_run(&filter, (const uint8_t *)input + done, count,
					     output + written);
		assert_true(filter.held_length <= ESCAPE_FILTER_HELD);
		done += count;
	}
	output[written] = '\0';
	return (char *)output;
}

static void expect(const char *input, const char *wanted, size_t first, size_t step)
{
	char *output = filter_text(input, first, step);

	assert_string_equal(output, wanted);
	free(output);
}

/* Whole, cut in two at every place, and byte by byte. */
static void expect_samples(const struct sample *samples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *input = samples[i].input;
		const char *wanted = samples[i].output ? samples[i].output : input;
		size_t length = strlen(input);

		for (size_t cut = 1; cut <= length; cut++)
			expect(input, wanted, cut, length);
		expect(input, wanted, 1, 1);
	}
}

static void test_harmless_output_passes(void **state)
{
	static const struct sample samples[] = {
		{"plain text\r\n\ttabs\b\a\f", NULL},
		{"\033[1;31mred\033[0m \033[38;2;255;100;0mrgb\033[m \033[4:3mcurly\033[m", NULL},
		{"\033[2J\033[H\033[10;20H\033[?1049h\033[?25l\033[?2004h\033[?1049l", NULL},
		{"\033(0lqk\033(B \0337\0338 \033= \033> \033M \033c \033#8 \033%G", NULL},
		{"za\xc5\xbc\xc3\xb3\xc5\x82\xc4\x87 \xe2\x80\x94 \xf0\x9f\x98\x80", NULL},
		/* Characters whose bytes have the values of C1 controls. */
		{"\xc3\x9c\xc3\x9d\xc5\x90\xe2\x9d\xa4\xe2\x90\x9b\xf0\x9d\x9b\x9d", NULL},
		{"\xc2\xa9\xc2\xb0\xc2\xbf", NULL},
		{"\033]8;;https://example.org/\033\\link\033]8;;\033\\", NULL},
		{"\033]8;;https://example.org/\xc3\x9c\xc3\x9d\alink\033]8;;\a", NULL},
		{"\033]4;1;rgb:ff/00/00\a\033]10;#fff\a\033]11;?\033\\\033]12;red\a", NULL},
		{"\033]104\a\033]110\033\\\033]111\x9c\033]112\a\033]104;3\a", NULL},
		{"\033]133;A\a$ \033]133;B\a", NULL},
		{"\033[14t\033[16t\033[18t\033[19t", NULL},
		{"\x9b\x31mC1\xc2\x9b\x30m\x85\xc2\x85", NULL},
	};

	(void)state;
	expect_samples(samples, ARRAY_SIZE(samples));
}

static void test_what_acts_beyond_the_screen_is_taken_out(void **state)
{
	static const struct sample samples[] = {
		{"a\033]0;title\ab", "ab"},
		{"a\033]1;icon\033\\b", "ab"},
		{"a\033]2;\xc3\x9c"
		 "ber\ab",
		 "ab"},
		{"a\033]52;c;aGVsbG8=\ab", "ab"},
		{"a\033]52;c;?\033\\b", "ab"},
		{"a\033]052;c;aGVsbG8=\ab", "ab"},
		{"a\033]1337;File=name=eA==:aGVsbG8=\ab", "ab"},
		{"a\033]9;notice\ab", "ab"},
		{"a\033]777;notify;a;b\ab", "ab"},
		{"a\033]ltitle\033\\b", "ab"},
		{"a\033]\ab", "ab"},
		{"a\033]52\ab", "ab"},
		{"a\033]123456789012;x\ab", "ab"},
		{"a\x9d"
		 "52;c;aGVsbG8=\x9c"
		 "b",
		 "ab"},
		{"a\xc2\x9d"
		 "52;c;aGVsbG8=\xc2\x9c"
		 "b",
		 "ab"},
		{"a\033]52;c;aGVsbG8=\x9c"
		 "b",
		 "ab"},
		{"a\033P+q544e\033\\b", "ab"},
		{"a\033Pq#0~\x18"
		 "b",
		 "ab"},
		{"a\x90$qm\x9c"
		 "b",
		 "ab"},
		{"a\xc2\x90$qm\xc2\x9c"
		 "b",
		 "ab"},
		{"a\033_Gi=1;AAAA\033\\b\033^private\033\\c\033Xstring\033\\d", "abcd"},
		{"a\x9fGi=1\x9c"
		 "b\xc2\x9eprivate\xc2\x9c"
		 "c\x98string\x9c"
		 "d",
		 "abcd"},
		{"a\033ktitle\033\\b", "ab"},
		{"a\033[21tb\033[22;0tc\033[23td\033[1te\033[8;10;10tf\033[>2tg\033[4tg",
		 "abcdefgg"},
		{"a\x9b"
		 "21tb\xc2\x9b"
		 "21tc",
		 "abc"},
		{"a\033[5ib\033[?5ic\033[1;1;1;1;5;5*yd", "abcd"},
		/* Out of UTF-8, and 8-bit answers. */
		{"a\033%@b\033%/Gc\033 Gd\033 Fe", "abcd\033 Fe"},
	};

	(void)state;
	expect_samples(samples, ARRAY_SIZE(samples));
}

/* Where terminals obey what stands inside of another sequence, so does the filter; and nothing
 * incomplete passes that what comes later could complete. */
static void test_broken_sequences_hide_nothing(void **state)
{
	static const struct sample samples[] = {
		/* A string in a string. */
		{"\033Ptmux;\033\033]52;c;AAAA\a\033\\b", ST "b"},
		{"\033Pa\033]52;c;AAAA\ab", "b"},
		{"\033]8;;x\033]52;c;AAAA\ab", "\033]8;;x" ST "b"},
		{"\033]8;;x\033\033]52;c;AAAA\ab", "\033]8;;x" ST "b"},
		{"\033]8;;x\x9d"
		 "52;c;AAAA\ab",
		 "\033]8;;x" ST "b"},
		{"\033]8;;x\xc2\x9d"
		 "52;c;AAAA\ab",
		 "\033]8;;x" ST "b"},
		{"\033]8;;x\xe2\x9d\x9d"
		 "52;c;AAAA\ab",
		 NULL},
		{"\033]8;;x\xe2\x9d\033]52;c;AAAA\ab", "\033]8;;x\xe2\x9d" ST "b"},
		{"\033]8;;x\033[31mred", "\033]8;;x" ST "\033[31mred"},
		{"\033]8;;x\x18red", NULL},
		/* A reset that turns out to be none: 1337 must not come of 133. */
		{"\033]133\033Px\033\\7;File=\ab", "7;File=\ab"},
		{"\033]104\033[31mred", "\033[31mred"},
		/* Controls within a sequence are obeyed before it. */
		{"\033\a]52;c;AAAA\ab", "\ab"},
		{"\033\n\177]52;c;AAAA\ab", "\nb"},
		{"\033[3\n1mred", "\n\033[31mred"},
		{"\033[2\a1tb", "\ab"},
		/* What breaks a sequence off. */
		{"\033\030]52 is text", "]52 is text"},
		{"\033[\030\x9d"
		 "52;c;AAAA\ab",
		 "b"},
		{"\033[1\x9d"
		 "52;c;AAAA\ab",
		 "b"},
		{"\033[1\xc2\x9d"
		 "52;c;AAAA\ab",
		 "b"},
		{"\033[1\033]52;c;AAAA\ab", "b"},
		{"\033(\033]52;c;AAAA\ab", "b"},
		{"\033\x9d"
		 "52;c;AAAA\ab",
		 "b"},
		{"\033\xc2\x9d"
		 "52;c;AAAA\ab",
		 "b"},
		{"\xc2\033]52;c;AAAA\ab", "\xc2"
					  "b"},
		/* What is left in front must not join what comes behind. */
		{"\033\033Px\033\\]52;c;AAAA\ab", "]52;c;AAAA\ab"},
		{"\033[2\033Px\033\\1tb", "1tb"},
		{"\033[2\x1a"
		 "1tb",
		 "1tb"},
		{"\033]\033Px\033\\52;c;AAAA\ab", "52;c;AAAA\ab"},
		/* Not UTF-8: over-long forms, surrogates, lone bytes hide no C1 control. */
		{"\xe0\x9d"
		 "52;c;AAAA\ab",
		 "\xe0"
		 "b"},
		{"\xf0\x82\x9d"
		 "52;c;AAAA\ab",
		 "\xf0\x82"
		 "b"},
		{"\xc3"
		 "A\x9d"
		 "52;c;AAAA\ab",
		 "\xc3"
		 "Ab"},
		{"\xc0\x9d"
		 "52;c;AAAA\ab",
		 "\xc0"
		 "b"},
		{"\xff\x9d"
		 "52;c;AAAA\ab",
		 "\xff"
		 "b"},
	};

	(void)state;
	expect_samples(samples, ARRAY_SIZE(samples));
}

/* A string without an end: nothing of it passes or is kept, however long it becomes. */
static void test_unterminated_string_is_not_kept(void **state)
{
	static const char *const introducers[] = {"\033P", "\033]52;", "\x9d", "\033_", "\033k"};
	static uint8_t block[65536], output[ESCAPE_FILTER_OUTPUT(sizeof(block))];

	(void)state;
	memset(block, 'x', sizeof(block));
	for (size_t i = 0; i < ARRAY_SIZE(introducers); i++) {
		struct escape_filter filter = {0};

		assert_int_equal(escape_filter_run(&filter, (const uint8_t *)introducers[i],
						   strlen(introducers[i]), output),
				 0);
		for (unsigned int round = 0; round < 16; round++)
			assert_int_equal(escape_filter_run(&filter, block, sizeof(block), output),
					 0);
		assert_int_equal(filter.held_length, 0);
		assert_int_equal(escape_filter_run(&filter, (const uint8_t *)"\aend", 4, output),
				 3);
		assert_memory_equal(output, "end", 3);
	}
}

/* An allowed string passes as it comes. */
static void test_long_link_is_not_kept(void **state)
{
	static uint8_t block[65536], output[ESCAPE_FILTER_OUTPUT(sizeof(block))];
	struct escape_filter filter = {0};

	(void)state;
	memset(block, 'x', sizeof(block));
	assert_int_equal(escape_filter_run(&filter, (const uint8_t *)"\033]8;;", 5, output), 5);
	assert_int_equal(escape_filter_run(&filter, block, sizeof(block), output), sizeof(block));
	assert_memory_equal(output, block, sizeof(block));
}

/* Sequences up to the bound pass, longer ones are taken out to their last byte. */
static void test_bound_on_what_is_held(void **state)
{
	char text[3 * ESCAPE_FILTER_HELD];

	(void)state;
	for (size_t length = ESCAPE_FILTER_HELD - 4; length < 2 * ESCAPE_FILTER_HELD; length++) {
		memset(text, '1', length);
		memcpy(text, "\033[", 2);
		strcpy(text + length - 1, "mA");
		expect(text, length < ESCAPE_FILTER_HELD ? text : "A", length, 1);
		memset(text, '!', length);
		text[0] = '\033';
		text[length - 1] = '0';
		expect(text, length < ESCAPE_FILTER_HELD ? text : "A", length, 1);
	}
}

/* The most that output can grow: strings that may pass, each broken off by the next. */
static void test_bound_on_the_output(void **state)
{
	static const char *const periods[] = {"\x9d"
					      "8;",
					      "\xc2\x9d"
					      "8;",
					      "\033]8;", "\033]8;\033c"};
	static uint8_t input[4096], output[ESCAPE_FILTER_OUTPUT(sizeof(input))];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(periods); i++) {
		struct escape_filter filter = {0};

		for (size_t at = 0; at < sizeof(input); at++)
			input[at] = (uint8_t)periods[i][at % strlen(periods[i])];
		assert_true(escape_filter_run(&filter, input, sizeof(input), output) <=
			    sizeof(output));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_harmless_output_passes),
		cmocka_unit_test(test_what_acts_beyond_the_screen_is_taken_out),
		cmocka_unit_test(test_broken_sequences_hide_nothing),
		cmocka_unit_test(test_unterminated_string_is_not_kept),
		cmocka_unit_test(test_long_link_is_not_kept),
		cmocka_unit_test(test_bound_on_what_is_held),
		cmocka_unit_test(test_bound_on_the_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

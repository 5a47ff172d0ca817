/* SPDX-License-Identifier: Apache-2.0 */
/* What is a character, and what may be printed on a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"
#include "vmm/base/text.h"

static void test_character_length(void **state)
{
	static const struct {
		const char *text;
		size_t length;
	} cases[] = {
		{"a", 1},
		{"\x7f", 1},
		{"\xc2\x80", 2},
		{"\xdf\xbf", 2},
		{"\xe0\xa0\x80", 3},
		{"\xed\x9f\xbf", 3},
		{"\xee\x80\x80", 3},
		{"\xf0\x90\x80\x80", 4},
		{"\xf4\x8f\xbf\xbf", 4},
		{"\x80", 0},             /* a continuation without a beginning */
		{"\xc1\xbf", 0},         /* longer than it needs to be */
		{"\xe0\x9f\xbf", 0},     /* the same */
		{"\xf0\x8f\xbf\xbf", 0}, /* the same */
		{"\xed\xa0\x80", 0},     /* a surrogate */
		{"\xf4\x90\x80\x80", 0}, /* past U+10FFFF */
		{"\xf8\x88\x80\x80\x80", 0},
		{"\xff", 0},
		{"\xc3"
		 "a",
		 0},
		{"\xe2\x82", 0},
		{"", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(text_character_length(cases[i].text, strlen(cases[i].text)),
				 cases[i].length);
	/* Bytes past the end are not looked at. */
	assert_int_equal(text_character_length("\xc3\xa4", 1), 0);
	assert_int_equal(text_character_length("\xe2\x82\xac", 2), 0);
	/* A NUL is one. */
	assert_int_equal(text_character_length("", 1), 1);
}

static void test_make_printable(void **state)
{
	static const struct {
		const char *given, *wanted;
	} cases[] = {
		{"plain text, \ttabs\nand lines\r\n", "plain text, \ttabs\nand lines\r\n"},
		{"K\xc3\xa4se \xe2\x82\xac \xf0\x9f\x90\xa7",
		 "K\xc3\xa4se \xe2\x82\xac \xf0\x9f\x90\xa7"},
		{"\x1b]52;c;aGk=\x07", "?]52;c;aGk=?"},
		{"\x1b[2J", "?[2J"},
		{"\xc2\x9b"
		 "2J",
		 "??2J"},
		{"\x9b"
		 "2J",
		 "?2J"},
		{"over\rwritten", "over?written"},
		{"end\r", "end?"},
		{"\b\v\f\x7f", "????"},
		{"caf\xe9", "caf?"},
		{"\xc2\xa0", "\xc2\xa0"},
		{"a\xe2\x80\xaetxt.sh", "a???txt.sh"},
		{"\xe2\x80\x8f\xe2\x81\xa6\xd8\x9c", "????????"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[64];
		size_t length = strlen(cases[i].given);

		assert_true(length < sizeof(text));
		memcpy(text, cases[i].given, length + 1);
		text_make_printable(text, length);
		assert_string_equal(text, cases[i].wanted);
	}
}

/* Whatever comes in, no byte that a terminal acts on comes out, wherever it was cut. */
static void test_every_pair(void **state)
{
	(void)state;
	for (unsigned int pair = 0; pair < 65536; pair++) {
		char text[3] = {(char)(pair >> 8), (char)pair, '!'};

		text_make_printable(text, 2);
		assert_int_equal(text[2], '!');
		for (unsigned int i = 0; i < 2; i++) {
			uint8_t byte = (uint8_t)text[i];

			assert_true(byte >= 0x20 || byte == '\t' || byte == '\n' || byte == '\r');
			assert_true(byte != 0x7f);
			if (byte >= 0x80 && byte < 0xa0)
				assert_true(i == 1 && (uint8_t)text[0] > 0xc2);
		}
	}
}

/* A word as a shell reads it back: the shell itself is asked. */
static void test_words(void **state)
{
	static const char *const words[] = {"",      "plain",       "a b",  "it's", "''",
					    "$HOME", "a;b",         "-x=1", "*",    "\\n",
					    "\"q\"", "caf\xc3\xa9", "~",    "#"};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char *command = NULL, read[64] = "";
		size_t length = 0;
		FILE *stream = open_memstream(&command, &length), *shell;

		fputs("printf %s ", stream);
		text_print_word(stream, words[i]);
		assert_int_equal(fclose(stream), 0);
		shell = popen(command, "r");
		assert_non_null(shell);
		(void)!fread(read, 1, sizeof(read) - 1, shell);
		assert_int_equal(pclose(shell), 0);
		assert_string_equal(read, words[i]);
		free(command);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_character_length),
		cmocka_unit_test(test_make_printable),
		cmocka_unit_test(test_every_pair),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

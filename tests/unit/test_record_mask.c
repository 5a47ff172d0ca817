/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in command lines do not get into the record, and what is none stays readable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "vmm/base/bytes.h"
#include "vmm/record/mask.h"

#define NAME_OF_64 "THIS_IS_THE_NAME_OF_A_SERVICE_WHOSE_NAME_IS_AS_LONG_AS_SOME_ARE_"

static void test_arguments(void **state)
{
	static const struct {
		const char *previous, *in, *out;
	} cases[] = {
		{NULL, "--token=abc", "--token=***"},
		{"--password", "hunter2", "***"},
		{"--password=x", "hunter2", "hunter2"},
		{"--auth-token", "--verbose", "--verbose"},
		{NULL, "OPENAI_API_KEY=abc def", "OPENAI_API_KEY=***"},
		{"-H", "Authorization: Bearer abc.def", "Authorization: ***"},
		{"-H", "x-api-key: 12345", "x-api-key: ***"},
		{"-H", "Accept: text/html", "Accept: text/html"},
		{NULL, "https://me:pass@example.org/a@b", "https://me:***@example.org/a@b"},
		{NULL, "https://tok@example.org", "https://***@example.org"},
		{NULL, "https://example.org/a@b", "https://example.org/a@b"},
		{NULL, "git clone ghp_0123456789abcdefghij; echo sk-0123456789abcdefghij",
		 "git clone ***; echo ***"},
		{NULL, "X=AKIA0123456789ABCDEF", "X=***"},
		{NULL, "sk-learn", "sk-learn"},
		{NULL, "export API_KEY='x y'; MY_TOKEN=abc run",
		 "export API_KEY='***'; MY_TOKEN=*** run"},
		{NULL, "curl -H 'Authorization: Bearer abc' x",
		 "curl -H 'Authorization: Bearer ***' x"},
		{NULL, "make CFLAGS=-O2 test", "make CFLAGS=-O2 test"},
		{NULL, NAME_OF_64 "_TOKEN=abc", NAME_OF_64 "_TOKEN=***"},
		{NULL, "ls", "ls"},
		{NULL, "", ""},
		{NULL, "a=b", "a=b"},
		{NULL, "--token=", "--token="},
		{NULL, "echo the token is: gone", "echo the token is: gone"},
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		char *masked = mask_argument(cases[i].in, cases[i].previous);

		assert_string_equal(masked, cases[i].out);
		free(masked);
	}
}

static void test_values(void **state)
{
	char *masked = mask_value("a secret1 b secret1secret1", "secret1");

	(void)state;
	assert_string_equal(masked, "a *** b ******");
	free(masked);
	masked = mask_value("a b a", "a");
	assert_string_equal(masked, "a b a");
	free(masked);
	masked = mask_value("abc", "");
	assert_string_equal(masked, "abc");
	free(masked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

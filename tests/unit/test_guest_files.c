/* SPDX-License-Identifier: Apache-2.0 */
/* Lines added to a file of /etc, whatever is there. */
#include "guest/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_appended(const char *before, const char *after)
{
	char directory[] = "/tmp/mvagent-files-XXXXXX", path[64], *text = NULL;
	struct stat status;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/file", directory);
	if (before)
		assert_int_equal(files_write(path, before), 0);
	assert_int_equal(files_append(path, "[user]\n"), 0);
	assert_int_equal(files_read(path, &text), 0);
	assert_int_equal(stat(path, &status), 0);
	unlink(path);
	rmdir(directory);
	assert_string_equal(text, after);
	assert_int_equal(status.st_mode & 0444, 0444);
	free(text);
}

static void test_append(void **state)
{
	(void)state;
	assert_appended(NULL, "[user]\n");
	assert_appended("", "[user]\n");
	assert_appended("[core]\n\tpager = less\n", "[core]\n\tpager = less\n\n[user]\n");
	assert_appended("[core]\n\tpager = less", "[core]\n\tpager = less\n[user]\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_append),
	};

	return cmocka_run_group_tests_name("guest files", tests, NULL, NULL);
}

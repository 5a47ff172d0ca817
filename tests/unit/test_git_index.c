/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes that git itself has written, and damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/fs/git_index.h"

#define BYTES_MAX 65536

static const char script[] =
	"set -e; cd '%s'; git init -q %s r; cd r; git config index.version %d;"
	"mkdir -p d/e; echo x >.env; echo y >d/e/f; echo z >'name with spaces';"
	"echo a >d/a-name-that-is-rather-longer-than-the-others-0123456789; echo w >later;"
	"git add .env d 'name with spaces'; git add -N later";

static char list[4096];

static void note(void *context, const char *path)
{
	(void)context;
	strncat(list, path, sizeof(list) - strlen(list) - 2);
	strcat(list, "\n");
}

/* The index of a repository made for it. */
static size_t make_index(const char *options, int version, uint8_t bytes[BYTES_MAX])
{
	char directory[] = "/dev/shm/mvagent-index-XXXXXX";
	char command[1024];
	ssize_t size;
	int fd;

	assert_non_null(mkdtemp(directory));
	snprintf(command, sizeof(command), script, directory, options, version);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "%s/r/.git/index", directory);
	fd = open(command, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	size = read(fd, bytes, BYTES_MAX);
	assert_in_range(size, 100, BYTES_MAX - 1);
	close(fd);
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	assert_int_equal(system(command), 0);
	return (size_t)size;
}

static void check_index(const char *options, int version)
{
	uint8_t *bytes = test_malloc(BYTES_MAX);
	size_t size = make_index(options, version, bytes);

	list[0] = '\0';
	assert_int_equal(git_index_read(bytes, size, note, NULL), 0);
	assert_string_equal(list,
			    ".env\nd/a-name-that-is-rather-longer-than-the-others-0123456789\n"
			    "d/e/f\nlater\nname with spaces\n");
	/* Cut anywhere within the entries it is an error, and never read past its end. */
	for (size_t cut = 0; cut < 300; cut++) {
		uint8_t *copy = test_malloc(cut + 1);

		memcpy(copy, bytes, cut);
		list[0] = '\0';
		assert_int_equal(git_index_read(copy, cut, note, NULL), -EPROTO);
		test_free(copy);
	}
	test_free(bytes);
}

static void test_versions(void **state)
{
	(void)state;
	check_index("", 2);
	check_index("", 4);
	check_index("--object-format=sha256", 2);
	check_index("--object-format=sha256", 4);
}

static void test_no_index(void **state)
{
	uint8_t bytes[64] = "DIRC";

	(void)state;
	assert_int_equal(git_index_read(bytes, sizeof(bytes), note, NULL), -EPROTO);
	bytes[7] = 2;
	assert_int_equal(git_index_read(bytes, 12, note, NULL), 0);
	bytes[8] = 0xff;
	assert_int_equal(git_index_read(bytes, sizeof(bytes), note, NULL), -EPROTO);
	bytes[0] = 'X';
	assert_int_equal(git_index_read(bytes, sizeof(bytes), note, NULL), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_no_index),
	};

	return cmocka_run_group_tests_name("git index", tests, NULL, NULL);
}

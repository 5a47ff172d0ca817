/* SPDX-License-Identifier: Apache-2.0 */
/* What init writes before the command starts: accounts, small files, directories. */
#include "guest/accounts.h"
#include "guest/directories.h"
#include "guest/files.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct account ada = {"ada", 1000, 1001, "/home/ada", "/bin/bash"};

#define ADA_USER  "ada:x:1000:1001:ada:/home/ada:/bin/bash\n"
#define ADA_GROUP "ada:x:1001:\n"
#define ROOT_USER "root:x:0:0:root:/root:/bin/bash\n"

static void assert_edit(accounts_edit *edit, const struct account *account, const char *old,
			const char *expected)
{
	char *edited;

	assert_int_equal(edit(old, account, &edited), 0);
	assert_string_equal(edited, expected);
	free(edited);
}

static void test_passwd(void **state)
{
	(void)state;
	assert_edit(accounts_edit_passwd, &ada, "", ADA_USER);
	assert_edit(accounts_edit_passwd, &ada, ROOT_USER, ROOT_USER ADA_USER);
	/* A last line without an end does not swallow the new one. */
	assert_edit(accounts_edit_passwd, &ada, "x:x:1:1::/:/bin/sh",
		    "x:x:1:1::/:/bin/sh\n" ADA_USER);
	/* The same uid, the same name, both on different lines. */
	assert_edit(accounts_edit_passwd, &ada, "u:x:1000:5::/:/bin/sh\n" ROOT_USER,
		    ADA_USER ROOT_USER);
	assert_edit(accounts_edit_passwd, &ada, ROOT_USER "ada:x:7:7::/:/bin/sh\n",
		    ROOT_USER ADA_USER);
	assert_edit(accounts_edit_passwd, &ada,
		    "ada:x:7:7::/:/bin/sh\n" ROOT_USER "u:x:1000:5::/:/bin/sh\n",
		    ADA_USER ROOT_USER);
	assert_edit(accounts_edit_passwd, &ada, ADA_USER, ADA_USER);
}

/* What only looks like it: longer names and numbers, other fields, lines that are no entries. */
static void test_passwd_others_stay(void **state)
{
	const char *old = "adam:x:10000:1::/:/bin/sh\n"
			  "ad:x:100:1000:ada:/home/ada:/bin/sh\n"
			  "+::::::\n"
			  "\n"
			  "ada\n"
			  "x:1000\n"
			  "y:x:-1000:1::/:/bin/sh\n";
	char expected[512];

	(void)state;
	snprintf(expected, sizeof(expected), "%s%s", old, ADA_USER);
	assert_edit(accounts_edit_passwd, &ada, old, expected);
}

static void test_group(void **state)
{
	(void)state;
	assert_edit(accounts_edit_group, &ada, "", ADA_GROUP);
	assert_edit(accounts_edit_group, &ada, "root:x:0:\n", "root:x:0:\n" ADA_GROUP);
	/* The gid has a name already: it keeps it, and its members. */
	assert_edit(accounts_edit_group, &ada, "users:x:1001:eve\nada:x:5:\n",
		    "users:x:1001:eve\nada:x:5:\n");
	assert_edit(accounts_edit_group, &ada, "ada:x:5:eve\nroot:x:0:\n", ADA_GROUP "root:x:0:\n");
}

static char scratch[] = "/tmp/guest-names-XXXXXX";

static int make_scratch(void **state)
{
	(void)state;
	return mkdtemp(scratch) && !chdir(scratch) ? 0 : -1;
}

static int remove_scratch(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", scratch);
	return system(command);
}

static void assert_content(const char *path, const char *expected)
{
	char *text;

	assert_int_equal(files_read(path, &text), 0);
	assert_string_equal(text, expected);
	free(text);
}

static void test_files(void **state)
{
	struct stat status;
	char *text;

	(void)state;
	assert_content("missing", "");
	assert_int_equal(files_write("file", "longer text\n"), 0);
	assert_int_equal(files_write("file", "text\n"), 0);
	assert_content("file", "text\n");
	/* A link is replaced, whether it leads somewhere or not; where it leads is left alone. */
	assert_int_equal(symlink("nowhere", "dangling"), 0);
	assert_int_equal(files_write("dangling", "one\n"), 0);
	assert_content("dangling", "one\n");
	assert_int_equal(symlink("file", "link"), 0);
	assert_int_equal(files_write("link", "two\n"), 0);
	assert_content("link", "two\n");
	assert_content("file", "text\n");
	assert_int_equal(lstat("link", &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(files_write("no/such/directory", ""), -ENOENT);
	assert_int_equal(truncate("file", (1 << 20) + 1), 0);
	assert_int_equal(files_read("file", &text), -EFBIG);
}

static void test_contain(void **state)
{
	(void)state;
	assert_true(directories_contain("/home/ada", "/home/ada"));
	assert_true(directories_contain("/home/ada", "/home/ada/work"));
	assert_true(directories_contain("/home/ada/", "/home/ada/work"));
	assert_true(directories_contain("/", "/home"));
	assert_false(directories_contain("/home/ada", "/home/adam"));
	assert_false(directories_contain("/home/ada", "/home"));
}

static uid_t owner_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	assert_true(S_ISDIR(status.st_mode));
	assert_int_equal(status.st_mode & 0777, 0755);
	return status.st_uid;
}

/* Makes directories as another user would own them: needs root. */
static void test_directories(void **state)
{
	char home[64], below[128], longest[5000];
	const struct directory_owner owner = {home, 12345, 12345};

	(void)state;
	if (geteuid())
		skip(); /* only root may give directories away */
	umask(0);
	snprintf(home, sizeof(home), "%s/h/home", scratch);
	snprintf(below, sizeof(below), "%s/a/b//c/", home);
	assert_int_equal(directories_make(below, &owner), 0);
	assert_int_equal(owner_of("h"), 0);
	assert_int_equal(owner_of("h/home"), 12345);
	assert_int_equal(owner_of("h/home/a"), 12345);
	assert_int_equal(owner_of("h/home/a/b/c"), 12345);
	assert_int_equal(directories_make("h/other/x", NULL), 0);
	assert_int_equal(owner_of("h/other/x"), 0);
	assert_int_equal(directories_make(below, &owner), 0);
	assert_int_equal(files_write("h/file", ""), 0);
	assert_int_equal(directories_make("h/file/x", NULL), -ENOTDIR);
	memset(longest, '/', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	assert_int_equal(directories_make(longest, NULL), -ENAMETOOLONG);
}

static void test_home(void **state)
{
	char home[64];
	const struct directory_owner owner = {home, 12345, 12345};

	(void)state;
	if (geteuid())
		skip(); /* only root may give directories away */
	umask(0);
	/* One that the image made for someone else becomes the user's. */
	assert_int_equal(mkdir("made", 0755), 0);
	snprintf(home, sizeof(home), "%s/made", scratch);
	assert_int_equal(directories_make_home(&owner), 0);
	assert_int_equal(owner_of("made"), 12345);
	assert_int_equal(files_write("plain", ""), 0);
	snprintf(home, sizeof(home), "%s/plain", scratch);
	assert_int_equal(directories_make_home(&owner), -ENOTDIR);
	snprintf(home, sizeof(home), "/");
	assert_int_equal(directories_make_home(&owner), 0);
	assert_int_equal(owner_of("/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_passwd),  cmocka_unit_test(test_passwd_others_stay),
		cmocka_unit_test(test_group),   cmocka_unit_test(test_files),
		cmocka_unit_test(test_contain), cmocka_unit_test(test_directories),
		cmocka_unit_test(test_home),
	};

	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}

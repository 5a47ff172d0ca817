/* SPDX-License-Identifier: Apache-2.0 */
/* What may be a name: any bytes but the slash, 255 of them, and paths of 4095. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/conform.h"

static bool is_listed(const char *name)
{
	DIR *directory = opendir(".");
	struct dirent *entry;
	bool found = false;

	while (directory && (entry = readdir(directory)) != NULL)
		found |= strcmp(entry->d_name, name) == 0;
	if (directory)
		closedir(directory);
	return found;
}

/* A name is made, listed, renamed, linked and removed, as a file and as a directory. */
static void check_name(struct suite *suite, const char *name, const char *what)
{
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0644);

	if (!check_result(suite, fd, 0, "open O_CREAT of %s", what))
		return;
	check_equal(suite, write(fd, "x", 1), 1, "write to %s", what);
	close(fd);
	check_true(suite, is_listed(name), "%s is listed as it was made", what);
	check_result(suite, access(name, R_OK), 0, "access of %s", what);
	check_result(suite, rename(name, "plain"), 0, "rename from %s", what);
	check_result(suite, access(name, F_OK), ENOENT, "access of %s after that", what);
	check_result(suite, link("plain", name), 0, "link to %s", what);
	check_result(suite, unlink(name), 0, "unlink of %s", what);
	check_result(suite, rename("plain", name), 0, "rename to %s", what);
	check_result(suite, unlink(name), 0, "unlink of %s again", what);
	check_result(suite, symlink("t", name), 0, "symlink at %s", what);
	check_result(suite, unlink(name), 0, "unlink of the symlink %s", what);
	check_result(suite, mkdir(name, 0755), 0, "mkdir of %s", what);
	check_result(suite, mkdir(name, 0755), EEXIST, "mkdir of %s again", what);
	check_result(suite, rmdir(name), 0, "rmdir of %s", what);
}

static void check_bytes_of_names(struct suite *suite)
{
	static const struct {
		const char *name, *what;
	} rows[] = {
		{"UPPER lower", "a name with a blank"},
		{" ", "a blank"},
		{"two\nlines", "a name with a newline"},
		{"\t\r\v\f", "a name of control characters"},
		{"\033[31mred", "a name with an escape sequence"},
		{"'single' \"double\"", "a name with quotes"},
		{"back\\slash", "a name with a backslash"},
		{"$HOME `id` $(id) *?[a]", "a name that a shell would expand"},
		{"-rf", "a name that looks like an option"},
		{"...", "three dots"},
		{"..x", "a name that begins with two dots"},
		{".hidden file", "a name that begins with a dot"},
		{"trailing.", "a name that ends with a dot"},
		{"trailing ", "a name that ends with a blank"},
		{"con.txt:stream", "a name with a colon"},
		{"a|b>c<d&e;f", "a name with operators"},
		{"\xc3\xa9t\xc3\xa9", "a composed UTF-8 name"},
		{"e\xcc\x81te\xcc\x81", "a decomposed UTF-8 name"},
		{"\xe6\x96\x87\xe5\xad\x97", "a name of CJK characters"},
		{"\xf0\x9f\x98\x80", "a name of four-byte characters"},
		{"\xff\xfe\x80", "a name that is no UTF-8"},
		{"\xc0\xaf", "an overlong slash"},
		{"\x7f\x01", "a name of DEL and SOH"},
		{"x", "a name of one byte"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_name(suite, rows[i].name, rows[i].what);
}

/* Names that some file systems take for one. */
static void check_distinct(struct suite *suite)
{
	static const char *const names[] = {
		"name", "Name", "NAME", "name ", "name.", "n\xc3\xa1me", "na\xcc\x81me", "nAme",
	};
	const size_t count = sizeof(names) / sizeof(names[0]);
	struct stat status;

	for (size_t i = 0; i < count; i++) {
		int fd = open(names[i], O_WRONLY | O_CREAT | O_EXCL, 0644);

		check_result(suite, fd, 0, "open O_CREAT|O_EXCL of spelling %zu", i);
		check_equal(suite, write(fd, "12345678", i), (long)i, "write");
		close(fd);
	}
	for (size_t i = 0; i < count; i++) {
		check_result(suite, stat(names[i], &status), 0, "stat of spelling %zu", i);
		check_equal(suite, status.st_size, (long)i, "size of spelling %zu", i);
		unlink(names[i]);
	}
}

static void check_lengths(struct suite *suite)
{
	static const int lengths[] = {2, 16, 100, 127, 128, 200, 254, 255};
	char name[NAME_MAX + 46], what[32];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(name, 'l', sizeof(name));
		name[lengths[i]] = '\0';
		snprintf(what, sizeof(what), "a name of %d bytes", lengths[i]);
		check_name(suite, name, what);
	}
	/* In bytes, not in characters. */
	for (int at = 0; at < 254; at += 2)
		memcpy(name + at, "\xc3\xa9", 2);
	name[254] = '\0';
	check_name(suite, name, "a name of 127 two-byte characters");
	memcpy(name + 254, "\xc3\xa9", 3);
	check_result(suite, mkdir(name, 0755), ENAMETOOLONG, "mkdir of 128 two-byte characters");
	for (int length = 256; length < 300; length += 11) {
		memset(name, 'l', sizeof(name));
		name[length] = '\0';
		check_result(suite, open(name, O_WRONLY | O_CREAT, 0644), ENAMETOOLONG,
			     "open O_CREAT of %d bytes", length);
		check_result(suite, mkdir(name, 0755), ENAMETOOLONG, "mkdir of %d bytes", length);
		check_result(suite, access(name, F_OK), ENAMETOOLONG, "access of %d bytes", length);
	}
	check_equal(suite, pathconf(".", _PC_NAME_MAX), 255, "pathconf _PC_NAME_MAX");
}

/* A tree deeper than any path can say, then paths at the limit. */
static void check_depth(struct suite *suite)
{
	static char path[PATH_MAX + 64];
	char name[201];
	int here = must(suite, open(".", O_RDONLY | O_DIRECTORY), "open .");
	int depth;

	memset(name, 'd', 200);
	name[200] = '\0';
	for (depth = 0; depth < 30; depth++) {
		check_result(suite, mkdir(name, 0755), 0, "mkdir at depth %d", depth);
		must(suite, chdir(name), "chdir");
	}
	check_result(suite, mkdir("last", 0755), 0, "mkdir beyond PATH_MAX");
	must(suite, fchdir(here), "fchdir");
	for (int at = 0; at < 20; at++)
		memcpy(path + at * 201,
		       "dddddddddddddddddddddddddddddddddddddddddddddddddd"
		       "dddddddddddddddddddddddddddddddddddddddddddddddddd"
		       "dddddddddddddddddddddddddddddddddddddddddddddddddd"
		       "dddddddddddddddddddddddddddddddddddddddddddddddddd/",
		       201);
	memset(path + 4020, 'e', 100);
	path[4095] = '\0';
	check_result(suite, mkdir(path, 0755), 0, "mkdir of a path of 4095 bytes");
	check_result(suite, access(path, X_OK), 0, "access of a path of 4095 bytes");
	check_result(suite, rmdir(path), 0, "rmdir of a path of 4095 bytes");
	path[4095] = 'e';
	path[4096] = '\0';
	check_result(suite, mkdir(path, 0755), ENAMETOOLONG, "mkdir of a path of 4096 bytes");
	check_result(suite, access(path, X_OK), ENAMETOOLONG, "access of a path of 4096 bytes");
	for (int i = 0; i < depth; i++)
		must(suite, chdir(name), "chdir");
	check_result(suite, rmdir("last"), 0, "rmdir beyond PATH_MAX");
	for (; depth > 0; depth--) {
		must(suite, chdir(".."), "chdir ..");
		check_result(suite, rmdir(name), 0, "rmdir at depth %d", depth);
	}
	close(here);
}

void conform_names(struct suite *suite)
{
	check_bytes_of_names(suite);
	check_distinct(suite);
	check_lengths(suite);
	check_depth(suite);
}

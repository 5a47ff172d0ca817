/* SPDX-License-Identifier: Apache-2.0 */
/* link(2), linkat(2), symlink(2), readlink(2). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/conform.h"
#include "tests/posix/subject.h"

static int expect_link(enum subject from, enum subject to, bool follow)
{
	mode_t type = subject_type(from);

	if (subject_path_error(from))
		return subject_path_error(from);
	if (follow && type == S_IFLNK) {
		if (subject_follow_error(from))
			return subject_follow_error(from);
		type = subject_target_type(from);
	}
	if (!type)
		return ENOENT;
	if (subject_path_error(to))
		return subject_path_error(to);
	if (subject_type(to))
		return EEXIST;
	return type == S_IFDIR ? EPERM : 0;
}

static void check_link(struct suite *suite, enum subject from, enum subject to, bool follow)
{
	char from_path[PATH_MAX + 2], to_path[PATH_MAX + 2], what[160];
	int wanted = expect_link(from, to, follow);
	struct subject_state before, from_after, to_after;
	struct stat source;

	snprintf(what, sizeof(what), "link %s%s to %s", subject_name(from),
		 follow ? " (AT_SYMLINK_FOLLOW)" : "", subject_name(to));
	before = subject_state("to");
	check_result(suite,
		     linkat(AT_FDCWD, subject_path(from, "from", from_path), AT_FDCWD,
			    subject_path(to, "to", to_path), follow ? AT_SYMLINK_FOLLOW : 0),
		     wanted, "%s", what);
	to_after = subject_state("to");
	if (wanted) {
		check_true(suite, subject_same(&before, &to_after), "%s changes nothing", what);
	} else {
		if (follow ? stat("from", &source) : lstat("from", &source))
			must(suite, -1, "stat of what was linked");
		from_after = subject_state("from");
		check_equal(suite, (long long)to_after.number, (long long)source.st_ino,
			    "inode number after %s", what);
		check_equal(suite, (long long)to_after.links, 2, "links after %s", what);
		check_equal(suite, (long long)source.st_nlink, 2, "links of the old name after %s",
			    what);
		check_true(suite, from_after.exists, "the old name stays after %s", what);
		check_result(suite, unlink("to"), 0, "unlink after %s", what);
	}
}

static void check_pair(struct suite *suite, enum subject from, enum subject to)
{
	subject_make(suite, from, "from");
	subject_make(suite, to, "to");
	check_link(suite, from, to, false);
	check_link(suite, from, to, true);
	subject_remove(suite, to, "to");
	subject_remove(suite, from, "from");
}

/* Unnamed files get their first name by link. */
static void check_unnamed(struct suite *suite)
{
	struct stat status;
	char path[64];
	int fd;

	fd = must(suite, open(".", O_TMPFILE | O_RDWR, 0640), "an unnamed file");
	check_equal(suite, write(fd, "unnamed", 7), 7, "write to an unnamed file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check_result(suite, linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW), 0,
		     "link an unnamed file");
	check_result(suite, stat("named", &status), 0, "stat of its name");
	check_equal(suite, status.st_nlink, 1, "links of the file that got a name");
	check_equal(suite, status.st_size, 7, "size of the file that got a name");
	check_result(suite, linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW), EEXIST,
		     "link it where a name is");
	/* open(2): for whoever opened the file; before Linux 6.10 only for root. */
	check_result(suite, linkat(fd, "", AT_FDCWD, "second", AT_EMPTY_PATH), 0,
		     "linkat AT_EMPTY_PATH");
	close(fd);
	unlink("named");
	unlink("second");
	fd = must(suite, open(".", O_TMPFILE | O_EXCL | O_WRONLY, 0640), "an unnamed file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check_result(suite, linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW), ENOENT,
		     "link an unnamed file of O_EXCL");
	close(fd);
}

/* One file by several names: everything but the name is shared. */
static void check_shared(struct suite *suite)
{
	struct stat one, other;
	char name[16];
	int fd;

	fd = must(suite, open("n0", O_RDWR | O_CREAT, 0644), "making a file");
	for (int i = 1; i <= 64; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		check_result(suite, link("n0", name), 0, "link number %d", i);
		fstat(fd, &one);
		check_equal(suite, (long long)one.st_nlink, i + 1, "links after link %d", i);
	}
	check_equal(suite, write(fd, "shared", 6), 6, "write");
	check_result(suite, chmod("n64", 0600), 0, "chmod by another name");
	for (int i = 0; i <= 64; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		check_result(suite, stat(name, &other), 0, "stat of link %d", i);
		check_equal(suite, other.st_size, 6, "size by link %d", i);
		check_equal(suite, other.st_mode & 07777, 0600, "mode by link %d", i);
		check_result(suite, unlink(name), 0, "unlink of link %d", i);
		fstat(fd, &one);
		check_equal(suite, (long long)one.st_nlink, 64 - i, "links after unlink %d", i);
	}
	close(fd);
	check_result(suite, linkat(AT_FDCWD, "x", AT_FDCWD, "y", 0x1), EINVAL,
		     "linkat of a bad flag");
}

void conform_link(struct suite *suite)
{
	for (int from = 0; from < SUBJECT_COUNT; from++)
		for (int to = 0; to < SUBJECT_COUNT; to++)
			if (to < SUBJECT_NAMES || from == SUBJECT_FILE)
				check_pair(suite, (enum subject)from, (enum subject)to);
	check_unnamed(suite);
	check_shared(suite);
}

/* The target is kept byte by byte, and readlink cuts it as told. */
static void check_targets(struct suite *suite)
{
	static const size_t lengths[] = {1, 7, 59, 60, 61, 254, 255, 256, 1023, 1024, 4000, 4095};
	static char target[PATH_MAX + 1], got[PATH_MAX + 1];
	struct stat status;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t length = lengths[i];

		for (size_t at = 0; at < length; at++)
			target[at] = (char)(1 + (at * 7 + length) % 255);
		target[length] = '\0';
		check_result(suite, symlink(target, "l"), 0, "symlink of %zu bytes", length);
		check_equal(suite, readlink("l", got, sizeof(got)), (long)length,
			    "readlink of %zu bytes", length);
		check_bytes(suite, got, target, length, "target of %zu bytes", length);
		check_result(suite, lstat("l", &status), 0, "lstat of a symlink");
		check_equal(suite, status.st_size, (long)length, "size of a symlink of %zu bytes",
			    length);
		check_equal(suite, status.st_mode, S_IFLNK | 0777, "mode of a symlink");
		check_equal(suite, readlink("l", got, length), (long)length,
			    "readlink into just enough");
		if (length > 1)
			check_equal(suite, readlink("l", got, length - 1), (long)length - 1,
				    "readlink into too little");
		check_result(suite, unlink("l"), 0, "unlink of a symlink");
	}
	memset(target, 't', PATH_MAX);
	target[PATH_MAX] = '\0';
	check_result(suite, symlink(target, "l"), ENAMETOOLONG, "symlink of 4096 bytes");
	check_result(suite, symlink("", "l"), ENOENT, "symlink of an empty target");
	check_result(suite, readlink("l", got, 0), EINVAL, "readlink into nothing");
}

/* path_resolution(7): at most 40 links on the way. */
static void check_chain(struct suite *suite)
{
	char name[16], next[16];
	int fd = must(suite, open("end", O_WRONLY | O_CREAT, 0644), "making a file");

	close(fd);
	for (int i = 0; i < 42; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		snprintf(next, sizeof(next), "c%d", i - 1);
		must(suite, symlink(i ? next : "end", name), "symlink");
	}
	check_result(suite, access("c0", F_OK), 0, "access through 1 symlink");
	check_result(suite, access("c39", F_OK), 0, "access through 40 symlinks");
	check_result(suite, access("c40", F_OK), ELOOP, "access through 41 symlinks");
	for (int i = 0; i < 42; i++) {
		snprintf(name, sizeof(name), "c%d", i);
		unlink(name);
	}
	must(suite, symlink("two", "one"), "symlink");
	must(suite, symlink("one", "two"), "symlink");
	check_result(suite, open("one", O_RDONLY), ELOOP, "open of two symlinks in a circle");
	check_result(suite, chdir("two"), ELOOP, "chdir to two symlinks in a circle");
	unlink("one");
	unlink("two");
	unlink("end");
}

/* Links are relative to where they lie, and follow what they name at that time. */
static void check_resolution(struct suite *suite)
{
	char text[16] = "";
	int fd;

	must(suite, mkdir("d", 0755), "mkdir");
	must(suite, mkdir("d/e", 0755), "mkdir");
	must(suite, symlink("../f", "d/up"), "symlink");
	must(suite, symlink("d/e", "short"), "symlink");
	check_result(suite, access("d/up", F_OK), ENOENT, "access through a dangling symlink");
	fd = open("d/up", O_WRONLY | O_CREAT, 0644);
	check_result(suite, fd, 0, "open O_CREAT through a dangling symlink");
	check_equal(suite, write(fd, "above", 5), 5, "write through a symlink");
	close(fd);
	check_result(suite, access("f", R_OK), 0, "access of what it made");
	fd = open("short/../up", O_RDONLY);
	check_result(suite, fd, 0, "open through a symlink and ..");
	check_equal(suite, read(fd, text, 5), 5, "read through a symlink");
	check_bytes(suite, text, "above", 5, "content through a symlink");
	close(fd);
	check_result(suite, unlink("d/up"), 0, "unlink of the symlink");
	check_result(suite, access("f", F_OK), 0, "its target stays");
	unlink("f");
	unlink("short");
	rmdir("d/e");
	rmdir("d");
}

void conform_symlink(struct suite *suite)
{
	check_targets(suite);
	check_chain(suite);
	check_resolution(suite);
}

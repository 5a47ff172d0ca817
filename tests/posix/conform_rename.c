/* SPDX-License-Identifier: Apache-2.0 */
/* rename(2) and renameat2(2): every kind of file onto every kind, with each flag. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/conform.h"
#include "tests/posix/subject.h"

/* What cannot be taken back comes last. */
static const unsigned int flag_sets[] = {RENAME_NOREPLACE, RENAME_EXCHANGE, 0};
static const char *const flag_names[] = {"RENAME_NOREPLACE onto", "RENAME_EXCHANGE with", "onto"};

static int expect_rename(enum subject from, enum subject to, unsigned int flags)
{
	bool from_directory = subject_type(from) == S_IFDIR;
	bool to_directory = subject_type(to) == S_IFDIR;

	if (subject_path_error(from))
		return subject_path_error(from);
	if (!subject_type(from) && to < SUBJECT_NAMES)
		return ENOENT;
	if (subject_path_error(to))
		return subject_path_error(to);
	if ((flags & RENAME_NOREPLACE) && subject_type(to))
		return EEXIST;
	if (flags & RENAME_EXCHANGE)
		return subject_type(to) ? 0 : ENOENT;
	if (!subject_type(to))
		return 0;
	if (from_directory != to_directory)
		return from_directory ? ENOTDIR : EISDIR;
	return to == SUBJECT_FULL_DIRECTORY ? ENOTEMPTY : 0;
}

/* Where the two names are now. */
struct both {
	struct subject_state from, to;
};

static struct both both_states(void)
{
	return (struct both){subject_state("from"), subject_state("to")};
}

/* One rename, and the way back where there is one: the pair is then as it was. */
static void check_rename(struct suite *suite, enum subject from, enum subject to, int set,
			 const struct both *before)
{
	char from_path[PATH_MAX + 2], to_path[PATH_MAX + 2], what[160];
	int wanted = expect_rename(from, to, flag_sets[set]);
	struct both after;

	snprintf(what, sizeof(what), "rename %s %s %s", subject_name(from), flag_names[set],
		 subject_name(to));
	check_result(suite,
		     renameat2(AT_FDCWD, subject_path(from, "from", from_path), AT_FDCWD,
			       subject_path(to, "to", to_path), flag_sets[set]),
		     wanted, "%s", what);
	after = both_states();
	if (wanted) {
		check_true(suite, subject_same(&before->from, &after.from), "%s keeps the one",
			   what);
		check_true(suite, subject_same(&before->to, &after.to), "%s keeps the other", what);
		return;
	}
	check_true(suite, subject_same(&before->from, &after.to), "%s moves it", what);
	if (flag_sets[set] == RENAME_EXCHANGE) {
		check_true(suite, subject_same(&before->to, &after.from), "%s moves the other",
			   what);
		check_result(suite, renameat2(AT_FDCWD, "from", AT_FDCWD, "to", RENAME_EXCHANGE), 0,
			     "%s, and back", what);
	} else {
		check_true(suite, !after.from.exists, "%s takes the old name away", what);
		if (flag_sets[set] == RENAME_NOREPLACE)
			check_result(suite, rename("to", "from"), 0, "%s, and back", what);
	}
}

static void check_pair(struct suite *suite, enum subject from, enum subject to)
{
	struct both before;

	subject_make(suite, from, "from");
	subject_make(suite, to, "to");
	before = both_states();
	for (int set = 0; set < 3; set++)
		check_rename(suite, from, to, set, &before);
	subject_remove(suite, from, "from");
	subject_remove(suite, to, "to");
}

static void check_every_pair(struct suite *suite)
{
	for (int from = 0; from < SUBJECT_COUNT; from++)
		for (int to = 0; to < SUBJECT_COUNT; to++)
			/* Which of two bad paths is seen first nobody promises. */
			if (to < SUBJECT_NAMES || from == SUBJECT_FILE)
				check_pair(suite, (enum subject)from, (enum subject)to);
}

static void make_file(struct suite *suite, const char *path)
{
	close(must(suite, open(path, O_WRONLY | O_CREAT, 0644), "making a file"));
}

/* Links of one file, a name onto itself, a directory into itself. */
static void check_itself(struct suite *suite)
{
	struct stat status;

	make_file(suite, "f");
	must(suite, link("f", "g"), "link");
	check_result(suite, rename("f", "f"), 0, "rename a file onto itself");
	check_result(suite, rename("f", "g"), 0, "rename a file onto its other link");
	check_result(suite, stat("f", &status), 0, "the name stays after that");
	check_equal(suite, status.st_nlink, 2, "and so do the links");
	check_result(suite, renameat2(AT_FDCWD, "f", AT_FDCWD, "f", RENAME_NOREPLACE), EEXIST,
		     "rename RENAME_NOREPLACE onto itself");
	unlink("f");
	unlink("g");
	must(suite, mkdir("d", 0755), "mkdir");
	must(suite, mkdir("d/e", 0755), "mkdir");
	check_result(suite, rename("d", "d"), 0, "rename a directory onto itself");
	check_result(suite, rename("d", "d/x"), EINVAL, "rename a directory into itself");
	check_result(suite, rename("d", "d/e/x"), EINVAL, "rename a directory below itself");
	check_result(suite, rename("d", "d/e"), EINVAL, "rename a directory onto its child");
	check_result(suite, rename("d/e", "d"), ENOTEMPTY, "rename a child onto its directory");
	check_result(suite, renameat2(AT_FDCWD, "d", AT_FDCWD, "d/e", RENAME_EXCHANGE), EINVAL,
		     "exchange a directory with its child");
	check_result(suite, renameat2(AT_FDCWD, "d/e", AT_FDCWD, "d", RENAME_EXCHANGE), EINVAL,
		     "exchange a child with its directory");
	rmdir("d/e");
	rmdir("d");
}

/* A directory that changes its parent: link counts, "..", what is open in it. */
static void check_between_directories(struct suite *suite)
{
	struct stat status, other;
	int fd;

	must(suite, mkdir("a", 0755), "mkdir");
	must(suite, mkdir("b", 0755), "mkdir");
	must(suite, mkdir("a/d", 0755), "mkdir");
	make_file(suite, "a/d/f");
	fd = must(suite, open("a/d/f", O_RDWR), "open");
	check_result(suite, rename("a/d", "b/d"), 0, "rename a directory to another one");
	stat("a", &status);
	check_equal(suite, status.st_nlink, 2, "links of the old parent");
	stat("b", &status);
	check_equal(suite, status.st_nlink, 3, "links of the new parent");
	stat("b/d/..", &other);
	check_equal(suite, (long long)other.st_ino, (long long)status.st_ino, "its ..");
	check_equal(suite, write(fd, "text", 4), 4, "write to a file in it that was open before");
	stat("b/d/f", &status);
	check_equal(suite, status.st_size, 4, "size by the new path");
	check_result(suite, access("a/d/f", F_OK), ENOENT, "access by the old path");
	make_file(suite, "a/f");
	check_result(suite, renameat2(AT_FDCWD, "a/f", AT_FDCWD, "b/d", RENAME_EXCHANGE), 0,
		     "exchange a file with a directory of another one");
	stat("a", &status);
	check_equal(suite, status.st_nlink, 3, "links of the parent that got the directory");
	stat("b", &status);
	check_equal(suite, status.st_nlink, 2, "links of the parent that got the file");
	check_result(suite, access("a/f/f", F_OK), 0, "access through the exchanged directory");
	close(fd);
	unlink("a/f/f");
	unlink("b/d");
	rmdir("a/f");
	rmdir("a");
	rmdir("b");
}

/* A file that is replaced while it is open lives on without a name. */
static void check_replaced(struct suite *suite)
{
	struct stat status;
	char text[8] = "";
	int fd;

	make_file(suite, "old");
	make_file(suite, "new");
	fd = must(suite, open("old", O_RDWR), "open");
	check_equal(suite, write(fd, "before", 6), 6, "write");
	check_result(suite, rename("new", "old"), 0, "rename onto an open file");
	check_result(suite, fstat(fd, &status), 0, "fstat of the replaced file");
	check_equal(suite, status.st_nlink, 0, "links of the replaced file");
	check_equal(suite, status.st_size, 6, "size of the replaced file");
	check_equal(suite, pread(fd, text, 6, 0), 6, "read from the replaced file");
	check_bytes(suite, text, "before", 6, "content of the replaced file");
	check_result(suite, ftruncate(fd, 3), 0, "ftruncate of the replaced file");
	stat("old", &status);
	check_equal(suite, status.st_size, 0, "size of the file that replaced it");
	close(fd);
	unlink("old");
}

static void check_flags(struct suite *suite)
{
	make_file(suite, "f");
	check_result(suite,
		     renameat2(AT_FDCWD, "f", AT_FDCWD, "g", RENAME_NOREPLACE | RENAME_EXCHANGE),
		     EINVAL, "renameat2 of both flags");
	check_result(suite, renameat2(AT_FDCWD, "f", AT_FDCWD, "g", 0x100), EINVAL,
		     "renameat2 of an unknown flag");
	check_result(suite, renameat2(-1, "f", AT_FDCWD, "g", 0), EBADF,
		     "renameat2 of a bad descriptor");
	check_result(suite, rename("f", check_bad_address()), EFAULT, "rename to a bad address");
	check_result(suite, rename("f", "g/"), ENOTDIR, "rename a file to a name and a slash");
	check_result(suite, renameat2(AT_FDCWD, "f", AT_FDCWD, "g", RENAME_WHITEOUT),
		     expect_unless(suite, DEVIATION_WHITEOUT, 0, EINVAL),
		     "renameat2 RENAME_WHITEOUT");
	unlink("f");
	unlink("g");
}

static void check_other_mount(struct suite *suite)
{
	char path[PATH_MAX];
	int fd;

	if (!suite->other) {
		check_skip(suite, 5, "no other mount to rename to (--other)");
		return;
	}
	snprintf(path, sizeof(path), "%s/conform.other.%d", suite->other, getpid());
	make_file(suite, "f");
	must(suite, mkdir("d", 0755), "mkdir");
	check_result(suite, rename("f", path), EXDEV, "rename a file to another mount");
	check_result(suite, rename("d", path), EXDEV, "rename a directory to another mount");
	check_result(suite, link("f", path), EXDEV, "link to another mount");
	fd = must(suite, open(path, O_WRONLY | O_CREAT | O_EXCL, 0600), path);
	close(fd);
	check_result(suite, rename(path, "g"), EXDEV, "rename from another mount");
	check_result(suite, renameat2(AT_FDCWD, path, AT_FDCWD, "f", RENAME_EXCHANGE), EXDEV,
		     "exchange with another mount");
	unlink(path);
	unlink("f");
	rmdir("d");
}

void conform_rename(struct suite *suite)
{
	check_every_pair(suite);
	check_itself(suite);
	check_between_directories(suite);
	check_replaced(suite);
	check_flags(suite);
	check_other_mount(suite);
}

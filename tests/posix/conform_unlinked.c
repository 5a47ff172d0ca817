/* SPDX-License-Identifier: Apache-2.0 */
/* Files and directories that are open or current when their name goes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/conform.h"

/* Everything that a descriptor can do works on without a name. */
static void check_file(struct suite *suite)
{
	int fd = must(suite, open("f", O_RDWR | O_CREAT, 0644), "making a file");
	static const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}};
	struct stat before, status;
	char got[16] = "";

	must(suite, write(fd, "before", 6), "write");
	must(suite, fstat(fd, &before), "fstat");
	check_result(suite, unlink("f"), 0, "unlink of an open file");
	check_result(suite, fstat(fd, &status), 0, "fstat");
	check_equal(suite, (long)status.st_nlink, 0, "links");
	check_equal(suite, (long)status.st_ino, (long)before.st_ino, "inode number");
	check_equal(suite, status.st_size, 6, "size");
	check_equal(suite, pwrite(fd, "after", 5, 6), 5, "write");
	check_equal(suite, pread(fd, got, 16, 0), 11, "read");
	check_bytes(suite, got, "beforeafter", 11, "content");
	check_result(suite, ftruncate(fd, 3), 0, "ftruncate");
	check_result(suite, fchmod(fd, 0600), 0, "fchmod");
	check_result(suite, futimens(fd, times), 0, "futimens");
	check_result(suite, fchown(fd, suite->user, suite->group_id), 0, "fchown");
	check_result(suite, fallocate(fd, 0, 0, 10000), 0, "fallocate");
	check_result(suite, fsync(fd), 0, "fsync");
	check_result(suite, fstat(fd, &status), 0, "fstat");
	check_equal(suite, status.st_size, 10000, "size after fallocate");
	check_equal(suite, status.st_mode & 07777, 0600, "mode after fchmod");
	check_equal(suite, lseek(fd, 0, SEEK_HOLE) >= 0, 1, "lseek SEEK_HOLE");
	check_result(suite, linkat(fd, "", AT_FDCWD, "g", AT_EMPTY_PATH), ENOENT,
		     "linkat AT_EMPTY_PATH of what had a name");
	/* Its name may be another file's by now. */
	int other = must(suite, open("f", O_RDWR | O_CREAT | O_EXCL, 0644), "making a file");

	check_equal(suite, pwrite(fd, "X", 1, 0), 1, "write to the old");
	check_result(suite, fstat(other, &status), 0, "fstat of the new");
	check_equal(suite, status.st_size, 0, "size of the new");
	check_true(suite, status.st_ino != before.st_ino, "the new has a number of its own");
	close(other);
	close(fd);
	unlink("f");
}

/* /proc/self/fd opens a file without a name again. */
static void check_reopen(struct suite *suite)
{
	int fd = must(suite, open("f", O_RDWR | O_CREAT, 0644), "making a file"), again;
	char path[32], got[8] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(suite, write(fd, "text", 4), "write");
	must(suite, unlink("f"), "unlink");
	again = open(path, O_RDWR);
	check_result(suite, again, 0, "open of a file without a name by /proc");
	check_equal(suite, read(again, got, 8), 4, "read");
	check_bytes(suite, got, "text", 4, "content");
	check_equal(suite, pwrite(again, "T", 1, 0), 1, "write");
	check_equal(suite, pread(fd, got, 1, 0), 1, "read of that");
	check_equal(suite, got[0], 'T', "what was read");
	close(again);
	close(fd);
}

/* In a directory that is gone nothing can be found nor made. */
static void check_directory(struct suite *suite)
{
	int here = must(suite, open(".", O_RDONLY | O_DIRECTORY), "open ."), fd;
	struct stat status;

	must(suite, mkdir("d", 0755), "mkdir");
	fd = must(suite, open("d", O_RDONLY | O_DIRECTORY), "open");
	must(suite, chdir("d"), "chdir");
	check_result(suite, rmdir("../d"), 0, "rmdir of the current directory");
	check_result(suite, fstat(fd, &status), 0, "fstat of a removed directory");
	check_equal(suite, (long)status.st_nlink, 0, "links of a removed directory");
	check_result(suite, stat(".", &status), 0, "stat of .");
	check_result(suite, access("x", F_OK), ENOENT, "access in a removed directory");
	check_result(suite, open("x", O_WRONLY | O_CREAT, 0644), ENOENT, "open O_CREAT there");
	check_result(suite, mkdir("x", 0755), ENOENT, "mkdir there");
	check_result(suite, symlink("y", "x"), ENOENT, "symlink there");
	check_result(suite, mkfifo("x", 0644), ENOENT, "mkfifo there");
	check_result(suite, openat(fd, "x", O_WRONLY | O_CREAT, 0644), ENOENT,
		     "openat O_CREAT there");
	check_result(suite, fchmod(fd, 0700), 0, "fchmod of a removed directory");
	check_result(suite, fsync(fd), 0, "fsync of a removed directory");
	check_result(suite, fchdir(here), 0, "fchdir back");
	check_result(suite, fchdir(fd), 0, "fchdir to a removed directory");
	check_result(suite, fchdir(here), 0, "fchdir back");
	close(fd);
	close(here);
}

/* Removed while it is the current directory of a moved tree. */
static void check_moved(struct suite *suite)
{
	int here = must(suite, open(".", O_RDONLY | O_DIRECTORY), "open .");
	char path[PATH_MAX];
	const char *last;

	must(suite, mkdir("a", 0755), "mkdir");
	must(suite, mkdir("a/b", 0755), "mkdir");
	must(suite, chdir("a/b"), "chdir");
	must(suite, renameat(here, "a", here, "c"), "rename");
	check_true(suite, getcwd(path, sizeof(path)) != NULL, "getcwd after a rename above");
	last = strrchr(path, '/');
	check_true(suite, last && last - path > 2 && strcmp(last - 2, "/c/b") == 0,
		   "getcwd tells the new name");
	close(must(suite, open("f", O_WRONLY | O_CREAT, 0644), "making a file"));
	must(suite, fchdir(here), "fchdir");
	check_result(suite, access("c/b/f", F_OK), 0, "access of what was made there");
	unlink("c/b/f");
	rmdir("c/b");
	rmdir("c");
	close(here);
}

void conform_unlinked(struct suite *suite)
{
	check_file(suite);
	check_reopen(suite);
	check_directory(suite);
	check_moved(suite);
}

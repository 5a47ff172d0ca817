/* SPDX-License-Identifier: Apache-2.0 */
/* Access by mode: for the owner, and, where root can become them, for the group and others. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/posix/conform.h"

#define STRANGER 4321U

/* The bits of @mode for owner (6), group (3) or others (0) stand alone: all others are turned. */
static mode_t only_for(int shift, mode_t bits)
{
	return (mode_t)((bits << shift) | ((7U ^ bits) * 0111U & ~(7U << shift) & 0777U));
}

static int expect_bits(mode_t bits, mode_t needed)
{
	return (bits & needed) == needed ? 0 : EACCES;
}

/* A user's rights: @bits of the mode, and on a share what the owner's bits leave of them. */
struct rights {
	mode_t bits;
	mode_t owner_bits;
};

static int expect_rights(struct suite *suite, struct rights rights, mode_t needed)
{
	int wanted = expect_bits(rights.bits, needed);

	if (!wanted && suite->owner_rights && (rights.owner_bits & needed) != needed)
		return expect_unless(suite, DEVIATION_RIGHTS, 0, EACCES);
	return wanted;
}

static void check_open(struct suite *suite, const char *path, struct rights rights, int flags,
		       mode_t needed, const char *what)
{
	int fd = open(path, flags, 0600);

	check_result(suite, fd, expect_rights(suite, rights, needed), "open %s %s", path, what);
	if (fd >= 0)
		close(fd);
}

/* What the mode of a file lets a user do. */
static void check_file(struct suite *suite, const char *path, struct rights rights)
{
	char byte;

	check_open(suite, path, rights, O_RDONLY, 4, "O_RDONLY");
	check_open(suite, path, rights, O_WRONLY, 2, "O_WRONLY");
	check_open(suite, path, rights, O_WRONLY | O_APPEND, 2, "O_WRONLY|O_APPEND");
	check_open(suite, path, rights, O_RDWR, 6, "O_RDWR");
	check_open(suite, path, rights, O_RDONLY | O_TRUNC, 6, "O_RDONLY|O_TRUNC");
	check_open(suite, path, rights, O_WRONLY | O_CREAT, 2, "O_WRONLY|O_CREAT");
	check_open(suite, path, rights, O_PATH, 0, "O_PATH");
	check_result(suite, truncate(path, 1), expect_rights(suite, rights, 2), "truncate %s",
		     path);
	for (mode_t wanted = 0; wanted < 8; wanted++) {
		check_result(suite, access(path, (int)wanted), expect_bits(rights.bits, wanted),
			     "access %s %u", path, wanted);
		check_result(suite, faccessat(AT_FDCWD, path, (int)wanted, AT_EACCESS),
			     expect_bits(rights.bits, wanted), "faccessat AT_EACCESS %s %u", path,
			     wanted);
	}
	check_result(suite, readlink(path, &byte, 1), EINVAL, "readlink %s", path);
}

static void make_file(struct suite *suite, const char *path, mode_t mode)
{
	int fd = must(suite, open(path, O_WRONLY | O_CREAT, 0600), "making a file");

	must(suite, fchmod(fd, mode), "fchmod");
	close(fd);
}

void conform_permission(struct suite *suite)
{
	char path[16];

	if (suite->privileged) {
		check_skip(suite, 1, "root is above modes; the group other-users checks them");
		return;
	}
	for (mode_t bits = 0; bits < 8; bits++) {
		snprintf(path, sizeof(path), "owner%u", bits);
		make_file(suite, path, only_for(6, bits));
		check_file(suite, path, (struct rights){bits, bits});
		/* The owner may change all that is no content. */
		check_result(suite, utimensat(AT_FDCWD, path, NULL, 0), 0, "utimensat now %s",
			     path);
		check_result(suite, chmod(path, 0600), 0, "chmod %s", path);
		check_result(suite, unlink(path), 0, "unlink %s", path);
	}
	/* An open descriptor keeps its access. */
	make_file(suite, "open", 0600);
	int fd = must(suite, open("open", O_RDWR), "open");

	check_result(suite, fchmod(fd, 0), 0, "fchmod 0");
	check_equal(suite, write(fd, "abc", 3), 3, "write after fchmod 0");
	check_result(suite, ftruncate(fd, 2), 0, "ftruncate after fchmod 0");
	check_result(suite, fallocate(fd, 0, 0, 8), 0, "fallocate after fchmod 0");
	check_result(suite, fsync(fd), 0, "fsync after fchmod 0");
	check_result(suite, open("open", O_RDONLY), EACCES, "open after fchmod 0");
	close(fd);
	unlink("open");
}

/* What the mode of the directory d lets a user do in it. It holds "f", "e" (a directory), and
 * beside it lie "m" (a file) and "n" (a directory). What could be done is undone. */
static void check_directory(struct suite *suite, mode_t bits)
{
	int fd;

	fd = open("d", O_RDONLY | O_DIRECTORY);
	check_result(suite, fd, expect_bits(bits, 4), "open a directory of %o", bits);
	if (fd >= 0)
		close(fd);
	check_result(suite, access("d/f", F_OK), expect_bits(bits, 1), "access in %o", bits);
	check_result(suite, access("d/none", F_OK), bits & 1 ? ENOENT : EACCES,
		     "access of nothing in %o", bits);
	check_result(suite, access("d/..", F_OK), expect_bits(bits, 1), "access of .. in %o", bits);
	fd = open("d/f", O_RDONLY);
	check_result(suite, fd, expect_bits(bits, 1), "open in %o", bits);
	if (fd >= 0)
		close(fd);
	check_result(suite, open("d/f", O_WRONLY | O_CREAT | O_EXCL, 0600),
		     bits & 1 ? EEXIST : EACCES, "open O_CREAT|O_EXCL of what exists in %o", bits);
	fd = open("d/new", O_WRONLY | O_CREAT, 0600);
	check_result(suite, fd, expect_bits(bits, 3), "open O_CREAT in %o", bits);
	if (fd >= 0)
		close(fd);
	check_result(suite, unlink("d/new"),
		     (bits & 3) == 3 ? 0
		     : bits & 1      ? ENOENT
				     : EACCES,
		     "unlink of a new file in %o", bits);
	check_result(suite, mkdir("d/new", 0700), expect_bits(bits, 3), "mkdir in %o", bits);
	check_result(suite, rmdir("d/new"),
		     (bits & 3) == 3 ? 0
		     : bits & 1      ? ENOENT
				     : EACCES,
		     "rmdir of a new directory in %o", bits);
	check_result(suite, symlink("x", "d/new"), expect_bits(bits, 3), "symlink in %o", bits);
	unlink("d/new");
	check_result(suite, mkfifo("d/new", 0600), expect_bits(bits, 3), "mkfifo in %o", bits);
	unlink("d/new");
	fd = open("d", O_TMPFILE | O_RDWR, 0600);
	check_result(suite, fd, expect_bits(bits, 3), "open O_TMPFILE in %o", bits);
	if (fd >= 0)
		close(fd);
	fd = open("d", O_PATH | O_DIRECTORY);
	check_result(suite, fchdir(fd), expect_bits(bits, 1), "fchdir to %o", bits);
	if (bits & 1)
		must(suite, chdir(".."), "chdir ..");
	close(fd);
}

/* Renames and links need the right to write in both directories. */
static void check_moves(struct suite *suite, mode_t bits)
{
	check_result(suite, link("m", "d/new"), expect_bits(bits, 3), "link into %o", bits);
	unlink("d/new");
	check_result(suite, link("d/f", "out"), expect_bits(bits, 1), "link out of %o", bits);
	unlink("out");
	check_result(suite, rename("m", "d/new"), expect_bits(bits, 3), "rename into %o", bits);
	rename("d/new", "m");
	check_result(suite, rename("d/f", "out"), expect_bits(bits, 3), "rename out of %o", bits);
	rename("out", "d/f");
	check_result(suite, rename("d/f", "d/g"), expect_bits(bits, 3), "rename within %o", bits);
	rename("d/g", "d/f");
	check_result(suite, rename("n", "d/new"), expect_bits(bits, 3),
		     "rename a directory into %o", bits);
	rename("d/new", "n");
	check_result(suite, renameat2(AT_FDCWD, "m", AT_FDCWD, "d/f", RENAME_EXCHANGE),
		     expect_bits(bits, 3), "exchange with a file in %o", bits);
	if ((bits & 3) == 3)
		renameat2(AT_FDCWD, "m", AT_FDCWD, "d/f", RENAME_EXCHANGE);
	check_result(suite, unlink("d/f"), expect_bits(bits, 3), "unlink in %o", bits);
	check_result(suite, rmdir("d/e"), expect_bits(bits, 3), "rmdir in %o", bits);
}

static void make_directory(struct suite *suite, mode_t mode)
{
	must(suite, mkdir("d", 0755), "mkdir");
	make_file(suite, "d/f", 0666);
	must(suite, mkdir("d/e", 0755), "mkdir");
	make_file(suite, "m", 0666);
	must(suite, mkdir("n", 0755), "mkdir");
	must(suite, chmod("d", mode), "chmod");
}

static void remove_directory(struct suite *suite)
{
	must(suite, chmod("d", 0700), "chmod");
	unlink("d/f");
	rmdir("d/e");
	unlink("m");
	rmdir("n");
	must(suite, rmdir("d"), "rmdir");
}

void conform_directory_permission(struct suite *suite)
{
	if (suite->privileged) {
		check_skip(suite, 1, "root is above modes; the group other-users checks them");
		return;
	}
	for (mode_t bits = 0; bits < 8; bits++) {
		make_directory(suite, only_for(6, bits));
		check_directory(suite, bits);
		check_moves(suite, bits);
		remove_directory(suite);
	}
}

static void become(struct suite *suite, gid_t group)
{
	must(suite, setgroups(0, NULL), "setgroups");
	must(suite, setresgid(group, group, group), "setresgid");
	must(suite, setresuid(STRANGER, STRANGER, STRANGER), "setresuid");
}

/* What a stranger must not do to a file of root, however much its mode allows. */
static void as_stranger(struct suite *suite)
{
	static const struct timespec past[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	char path[16];

	become(suite, STRANGER);
	for (mode_t bits = 0; bits < 8; bits++) {
		snprintf(path, sizeof(path), "other%u", bits);
		check_file(suite, path, (struct rights){bits, 7 ^ bits});
		check_result(suite, chmod(path, 0777), EPERM, "chmod of another's file");
		check_result(suite, chown(path, STRANGER, STRANGER), EPERM,
			     "chown of another's file");
		check_result(suite, utimensat(AT_FDCWD, path, past, 0), EPERM,
			     "utimensat of another's file");
		check_result(suite, utimensat(AT_FDCWD, path, NULL, 0), expect_bits(bits, 2),
			     "utimensat now of another's file");
	}
	check_result(suite, unlink("sticky/f"), EPERM, "unlink of another's file in a sticky one");
	check_result(suite, rename("sticky/f", "sticky/g"), EPERM, "rename of such a file");
	check_result(suite, rmdir("sticky/d"), EPERM, "rmdir in a sticky directory");
	check_result(suite, unlink("plain/f"), 0, "unlink of another's file in 0777");
	check_result(suite, rmdir("plain/d"), 0, "rmdir of another's directory in 0777");
}

static void as_member(struct suite *suite)
{
	char path[16];

	become(suite, suite->group_id);
	for (mode_t bits = 0; bits < 8; bits++) {
		snprintf(path, sizeof(path), "group%u", bits);
		check_file(suite, path, (struct rights){bits, 7 ^ bits});
	}
}

void conform_other_users(struct suite *suite)
{
	static const char *const parents[] = {"sticky", "plain"};
	char path[24];

	if (!suite->privileged) {
		check_skip(suite, 1, "only root can become another user");
		return;
	}
	must(suite, chmod(".", 0755), "chmod");
	for (mode_t bits = 0; bits < 8; bits++) {
		snprintf(path, sizeof(path), "other%u", bits);
		make_file(suite, path, only_for(0, bits));
		snprintf(path, sizeof(path), "group%u", bits);
		make_file(suite, path, only_for(3, bits));
	}
	for (int i = 0; i < 2; i++) {
		must(suite, mkdir(parents[i], 0755), "mkdir");
		must(suite, chmod(parents[i], i == 0 ? 01777 : 0777), "chmod");
		snprintf(path, sizeof(path), "%s/f", parents[i]);
		make_file(suite, path, 0666);
		snprintf(path, sizeof(path), "%s/d", parents[i]);
		must(suite, mkdir(path, 0777), "mkdir");
	}
	check_in_process(suite, "a stranger", as_stranger);
	check_in_process(suite, "a member of the group", as_member);
	/* And root itself is above all but the x bit of files. */
	make_file(suite, "closed", 0);
	for (mode_t wanted = 0; wanted < 8; wanted++)
		check_result(suite, access("closed", (int)wanted), wanted & 1 ? EACCES : 0,
			     "access %u of mode 0 as root", wanted);
	int fd = open("closed", O_RDWR);

	check_result(suite, fd,
		     suite->owner_rights ? expect_unless(suite, DEVIATION_RIGHTS, 0, EACCES) : 0,
		     "open of mode 0 as root");
	close(fd);
}

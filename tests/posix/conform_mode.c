/* SPDX-License-Identifier: Apache-2.0 */
/* Modes: set, kept, given at creation, masked. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/conform.h"

#define SET_ID_BITS (S_ISUID | S_ISGID)

/* The bits that stay of @mode. */
static mode_t kept(struct suite *suite, mode_t mode)
{
	return mode & SET_ID_BITS ? (mode_t)expect_unless(suite, DEVIATION_SET_ID, (int)mode,
							  (int)(mode & ~(mode_t)SET_ID_BITS))
				  : mode;
}

static mode_t mode_of(const char *path)
{
	struct stat status;

	return lstat(path, &status) ? 0 : status.st_mode & 07777;
}

/* Each of the 512 permissions by chmod on a file and a directory, by fchmod on a file. */
static void check_permission_bits(struct suite *suite)
{
	struct stat status;
	int fd = must(suite, open("f", O_RDWR | O_CREAT, 0644), "making a file");

	must(suite, mkdir("d", 0755), "mkdir");
	for (mode_t mode = 0; mode < 01000; mode++) {
		check_result(suite, chmod("f", mode), 0, "chmod %03o of a file", mode);
		check_equal(suite, mode_of("f"), mode, "mode after chmod %03o of a file", mode);
		check_result(suite, fchmod(fd, mode ^ 0777), 0, "fchmod %03o", mode ^ 0777);
		fstat(fd, &status);
		check_equal(suite, status.st_mode, S_IFREG | (mode ^ 0777), "mode after fchmod");
		if (mode % 7)
			continue;
		check_result(suite, chmod("d", mode), 0, "chmod %03o of a directory", mode);
		check_equal(suite, mode_of("d"), mode, "mode after chmod %03o of a directory",
			    mode);
	}
	close(fd);
	unlink("f");
	rmdir("d");
}

/* Set-id and sticky bits, on each type that has a mode. */
static void check_special_bits(struct suite *suite)
{
	static const mode_t permissions[] = {0, 0111, 0444, 0644, 0700, 0755, 0777};
	int fd = must(suite, open("f", O_RDWR | O_CREAT, 0644), "making a file");

	close(fd);
	must(suite, mkdir("d", 0755), "mkdir");
	must(suite, mkfifo("p", 0644), "mkfifo");
	must(suite, mknod("s", S_IFSOCK | 0644, 0), "mknod");
	for (mode_t high = 0; high < 8; high++)
		for (size_t i = 0; i < sizeof(permissions) / sizeof(permissions[0]); i++) {
			static const char *const names[] = {"f", "d", "p", "s"};
			mode_t mode = high << 9 | permissions[i];

			for (int at = 0; at < 4; at++) {
				check_result(suite, chmod(names[at], mode), 0, "chmod %04o of %s",
					     mode, names[at]);
				check_equal(suite, mode_of(names[at]), kept(suite, mode),
					    "mode after chmod %04o of %s", mode, names[at]);
			}
		}
	unlink("f");
	unlink("p");
	unlink("s");
	rmdir("d");
}

/* What a write, a truncation and a chown take away. */
static void check_lost_bits(struct suite *suite)
{
	int fd = must(suite, open("f", O_RDWR | O_CREAT, 0755), "making a file");

	must(suite, fchmod(fd, 06755), "fchmod");
	check_result(suite, chown("f", suite->user, suite->group_id), 0, "chown to the owner");
	check_equal(suite, mode_of("f"), 0755, "mode of a set-id file after chown");
	must(suite, fchmod(fd, 01755), "fchmod");
	check_equal(suite, write(fd, "x", 1), 1, "write");
	check_equal(suite, mode_of("f"), 01755, "mode of a sticky file after write");
	check_result(suite, ftruncate(fd, 0), 0, "ftruncate");
	check_equal(suite, mode_of("f"), 01755, "mode of a sticky file after ftruncate");
	if (!suite->privileged) {
		must(suite, fchmod(fd, 04755), "fchmod");
		check_equal(suite, write(fd, "x", 1), 1, "write");
		check_equal(suite, mode_of("f"), 0755, "mode of a set-id file after write");
		must(suite, fchmod(fd, 04755), "fchmod");
		check_result(suite, truncate("f", 0), 0, "truncate");
		check_equal(suite, mode_of("f"), 0755, "mode of a set-id file after truncate");
	}
	close(fd);
	unlink("f");
}

void conform_mode(struct suite *suite)
{
	check_permission_bits(suite);
	check_special_bits(suite);
	check_lost_bits(suite);
}

static void check_created(struct suite *suite, mode_t mask, mode_t mode)
{
	mode_t plain = mode & ~mask;
	int fd;

	umask(mask);
	fd = open("f", O_WRONLY | O_CREAT | O_EXCL, mode);
	check_result(suite, fd, 0, "open O_CREAT %04o under umask %03o", mode, mask);
	close(fd);
	check_equal(suite, mode_of("f"), kept(suite, plain),
		    "mode of a file made %04o under umask %03o", mode, mask);
	unlink("f");
	check_result(suite, mkdir("d", mode), 0, "mkdir %04o under umask %03o", mode, mask);
	/* mkdir(2): of the upper bits only the sticky one counts. */
	check_equal(suite, mode_of("d"), plain & 01777,
		    "mode of a directory made %04o under umask %03o", mode, mask);
	rmdir("d");
	check_result(suite, mkfifo("p", mode), 0, "mkfifo %04o under umask %03o", mode, mask);
	check_equal(suite, mode_of("p"), kept(suite, plain),
		    "mode of a FIFO made %04o under umask %03o", mode, mask);
	unlink("p");
	fd = open(".", O_TMPFILE | O_WRONLY, mode);
	check_result(suite, fd, 0, "open O_TMPFILE %04o under umask %03o", mode, mask);
	if (fd >= 0) {
		struct stat status;

		fstat(fd, &status);
		check_equal(suite, status.st_mode & 07777, kept(suite, plain),
			    "mode of an unnamed file made %04o under umask %03o", mode, mask);
		close(fd);
	}
}

void conform_umask(struct suite *suite)
{
	static const mode_t masks[] = {0, 002, 022, 027, 070, 077, 0111, 0177, 0277, 0700, 0777};
	static const mode_t modes[] = {0, 0400, 0600, 0644, 0666, 0755, 0777, 01777, 02755, 04755};

	for (size_t mask = 0; mask < sizeof(masks) / sizeof(masks[0]); mask++)
		for (size_t mode = 0; mode < sizeof(modes) / sizeof(modes[0]); mode++)
			check_created(suite, masks[mask], modes[mode]);
	umask(0777);
	check_result(suite, symlink("x", "l"), 0, "symlink under umask 777");
	check_equal(suite, mode_of("l"), 0777, "mode of a symlink under umask 777");
	unlink("l");
	umask(022);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The file system as a whole: statfs, sync, statx, inode numbers, flags of files. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tests/posix/conform.h"

static void check_statfs(struct suite *suite)
{
	struct statvfs status, again;
	int fd = must(suite, open("f", O_RDWR | O_CREAT, 0644), "making a file");

	check_result(suite, statvfs(".", &status), 0, "statvfs");
	check_result(suite, fstatvfs(fd, &again), 0, "fstatvfs");
	check_equal(suite, (long)status.f_bsize, (long)again.f_bsize, "f_bsize of both");
	check_equal(suite, (long)status.f_blocks, (long)again.f_blocks, "f_blocks of both");
	check_equal(suite, (long)status.f_namemax, 255, "f_namemax");
	check_true(suite, status.f_bsize >= 512, "f_bsize is a block");
	check_true(suite, status.f_frsize >= 512, "f_frsize is a block");
	check_true(suite, status.f_blocks > 0, "f_blocks counts");
	check_true(suite, status.f_bfree <= status.f_blocks, "f_bfree is a part of f_blocks");
	check_true(suite, status.f_bavail <= status.f_bfree, "f_bavail is a part of f_bfree");
	check_true(suite, status.f_ffree <= status.f_files, "f_ffree is a part of f_files");
	check_result(suite, fsync(fd), 0, "fsync");
	check_result(suite, fdatasync(fd), 0, "fdatasync");
	check_result(suite, syncfs(fd), 0, "syncfs");
	close(fd);
	fd = must(suite, open(".", O_RDONLY | O_DIRECTORY), "open .");
	check_result(suite, fsync(fd), 0, "fsync of a directory");
	check_result(suite, fdatasync(fd), 0, "fdatasync of a directory");
	close(fd);
	fd = must(suite, open("g", O_RDWR | O_CREAT | O_SYNC, 0644), "open O_SYNC");
	check_equal(suite, write(fd, "x", 1), 1, "write O_SYNC");
	close(fd);
	fd = must(suite, open("g", O_RDWR | O_DSYNC), "open O_DSYNC");
	check_equal(suite, write(fd, "x", 1), 1, "write O_DSYNC");
	close(fd);
}

static void check_statx(struct suite *suite)
{
	static const char *const names[] = {"f", "d", "l", "p"};
	struct statx extended;
	struct stat status;

	must(suite, mkdir("d", 0755), "mkdir");
	must(suite, symlink("f", "l"), "symlink");
	must(suite, mkfifo("p", 0644), "mkfifo");
	for (int i = 0; i < 4; i++) {
		const char *name = names[i];

		check_result(suite,
			     statx(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW,
				   STATX_BASIC_STATS | STATX_BTIME, &extended),
			     0, "statx %s", name);
		must(suite, lstat(name, &status), "lstat");
		check_equal(suite, extended.stx_mask & STATX_BASIC_STATS, STATX_BASIC_STATS,
			    "stx_mask of %s", name);
		check_equal(suite, extended.stx_mode, status.st_mode, "stx_mode of %s", name);
		check_equal(suite, extended.stx_nlink, (long)status.st_nlink, "stx_nlink of %s",
			    name);
		check_equal(suite, extended.stx_uid, status.st_uid, "stx_uid of %s", name);
		check_equal(suite, extended.stx_gid, status.st_gid, "stx_gid of %s", name);
		check_equal(suite, (long)extended.stx_ino, (long)status.st_ino, "stx_ino of %s",
			    name);
		check_equal(suite, (long)extended.stx_size, status.st_size, "stx_size of %s", name);
		check_equal(suite, (long)extended.stx_blocks, status.st_blocks, "stx_blocks of %s",
			    name);
		check_true(suite, extended.stx_mask & STATX_BTIME, "statx %s has a birth time",
			   name);
		check_true(suite,
			   extended.stx_btime.tv_sec > status.st_ctim.tv_sec - 3600 &&
				   extended.stx_btime.tv_sec <= status.st_ctim.tv_sec,
			   "the birth time of %s is not long ago", name);
	}
	check_result(suite, statx(AT_FDCWD, "", AT_EMPTY_PATH, STATX_ALL, &extended), 0,
		     "statx AT_EMPTY_PATH of the current directory");
	check_equal(suite, extended.stx_mode & S_IFMT, S_IFDIR, "its type");
	check_result(suite, statx(AT_FDCWD, "f", 0x40000000, 0, &extended), EINVAL,
		     "statx of a bad flag");
}

/* One number for a file as long as it lives, and no two files of one number. */
static void check_numbers(struct suite *suite)
{
	ino_t numbers[64];
	int twice = 0;
	struct stat status, parent;
	char name[16];

	must(suite, stat(".", &parent), "stat");
	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "i%d", i);
		int fd = must(suite, open(name, O_WRONLY | O_CREAT, 0644), "making a file");

		fstat(fd, &status);
		close(fd);
		numbers[i] = status.st_ino;
		check_equal(suite, (long)status.st_dev, (long)parent.st_dev, "st_dev of %s", name);
		for (int j = 0; j < i; j++)
			twice += numbers[j] == numbers[i];
	}
	check_equal(suite, twice, 0, "numbers that two files have");
	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "i%d", i);
		must(suite, stat(name, &status), "stat");
		check_equal(suite, (long)status.st_ino, (long)numbers[i], "the number of %s later",
			    name);
		check_result(suite, unlink(name), 0, "unlink of %s", name);
	}
	check_result(suite, fstatat(AT_FDCWD, "d/..", &status, 0), 0, "stat of d/..");
	check_equal(suite, (long)status.st_ino, (long)parent.st_ino, "the number of d/..");
}

static void check_flags(struct suite *suite)
{
	int fd = must(suite, open("f", O_RDONLY), "open"), flags = 0;
	long result = ioctl(fd, FS_IOC_GETFLAGS, &flags);

	/* tmpfs has them since Linux 6.0. */
	check_result(suite, result, expect_unless(suite, DEVIATION_FLAGS, 0, ENOTTY),
		     "FS_IOC_GETFLAGS");
	close(fd);
}

/* Whether the next event is @mask of @name. */
static void check_event(struct suite *suite, int fd, uint32_t mask, const char *name)
{
	static char buffer[4096] __attribute__((aligned(8)));
	static size_t begin, end;
	const struct inotify_event *event;

	if (begin == end) {
		struct pollfd waiting = {.fd = fd, .events = POLLIN};

		if (!check_equal(suite, poll(&waiting, 1, 5000), 1, "an event for %s", name))
			return;
		begin = 0;
		end = (size_t)must(suite, read(fd, buffer, sizeof(buffer)), "read of inotify");
	}
	event = (const struct inotify_event *)(const void *)(buffer + begin);
	check_equal(suite, event->mask, mask, "the event of %s", name);
	check_true(suite, strcmp(event->len ? event->name : "", name) == 0,
		   "the event's name is %s", name);
	begin += sizeof(*event) + event->len;
}

/* What happens within the guest is told there: each event once. */
static void check_inotify(struct suite *suite)
{
	int fd = must(suite, inotify_init1(IN_CLOEXEC), "inotify_init1"), file;

	check_result(suite,
		     inotify_add_watch(fd, "d",
				       IN_CREATE | IN_DELETE | IN_MOVE | IN_MODIFY |
					       IN_CLOSE_WRITE | IN_ATTRIB),
		     0, "inotify_add_watch");
	file = must(suite, open("d/a", O_WRONLY | O_CREAT, 0644), "making a file");
	check_event(suite, fd, IN_CREATE, "a");
	check_equal(suite, write(file, "x", 1), 1, "write");
	check_event(suite, fd, IN_MODIFY, "a");
	close(file);
	check_event(suite, fd, IN_CLOSE_WRITE, "a");
	must(suite, chmod("d/a", 0600), "chmod");
	check_event(suite, fd, IN_ATTRIB, "a");
	must(suite, rename("d/a", "d/b"), "rename");
	check_event(suite, fd, IN_MOVED_FROM, "a");
	check_event(suite, fd, IN_MOVED_TO, "b");
	must(suite, unlink("d/b"), "unlink");
	check_event(suite, fd, IN_DELETE, "b");
	must(suite, mkdir("d/e", 0755), "mkdir");
	check_event(suite, fd, IN_CREATE | IN_ISDIR, "e");
	must(suite, rmdir("d/e"), "rmdir");
	check_event(suite, fd, IN_DELETE | IN_ISDIR, "e");
	close(fd);
}

void conform_whole(struct suite *suite)
{
	check_statfs(suite);
	check_statx(suite);
	check_numbers(suite);
	check_flags(suite);
	check_inotify(suite);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which operation marks which time, and utimensat(2). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "tests/posix/conform.h"

/* The coarse clock of file times steps at each tick; at 100 Hz that is 10 ms. */
#define TICK_NANOSECONDS 12000000

/* What an operation marks: times of the file "d/f" and of its directory "d". */
enum marks {
	FILE_CHANGED = 1,   /* st_ctime of the file */
	FILE_MODIFIED = 2,  /* st_mtime of the file, and with it st_ctime */
	PARENT_MODIFIED = 4 /* st_mtime and st_ctime of the directory */
};

struct marking {
	const char *name;
	long (*run)(int fd);
	unsigned int marks;
};

static long run_nothing(int fd)
{
	return fd < 0 ? -1 : 0;
}

static long run_open(int fd)
{
	(void)fd;
	return close(open("d/f", O_RDWR));
}

static long run_read(int fd)
{
	char byte;

	return pread(fd, &byte, 1, 0);
}

static long run_write(int fd)
{
	return pwrite(fd, "w", 1, 0);
}

static long run_write_nothing(int fd)
{
	return pwrite(fd, "w", 0, 0);
}

static long run_extend(int fd)
{
	return pwrite(fd, "w", 1, 9000);
}

static long run_ftruncate_shorter(int fd)
{
	return ftruncate(fd, 10);
}

static long run_ftruncate_longer(int fd)
{
	return ftruncate(fd, 20000);
}

static long run_ftruncate_same(int fd)
{
	struct stat status;

	return fstat(fd, &status) || ftruncate(fd, status.st_size) ? -1 : 0;
}

static long run_truncate(int fd)
{
	(void)fd;
	return truncate("d/f", 5);
}

static long run_open_truncate(int fd)
{
	(void)fd;
	return close(open("d/f", O_WRONLY | O_TRUNC));
}

static long run_fallocate(int fd)
{
	return fallocate(fd, 0, 0, 40000);
}

static long run_punch(int fd)
{
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096);
}

static long run_fsync(int fd)
{
	return fsync(fd);
}

static long run_map(int fd)
{
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return -1;
	/* A write fault at once: what a read fault maps first, tmpfs does not notice. */
	*(volatile char *)map = 'm';
	return msync(map, 4096, MS_SYNC) | munmap(map, 4096);
}

static long run_chmod(int fd)
{
	(void)fd;
	return chmod("d/f", 0600);
}

static long run_fchmod(int fd)
{
	return fchmod(fd, 0644);
}

static long run_chown(int fd)
{
	struct stat status;

	return fstat(fd, &status) || fchown(fd, status.st_uid, status.st_gid) ? -1 : 0;
}

static long run_setxattr(int fd)
{
	return fsetxattr(fd, "user.a", "b", 1, 0);
}

static long run_removexattr(int fd)
{
	return fremovexattr(fd, "user.a");
}

static long run_link(int fd)
{
	(void)fd;
	return link("d/f", "d/g");
}

static long run_unlink(int fd)
{
	(void)fd;
	return unlink("d/g");
}

static long run_rename_away(int fd)
{
	(void)fd;
	return rename("d/f", "d/h");
}

static long run_rename_back(int fd)
{
	(void)fd;
	return rename("d/h", "d/f");
}

static long run_create(int fd)
{
	(void)fd;
	return close(open("d/n", O_WRONLY | O_CREAT | O_EXCL, 0644));
}

static long run_create_existing(int fd)
{
	(void)fd;
	return close(open("d/n", O_WRONLY | O_CREAT, 0644));
}

static long run_remove(int fd)
{
	(void)fd;
	return unlink("d/n");
}

static long run_mkdir(int fd)
{
	(void)fd;
	return mkdir("d/e", 0755);
}

static long run_rmdir(int fd)
{
	(void)fd;
	return rmdir("d/e");
}

static long run_symlink(int fd)
{
	(void)fd;
	return symlink("f", "d/n");
}

static long run_mkfifo(int fd)
{
	(void)fd;
	return mkfifo("d/n", 0644);
}

static long run_failing_mkdir(int fd)
{
	(void)fd;
	return mkdir("d/f", 0755) == -1 && errno == EEXIST ? 0 : -1;
}

static const struct marking markings[] = {
	{"nothing", run_nothing, 0},
	{"open", run_open, 0},
	{"read", run_read, 0},
	{"write", run_write, FILE_MODIFIED},
	{"write of nothing", run_write_nothing, 0},
	{"write past the end", run_extend, FILE_MODIFIED},
	{"ftruncate shorter", run_ftruncate_shorter, FILE_MODIFIED},
	{"ftruncate longer", run_ftruncate_longer, FILE_MODIFIED},
	{"ftruncate to the same size", run_ftruncate_same, FILE_MODIFIED},
	{"truncate", run_truncate, FILE_MODIFIED},
	{"open O_TRUNC", run_open_truncate, FILE_MODIFIED},
	{"fallocate", run_fallocate, FILE_CHANGED},
	{"fallocate of a hole", run_punch, FILE_MODIFIED},
	{"fsync", run_fsync, 0},
	{"write through a mapping", run_map, FILE_MODIFIED},
	{"chmod", run_chmod, FILE_CHANGED},
	{"fchmod", run_fchmod, FILE_CHANGED},
	{"fchown", run_chown, FILE_CHANGED},
	{"fsetxattr", run_setxattr, FILE_CHANGED},
	{"fremovexattr", run_removexattr, FILE_CHANGED},
	{"link", run_link, FILE_CHANGED | PARENT_MODIFIED},
	{"unlink of one link", run_unlink, FILE_CHANGED | PARENT_MODIFIED},
	{"rename", run_rename_away, FILE_CHANGED | PARENT_MODIFIED},
	{"rename back", run_rename_back, FILE_CHANGED | PARENT_MODIFIED},
	{"open O_CREAT", run_create, PARENT_MODIFIED},
	{"open O_CREAT of what exists", run_create_existing, 0},
	{"unlink", run_remove, PARENT_MODIFIED},
	{"mkdir", run_mkdir, PARENT_MODIFIED},
	{"rmdir", run_rmdir, PARENT_MODIFIED},
	{"symlink", run_symlink, PARENT_MODIFIED},
	{"unlink of a symlink", run_remove, PARENT_MODIFIED},
	{"mkfifo", run_mkfifo, PARENT_MODIFIED},
	{"unlink of a FIFO", run_remove, PARENT_MODIFIED},
	{"mkdir that fails", run_failing_mkdir, 0},
};

static bool later(struct timespec one, struct timespec other)
{
	return one.tv_sec != other.tv_sec ? one.tv_sec > other.tv_sec : one.tv_nsec > other.tv_nsec;
}

static void check_marked(struct suite *suite, bool marked, bool wanted, const char *name,
			 const char *time)
{
	check_true(suite, marked == wanted, "%s %s %s", name, wanted ? "marks" : "leaves", time);
}

static void check_marking(struct suite *suite, const struct marking *marking, int fd)
{
	static const struct timespec tick = {.tv_nsec = TICK_NANOSECONDS};
	struct stat file, parent, file_now, parent_now;
	unsigned int marks = marking->marks;

	must(suite, fstat(fd, &file), "fstat");
	must(suite, stat("d", &parent), "stat");
	nanosleep(&tick, NULL);
	if (!check_result(suite, marking->run(fd), 0, "%s", marking->name))
		return;
	must(suite, fstat(fd, &file_now), "fstat");
	must(suite, stat("d", &parent_now), "stat");
	check_marked(suite, later(file_now.st_ctim, file.st_ctim),
		     marks & (FILE_CHANGED | FILE_MODIFIED), marking->name, "the file's ctime");
	/* Whether fallocate is a modification the systems disagree on. */
	if (marking->run != run_fallocate)
		check_marked(suite, later(file_now.st_mtim, file.st_mtim), marks & FILE_MODIFIED,
			     marking->name, "the file's mtime");
	check_marked(suite, later(parent_now.st_ctim, parent.st_ctim), marks & PARENT_MODIFIED,
		     marking->name, "the directory's ctime");
	check_marked(suite, later(parent_now.st_mtim, parent.st_mtim), marks & PARENT_MODIFIED,
		     marking->name, "the directory's mtime");
}

void conform_times(struct suite *suite)
{
	int fd;

	must(suite, mkdir("d", 0755), "mkdir");
	fd = must(suite, open("d/f", O_RDWR | O_CREAT, 0644), "making a file");
	must(suite, ftruncate(fd, 8192), "ftruncate");
	for (size_t i = 0; i < sizeof(markings) / sizeof(markings[0]); i++)
		check_marking(suite, &markings[i], fd);
	close(fd);
	unlink("d/f");
	rmdir("d");
}

static void check_set(struct suite *suite, const char *path, const struct timespec times[2])
{
	struct statx extended;
	struct stat status;

	if (!check_result(suite, utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0,
			  "utimensat %s to %ld.%09ld", path, times[1].tv_sec, times[1].tv_nsec))
		return;
	must(suite, lstat(path, &status), "lstat");
	check_equal(suite, status.st_atim.tv_sec, times[0].tv_sec, "atime of %s, seconds", path);
	check_equal(suite, status.st_atim.tv_nsec, times[0].tv_nsec, "atime of %s, ns", path);
	check_equal(suite, status.st_mtim.tv_sec, times[1].tv_sec, "mtime of %s, seconds", path);
	check_equal(suite, status.st_mtim.tv_nsec, times[1].tv_nsec, "mtime of %s, ns", path);
	must(suite, statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &extended),
	     "statx");
	check_equal(suite, extended.stx_mtime.tv_sec, times[1].tv_sec, "statx mtime of %s", path);
	check_equal(suite, extended.stx_mtime.tv_nsec, times[1].tv_nsec, "statx mtime of %s, ns",
		    path);
}

/* UTIME_NOW and UTIME_OMIT, each for each time. */
static void check_special(struct suite *suite, const char *path)
{
	static const long kinds[] = {UTIME_OMIT, UTIME_NOW, 5};
	struct timespec past[2] = {{1000, 1}, {2000, 2}}, times[2], now;
	struct stat status;

	for (int access = 0; access < 3; access++)
		for (int change = 0; change < 3; change++) {
			must(suite, utimensat(AT_FDCWD, path, past, AT_SYMLINK_NOFOLLOW),
			     "utimensat");
			clock_gettime(CLOCK_REALTIME, &now);
			times[0] = (struct timespec){3000, kinds[access]};
			times[1] = (struct timespec){4000, kinds[change]};
			check_result(suite, utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW),
				     0, "utimensat of kinds %d %d", access, change);
			must(suite, lstat(path, &status), "lstat");
			if (access == 1)
				check_true(suite, status.st_atim.tv_sec >= now.tv_sec - 1,
					   "atime of %s is now", path);
			else
				check_equal(suite, status.st_atim.tv_sec, access ? 3000 : 1000,
					    "atime of %s, kinds %d %d", path, access, change);
			if (change == 1)
				check_true(suite, status.st_mtim.tv_sec >= now.tv_sec - 1,
					   "mtime of %s is now", path);
			else
				check_equal(suite, status.st_mtim.tv_sec, change ? 4000 : 2000,
					    "mtime of %s, kinds %d %d", path, access, change);
		}
}

/* relatime: a read marks an access time that is older than the modification. */
static void check_access_time(struct suite *suite)
{
	struct timespec past[2] = {{1000, 0}, {2000, 0}};
	struct stat status;
	char byte;
	int fd = must(suite, open("f", O_RDWR), "open");

	must(suite, pwrite(fd, "x", 1, 0), "write");
	must(suite, futimens(fd, past), "futimens");
	check_equal(suite, pread(fd, &byte, 1, 0), 1, "read");
	must(suite, fstat(fd, &status), "fstat");
	check_true(suite,
		   status.st_atim.tv_sec > 2000 || expect_unless(suite, DEVIATION_ATIME, 0, 1),
		   "read marks the atime");
	check_equal(suite, status.st_mtim.tv_sec, 2000, "mtime after read");
	must(suite, futimens(fd, past), "futimens");
	close(fd);
	fd = must(suite, open("f", O_RDONLY | O_NOATIME), "open O_NOATIME");
	check_equal(suite, pread(fd, &byte, 1, 0), 1, "read O_NOATIME");
	must(suite, fstat(fd, &status), "fstat");
	check_true(suite,
		   status.st_atim.tv_sec == 1000 || expect_unless(suite, DEVIATION_ATIME, 0, 1),
		   "read O_NOATIME leaves the atime");
	close(fd);
}

void conform_set_times(struct suite *suite)
{
	static const char *const names[] = {"f", "d", "l", "p", "s"};
	static const struct timespec times[][2] = {
		{{0, 0}, {0, 0}},
		{{1, 999999999}, {2, 1}},
		{{1000000000, 123456789}, {1234567890, 987654321}},
		{{2147483647, 999999999}, {2147483647, 999999999}},
		{{2147483648, 1}, {4294967296, 2}},
		{{-1, 500000000}, {-86400, 250000000}},
	};
	struct timespec nothing[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
	int fd = must(suite, open("f", O_RDWR | O_CREAT, 0644), "making a file");

	must(suite, mkdir("d", 0755), "mkdir");
	must(suite, symlink("f", "l"), "symlink");
	must(suite, mkfifo("p", 0644), "mkfifo");
	must(suite, mknod("s", S_IFSOCK | 0644, 0), "mknod");
	for (int name = 0; name < 5; name++) {
		for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
			check_set(suite, names[name], times[i]);
		check_special(suite, names[name]);
	}
	check_result(suite, futimens(fd, NULL), 0, "futimens now");
	check_result(suite, futimens(-1, NULL), EBADF, "futimens of a bad descriptor");
	check_result(suite, utimensat(AT_FDCWD, "f", times[0], 2), EINVAL,
		     "utimensat of a bad flag");
	check_result(suite, utimensat(AT_FDCWD, "none", nothing, 0), 0,
		     "utimensat of nothing to set looks at nothing");
	close(fd);
	check_access_time(suite);
}

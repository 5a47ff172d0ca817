/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on descriptors that do not allow them, and limits that stop a write. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/posix/conform.h"

enum descriptor { FILE_READ, FILE_WRITE, FILE_BOTH, DIRECTORY, PATH_ONLY, CLOSED, DESCRIPTORS };

static const char *const descriptor_names[DESCRIPTORS] = {
	"O_RDONLY", "O_WRONLY", "O_RDWR", "a directory", "O_PATH", "a closed descriptor",
};

struct descriptor_operation {
	const char *name;
	long (*run)(int fd);
	int wanted[DESCRIPTORS];
};

static char buffer[16];

static long run_read(int fd)
{
	return read(fd, buffer, 4);
}

static long run_read_nothing(int fd)
{
	return read(fd, buffer, 0);
}

static long run_pread(int fd)
{
	return pread(fd, buffer, 4, 0);
}

static long run_write(int fd)
{
	return write(fd, buffer, 4);
}

static long run_pwrite(int fd)
{
	return pwrite(fd, buffer, 4, 0);
}

static long run_ftruncate(int fd)
{
	return ftruncate(fd, 16);
}

static long run_ftruncate_negative(int fd)
{
	return ftruncate(fd, -1);
}

static long run_fallocate(int fd)
{
	return fallocate(fd, 0, 0, 16);
}

static long run_fallocate_nothing(int fd)
{
	return fallocate(fd, 0, 0, 0);
}

static long run_fallocate_negative(int fd)
{
	return fallocate(fd, 0, -1, 16);
}

static long run_fsync(int fd)
{
	return fsync(fd);
}

static long run_fdatasync(int fd)
{
	return fdatasync(fd);
}

static long run_syncfs(int fd)
{
	return syncfs(fd);
}

static long run_lseek(int fd)
{
	return lseek(fd, 0, SEEK_SET);
}

static long run_seek_data(int fd)
{
	return lseek(fd, 0, SEEK_DATA);
}

static long run_fstat(int fd)
{
	struct stat status;

	return fstat(fd, &status);
}

static long run_fchmod(int fd)
{
	return fchmod(fd, 0755);
}

static long run_fchown(int fd)
{
	return fchown(fd, (uid_t)-1, (gid_t)-1);
}

static long run_fchdir(int fd)
{
	int here = open(".", O_PATH | O_DIRECTORY);
	long result = fchdir(fd);
	int error = errno;

	if (fchdir(here))
		_exit(1);
	close(here);
	errno = error;
	return result;
}

static long run_getdents(int fd)
{
	char entries[1024];

	return getdents64(fd, entries, sizeof(entries));
}

static long run_map(int fd, int protection, int flags)
{
	void *map = mmap(NULL, 4096, protection, flags, fd, 0);

	if (map == MAP_FAILED)
		return -1;
	return munmap(map, 4096);
}

static long run_map_read(int fd)
{
	return run_map(fd, PROT_READ, MAP_SHARED);
}

static long run_map_write(int fd)
{
	return run_map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static long run_map_private(int fd)
{
	return run_map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static long run_fadvise(int fd)
{
	errno = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	return errno ? -1 : 0;
}

static long run_readahead(int fd)
{
	return readahead(fd, 0, 4096);
}

static long run_sync_range(int fd)
{
	return sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

static long run_terminal_ioctl(int fd)
{
	return ioctl(fd, TIOCGWINSZ, buffer);
}

static const struct descriptor_operation operations[] = {
	{"read", run_read, {0, EBADF, 0, EISDIR, EBADF, EBADF}},
	{"read of nothing", run_read_nothing, {0, EBADF, 0, EISDIR, EBADF, EBADF}},
	{"pread", run_pread, {0, EBADF, 0, EISDIR, EBADF, EBADF}},
	{"write", run_write, {EBADF, 0, 0, EBADF, EBADF, EBADF}},
	{"pwrite", run_pwrite, {EBADF, 0, 0, EBADF, EBADF, EBADF}},
	{"ftruncate", run_ftruncate, {EINVAL, 0, 0, EINVAL, EBADF, EBADF}},
	{"ftruncate to -1",
	 run_ftruncate_negative,
	 {EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL}},
	{"fallocate", run_fallocate, {EBADF, 0, 0, EBADF, EBADF, EBADF}},
	{"fallocate of nothing",
	 run_fallocate_nothing,
	 {EINVAL, EINVAL, EINVAL, EINVAL, EBADF, EBADF}},
	{"fallocate at -1", run_fallocate_negative, {EINVAL, EINVAL, EINVAL, EINVAL, EBADF, EBADF}},
	{"fsync", run_fsync, {0, 0, 0, 0, EBADF, EBADF}},
	{"fdatasync", run_fdatasync, {0, 0, 0, 0, EBADF, EBADF}},
	{"syncfs", run_syncfs, {0, 0, 0, 0, EBADF, EBADF}},
	{"lseek", run_lseek, {0, 0, 0, 0, EBADF, EBADF}},
	{"lseek SEEK_DATA", run_seek_data, {0, 0, 0, -1, EBADF, EBADF}},
	{"fstat", run_fstat, {0, 0, 0, 0, 0, EBADF}},
	{"fchmod", run_fchmod, {0, 0, 0, 0, EBADF, EBADF}},
	{"fchown", run_fchown, {0, 0, 0, 0, EBADF, EBADF}},
	{"fchdir", run_fchdir, {ENOTDIR, ENOTDIR, ENOTDIR, 0, ENOTDIR, EBADF}},
	{"getdents64", run_getdents, {ENOTDIR, ENOTDIR, ENOTDIR, 0, EBADF, EBADF}},
	{"mmap to read", run_map_read, {0, EACCES, 0, ENODEV, EBADF, EBADF}},
	{"mmap to write", run_map_write, {EACCES, EACCES, 0, EACCES, EBADF, EBADF}},
	{"mmap private", run_map_private, {0, EACCES, 0, ENODEV, EBADF, EBADF}},
	{"posix_fadvise", run_fadvise, {0, 0, 0, -1, EBADF, EBADF}},
	{"readahead", run_readahead, {0, EBADF, 0, EINVAL, EBADF, EBADF}},
	{"sync_file_range", run_sync_range, {0, 0, 0, 0, EBADF, EBADF}},
	{"ioctl of a terminal", run_terminal_ioctl, {ENOTTY, ENOTTY, ENOTTY, ENOTTY, EBADF, EBADF}},
};

/* A write that would pass RLIMIT_FSIZE is cut, then refused with a signal. */
static void check_size_limit(struct suite *suite)
{
	struct rlimit limit = {.rlim_cur = 100, .rlim_max = RLIM_INFINITY};
	int fd = must(suite, open("f", O_RDWR | O_TRUNC), "open");
	struct stat status;

	signal(SIGXFSZ, SIG_IGN);
	must(suite, setrlimit(RLIMIT_FSIZE, &limit), "setrlimit");
	check_equal(suite, pwrite(fd, buffer, 16, 90), 10, "write across RLIMIT_FSIZE");
	check_result(suite, pwrite(fd, buffer, 16, 100), EFBIG, "write past RLIMIT_FSIZE");
	check_result(suite, ftruncate(fd, 101), EFBIG, "ftruncate past RLIMIT_FSIZE");
	check_result(suite, truncate("f", 101), EFBIG, "truncate past RLIMIT_FSIZE");
	check_result(suite, ftruncate(fd, 100), 0, "ftruncate to RLIMIT_FSIZE");
	fstat(fd, &status);
	check_equal(suite, status.st_size, 100, "size after all that");
	close(fd);
}

static void check_addresses(struct suite *suite)
{
	int fd = must(suite, open("f", O_RDWR | O_TRUNC), "open");
	void *bad = check_bad_address();
	struct stat status;

	check_equal(suite, write(fd, buffer, 8), 8, "write");
	check_result(suite, pwrite(fd, bad, 8, 0), EFAULT, "write from a bad address");
	check_result(suite, pread(fd, bad, 8, 0), EFAULT, "read to a bad address");
	check_result(suite, pwrite(fd, bad, 0, 0), 0, "write of nothing from a bad address");
	fstat(fd, &status);
	check_equal(suite, status.st_size, 8, "size after that");
	close(fd);
}

/* A duplicate and a child share position and flags; a second open does not. */
static void check_shared_position(struct suite *suite)
{
	int fd = must(suite, open("f", O_RDWR | O_TRUNC), "open"), copy = dup(fd), second;
	pid_t child;

	second = must(suite, open("f", O_RDONLY), "open");
	check_equal(suite, write(fd, buffer, 5), 5, "write");
	check_equal(suite, lseek(copy, 0, SEEK_CUR), 5, "position of a duplicate");
	check_equal(suite, lseek(second, 0, SEEK_CUR), 0, "position of a second open");
	child = must(suite, fork(), "fork");
	if (child == 0)
		_exit(write(copy, buffer, 3) == 3 ? 0 : 1);
	check_equal(suite, waitpid(child, NULL, 0), child, "wait for a child that writes");
	check_equal(suite, lseek(fd, 0, SEEK_CUR), 8, "position after the child's write");
	close(fd);
	check_equal(suite, write(copy, buffer, 1), 1, "write after the other was closed");
	close(copy);
	close(second);
}

void conform_descriptors(struct suite *suite)
{
	int fds[DESCRIPTORS];

	must(suite, mkdir("d", 0755), "mkdir");
	fds[FILE_BOTH] = must(suite, open("f", O_RDWR | O_CREAT, 0644), "making a file");
	must(suite, pwrite(fds[FILE_BOTH], buffer, sizeof(buffer), 0), "write");
	fds[FILE_READ] = must(suite, open("f", O_RDONLY), "open");
	fds[FILE_WRITE] = must(suite, open("f", O_WRONLY), "open");
	fds[DIRECTORY] = must(suite, open("d", O_RDONLY | O_DIRECTORY), "open");
	fds[PATH_ONLY] = must(suite, open("f", O_PATH), "open");
	fds[CLOSED] = 1000;
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		for (int kind = 0; kind < DESCRIPTORS; kind++)
			/* -1: file systems differ, and no manual page says */
			if (operations[i].wanted[kind] >= 0)
				check_result(suite, operations[i].run(fds[kind]),
					     operations[i].wanted[kind], "%s on %s",
					     operations[i].name, descriptor_names[kind]);
	for (int kind = 0; kind < CLOSED; kind++)
		check_result(suite, close(fds[kind]), 0, "close of %s", descriptor_names[kind]);
	check_result(suite, close(fds[CLOSED]), EBADF, "close of a closed descriptor");
	check_shared_position(suite);
	check_addresses(suite);
	check_in_process(suite, "a process of limited file size", check_size_limit);
}

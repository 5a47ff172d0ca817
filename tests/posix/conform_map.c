/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings: shared with other mappings, with read and write, and with other processes. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/posix/conform.h"

#define PAGES 16
#define PAGE  4096L
#define SIZE  ((size_t)(PAGES * PAGE))

static char *map_file(struct suite *suite, int fd, int protection, int flags)
{
	char *map = mmap(NULL, SIZE, protection, flags, fd, 0);

	if (map == MAP_FAILED)
		must(suite, -1, "mmap");
	return map;
}

static int make_file(struct suite *suite)
{
	int fd = must(suite, open("m", O_RDWR | O_CREAT | O_TRUNC, 0644), "making a file");
	char page[PAGE];

	for (int i = 0; i < PAGES; i++) {
		memset(page, 'a' + i, PAGE);
		check_equal(suite, pwrite(fd, page, PAGE, i * PAGE), PAGE, "write");
	}
	return fd;
}

/* read and write see a shared mapping at once, and it sees them. */
static void check_shared(struct suite *suite)
{
	int fd = make_file(suite), reader;
	char *map = map_file(suite, fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	char *second = map_file(suite, fd, PROT_READ, MAP_SHARED);
	char got[PAGE];

	for (int i = 0; i < PAGES; i++) {
		check_equal(suite, map[i * PAGE + 5], 'a' + i, "page %d of a mapping", i);
		memset(map + i * PAGE, 'A' + i, PAGE);
		check_equal(suite, pread(fd, got, PAGE, i * PAGE), PAGE, "read of page %d", i);
		check_bytes(suite, got, map + i * PAGE, PAGE, "page %d by read", i);
		check_bytes(suite, second + i * PAGE, map + i * PAGE, PAGE,
			    "page %d by a second mapping", i);
		check_equal(suite, pwrite(fd, "written", 7, i * PAGE + 100), 7, "write");
		check_bytes(suite, map + i * PAGE + 100, "written", 7, "page %d after write", i);
	}
	check_result(suite, msync(map, SIZE, MS_SYNC), 0, "msync MS_SYNC");
	check_result(suite, msync(map, SIZE, MS_ASYNC), 0, "msync MS_ASYNC");
	check_result(suite, msync(map, SIZE, MS_SYNC | MS_ASYNC), EINVAL, "msync of both flags");
	check_result(suite, msync(map + 1, 10, MS_SYNC), EINVAL, "msync of no page boundary");
	check_result(suite, close(fd), 0, "close of a mapped file");
	map[7] = '!';
	check_result(suite, munmap(map, SIZE), 0, "munmap");
	check_result(suite, munmap(second, SIZE), 0, "munmap");
	reader = must(suite, open("m", O_RDONLY), "open");
	check_equal(suite, pread(reader, got, PAGE, 0), PAGE, "read after munmap");
	check_equal(suite, got[7], '!', "what was written after close");
	close(reader);
}

static void check_private(struct suite *suite)
{
	int fd = make_file(suite);
	char *map = map_file(suite, fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	char got;

	map[0] = 'P';
	check_equal(suite, pread(fd, &got, 1, 0), 1, "read");
	check_equal(suite, got, 'a', "the file after a write to a private mapping");
	check_equal(suite, pwrite(fd, "Q", 1, 0), 1, "write");
	check_equal(suite, map[0], 'P', "a private page after a write to the file");
	munmap(map, SIZE);
	map = map_file(suite, fd, PROT_READ, MAP_PRIVATE);
	check_equal(suite, map[0], 'Q', "a new private mapping");
	munmap(map, SIZE);
	close(fd);
}

static void check_processes(struct suite *suite)
{
	int fd = make_file(suite), status;
	char *map = map_file(suite, fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	pid_t child = must(suite, fork(), "fork");

	if (child == 0) {
		int own = open("m", O_RDWR);
		char *mine = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);

		if (mine == MAP_FAILED || mine[PAGE] != 'b')
			_exit(1);
		mine[PAGE] = 'C';
		_exit(pwrite(own, "D", 1, 2 * PAGE) == 1 ? 0 : 1);
	}
	check_equal(suite, waitpid(child, &status, 0), child, "wait for a child that maps");
	check_equal(suite, status, 0, "status of a child that maps");
	check_equal(suite, map[PAGE], 'C', "what the child put in its mapping");
	check_equal(suite, map[2 * PAGE], 'D', "what the child wrote");
	munmap(map, SIZE);
	close(fd);
}

static sigjmp_buf fault;

static void on_fault(int number)
{
	siglongjmp(fault, number);
}

/* Whether reading the byte raises a signal, and which. */
static int touch(const volatile char *byte)
{
	int number = sigsetjmp(fault, 1);

	if (number == 0)
		(void)*byte;
	return number;
}

/* The last page is zero behind the end; the pages behind it are not there. */
static void check_end(struct suite *suite)
{
	int fd = make_file(suite);
	char *map = map_file(suite, fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	char got[200];

	signal(SIGBUS, on_fault);
	check_result(suite, ftruncate(fd, 2 * PAGE + 100), 0, "ftruncate of a mapped file");
	check_equal(suite, touch(map + 2 * PAGE + 99), 0, "touching the last byte");
	check_equal(suite, map[2 * PAGE + 99], 'c', "the last byte");
	check_equal(suite, touch(map + 2 * PAGE + 100), 0, "touching the rest of its page");
	check_equal(suite, map[2 * PAGE + 100], 0, "the rest of its page");
	check_equal(suite, touch(map + 3 * PAGE), SIGBUS, "touching the page behind");
	map[2 * PAGE + 100] = 'x';
	check_result(suite, ftruncate(fd, 3 * PAGE), 0, "ftruncate to longer");
	check_equal(suite, pread(fd, got, 200, 2 * PAGE), 200, "read");
	check_equal(suite, got[99], 'c', "the byte before the old end");
	check_equal(suite, got[101], 0, "a byte behind the old end");
	check_equal(suite, touch(map + 3 * PAGE - 1), 0, "touching what was added");
	check_equal(suite, touch(map + 3 * PAGE), SIGBUS, "touching the page behind that");
	check_equal(suite, pwrite(fd, "new", 3, 8 * PAGE), 3, "write behind the end");
	check_equal(suite, touch(map + 8 * PAGE), 0, "touching what was written");
	check_bytes(suite, map + 8 * PAGE, "new", 3, "what was written");
	check_equal(suite, map[5 * PAGE], 0, "the hole before it");
	signal(SIGBUS, SIG_DFL);
	munmap(map, SIZE);
	close(fd);
}

/* A mapping of a file that is removed, or replaced, stays that file's. */
static void check_removed(struct suite *suite)
{
	int fd = make_file(suite), other;
	char *map = map_file(suite, fd, PROT_READ | PROT_WRITE, MAP_SHARED);

	close(fd);
	other = must(suite, open("n", O_RDWR | O_CREAT, 0644), "making a file");
	must(suite, pwrite(other, "other", 5, 0), "write");
	check_result(suite, rename("n", "m"), 0, "rename onto a mapped file");
	check_equal(suite, map[PAGE], 'b', "a page of the replaced file");
	map[PAGE] = 'Z';
	check_result(suite, msync(map, SIZE, MS_SYNC), 0, "msync of a replaced file");
	check_result(suite, unlink("m"), 0, "unlink");
	check_equal(suite, map[PAGE], 'Z', "a page of the removed file");
	check_equal(suite, map[15 * PAGE], 'p', "another page of the removed file");
	munmap(map, SIZE);
	close(other);
}

/* Mappings of holes: writing fills one page, the others are zeros. */
static void check_hole(struct suite *suite)
{
	int fd = must(suite, open("h", O_RDWR | O_CREAT, 0644), "making a file");
	struct stat status;
	char *map, got;

	must(suite, ftruncate(fd, (off_t)SIZE), "ftruncate");
	map = map_file(suite, fd, PROT_READ | PROT_WRITE, MAP_SHARED);
	map[3 * PAGE] = 'H';
	check_result(suite, msync(map, SIZE, MS_SYNC), 0, "msync");
	check_result(suite, fsync(fd), 0, "fsync");
	fstat(fd, &status);
	check_true(suite, status.st_blocks >= 8 && status.st_blocks * 512L < (long)SIZE,
		   "the space of one page in a hole");
	check_equal(suite, lseek(fd, 0, SEEK_DATA), 3 * PAGE, "SEEK_DATA after that");
	check_equal(suite, pread(fd, &got, 1, 3 * PAGE), 1, "read");
	check_equal(suite, got, 'H', "what was put in the hole");
	for (int i = 0; i < PAGES; i++)
		check_equal(suite, map[i * PAGE], i == 3 ? 'H' : 0, "page %d of a hole", i);
	munmap(map, SIZE);
	close(fd);
}

void conform_map(struct suite *suite)
{
	check_shared(suite);
	check_private(suite);
	check_processes(suite);
	check_end(suite);
	check_removed(suite);
	check_hole(suite);
}

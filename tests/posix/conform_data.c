/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing: what arrives where, at which positions, and what refuses. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/posix/conform.h"

#define LARGE (3U << 20)

static void fill(unsigned char *bytes, size_t size, unsigned int seed)
{
	for (size_t at = 0; at < size; at++)
		bytes[at] = (unsigned char)(at * 31 + (at >> 8) * 7 + seed);
}

/* Pieces of many sizes at many places, read back in other pieces and as a whole. */
static void check_sizes(struct suite *suite)
{
	static const size_t sizes[] = {1,    2,    511,   512,   513,    4095,     4096,
				       4097, 8191, 65536, 65537, 131072, 1U << 20, LARGE};
	static const off_t places[] = {0, 1, 4095, 4096, 4097, 65535, 1 << 20};
	static unsigned char wanted[LARGE], got[LARGE];
	int fd = must(suite, open("f", O_RDWR | O_CREAT | O_TRUNC, 0644), "making a file");
	struct stat status;

	for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++)
		for (size_t place = 0; place < sizeof(places) / sizeof(places[0]); place++) {
			size_t length = sizes[size];
			off_t at = places[place];

			if (length > 1U << 20 && place > 1)
				continue;
			must(suite, ftruncate(fd, 0), "ftruncate");
			fill(wanted, length, (unsigned int)(size + place));
			check_equal(suite, pwrite(fd, wanted, length, at), (long)length,
				    "pwrite of %zu at %ld", length, (long)at);
			fstat(fd, &status);
			check_equal(suite, status.st_size, at + (off_t)length,
				    "size after pwrite of %zu at %ld", length, (long)at);
			check_equal(suite, pread(fd, got, length, at), (long)length,
				    "pread of %zu at %ld", length, (long)at);
			check_bytes(suite, got, wanted, length, "content of %zu at %ld", length,
				    (long)at);
			if (at == 0)
				continue;
			memset(wanted, 0, (size_t)at);
			memset(got, 1, (size_t)at);
			check_equal(suite, pread(fd, got, (size_t)at, 0), at,
				    "pread of what lies before %ld", (long)at);
			check_bytes(suite, got, wanted, (size_t)at, "zeros before %ld", (long)at);
		}
	close(fd);
	unlink("f");
}

/* The position moves with read and write, not with pread and pwrite. */
static void check_positions(struct suite *suite)
{
	int fd = must(suite, open("f", O_RDWR | O_CREAT | O_TRUNC, 0644), "making a file");
	char text[16] = "";

	check_equal(suite, write(fd, "0123456789", 10), 10, "write");
	check_equal(suite, lseek(fd, 0, SEEK_CUR), 10, "position after write");
	check_equal(suite, read(fd, text, 5), 0, "read at the end");
	check_equal(suite, pread(fd, text, 5, 10), 0, "pread at the end");
	check_equal(suite, pread(fd, text, 5, 1000000), 0, "pread past the end");
	check_equal(suite, pread(fd, text, 5, 2), 5, "pread");
	check_bytes(suite, text, "23456", 5, "what pread read");
	check_equal(suite, lseek(fd, 0, SEEK_CUR), 10, "position after pread");
	check_equal(suite, pwrite(fd, "AB", 2, 4), 2, "pwrite");
	check_equal(suite, lseek(fd, 0, SEEK_CUR), 10, "position after pwrite");
	check_equal(suite, lseek(fd, 3, SEEK_SET), 3, "lseek SEEK_SET");
	check_equal(suite, read(fd, text, 4), 4, "read");
	check_bytes(suite, text, "3AB6", 4, "what read read");
	check_equal(suite, lseek(fd, -2, SEEK_CUR), 5, "lseek SEEK_CUR");
	check_equal(suite, lseek(fd, -1, SEEK_END), 9, "lseek SEEK_END");
	check_equal(suite, read(fd, text, 10), 1, "read of more than there is");
	check_equal(suite, lseek(fd, 100, SEEK_END), 110, "lseek past the end");
	check_equal(suite, write(fd, "z", 1), 1, "write past the end");
	check_equal(suite, lseek(fd, 0, SEEK_END), 111, "size after that");
	check_result(suite, lseek(fd, -1, SEEK_SET), EINVAL, "lseek before the beginning");
	check_result(suite, lseek(fd, -112, SEEK_END), EINVAL, "lseek SEEK_END before it");
	check_result(suite, lseek(fd, 0, 99), EINVAL, "lseek of a bad whence");
	check_equal(suite, lseek(fd, 0, SEEK_CUR), 111, "position after lseeks that failed");
	check_result(suite, pread(fd, text, 1, -1), EINVAL, "pread at -1");
	check_result(suite, pwrite(fd, text, 1, -1), EINVAL, "pwrite at -1");
	close(fd);
	unlink("f");
}

static void check_vectors(struct suite *suite)
{
	char one[3], two[5], three[8];
	struct iovec out[3] = {{(char *)"abc", 3}, {(char *)"", 0}, {(char *)"defgh", 5}};
	struct iovec in[3] = {{one, 3}, {two, 1}, {three, 8}};
	int fd = must(suite, open("f", O_RDWR | O_CREAT | O_TRUNC, 0644), "making a file");

	check_equal(suite, writev(fd, out, 3), 8, "writev");
	check_equal(suite, preadv(fd, in, 3, 0), 8, "preadv");
	check_bytes(suite, one, "abc", 3, "first part");
	check_bytes(suite, two, "d", 1, "second part");
	check_bytes(suite, three, "efgh", 4, "third part");
	check_equal(suite, pwritev(fd, out, 3, 100), 8, "pwritev");
	check_equal(suite, lseek(fd, 0, SEEK_CUR), 8, "position after pwritev");
	check_equal(suite, pwritev2(fd, out, 3, 0, RWF_APPEND), 8, "pwritev2 RWF_APPEND");
	check_equal(suite, lseek(fd, 0, SEEK_END), 116, "size after RWF_APPEND");
	check_equal(suite, pwritev2(fd, out, 3, 0, RWF_DSYNC), 8, "pwritev2 RWF_DSYNC");
	check_equal(suite, lseek(fd, 100, SEEK_SET), 100, "lseek");
	check_equal(suite, readv(fd, in, 2), 4, "readv");
	check_bytes(suite, one, "abc", 3, "what readv read");
	check_result(suite, syscall(SYS_writev, fd, out, -1L), EINVAL, "writev of -1 parts");
	check_result(suite, syscall(SYS_writev, fd, out, 1025L), EINVAL, "writev of 1025 parts");
	close(fd);
	unlink("f");
}

/* Aligned direct I/O, mixed with cached. */
static void check_direct(struct suite *suite)
{
	unsigned char *direct = aligned_alloc(4096, 65536), *cached = malloc(65536);
	int fd = open("f", O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0644);
	int plain = must(suite, open("f", O_RDWR | O_CREAT, 0644), "open");

	if (fd < 0 && errno == EINVAL && suite->backing == BACKING_TMPFS && !suite->share) {
		check_skip(suite, 7, "tmpfs takes O_DIRECT since Linux 6.6");
	} else if (check_result(suite, fd, 0, "open O_DIRECT") && direct && cached) {
		fill(direct, 65536, 1);
		check_equal(suite, pwrite(fd, direct, 65536, 0), 65536, "pwrite O_DIRECT");
		check_equal(suite, pread(plain, cached, 65536, 0), 65536, "cached read of it");
		check_bytes(suite, cached, direct, 65536, "direct write, cached read");
		fill(cached, 65536, 2);
		check_equal(suite, pwrite(plain, cached, 65536, 0), 65536, "cached write");
		check_equal(suite, pread(fd, direct, 65536, 0), 65536, "pread O_DIRECT");
		check_bytes(suite, direct, cached, 65536, "cached write, direct read");
		close(fd);
	}
	close(plain);
	unlink("f");
	free(direct);
	free(cached);
}

void conform_data(struct suite *suite)
{
	check_sizes(suite);
	check_positions(suite);
	check_vectors(suite);
	check_direct(suite);
}

static void append_lines(struct suite *suite)
{
	int fd = must(suite, open("f", O_WRONLY | O_APPEND), "open O_APPEND");
	char line[32];

	for (int i = 0; i < 200; i++) {
		snprintf(line, sizeof(line), "%010d %04d\n", getpid(), i);
		check_equal(suite, write(fd, line, 16), 16, "write O_APPEND");
	}
	close(fd);
}

/* O_APPEND: each write goes to the end as it is then, whoever moved it. */
void conform_append(struct suite *suite)
{
	int fd = must(suite, open("f", O_RDWR | O_CREAT | O_APPEND, 0644), "making a file");
	int other = must(suite, open("f", O_RDWR), "open");
	char text[16] = "";
	struct stat status;

	check_equal(suite, write(fd, "one", 3), 3, "write O_APPEND");
	check_equal(suite, pwrite(other, "......", 6, 0), 6, "write by another descriptor");
	check_equal(suite, write(fd, "two", 3), 3, "write O_APPEND after that");
	check_equal(suite, lseek(fd, 0, SEEK_CUR), 9, "position after O_APPEND");
	check_equal(suite, lseek(fd, 0, SEEK_SET), 0, "lseek");
	check_equal(suite, write(fd, "three", 5), 5, "write O_APPEND after lseek");
	check_equal(suite, pread(fd, text, 16, 0), 14, "pread of all");
	check_bytes(suite, text, "......twothree", 14, "what was appended");
	/* pwrite(2) BUGS: the flag wins over the offset. */
	check_equal(suite, pwrite(fd, "4", 1, 0), 1, "pwrite O_APPEND");
	fstat(fd, &status);
	check_equal(suite, status.st_size, 15, "size after pwrite O_APPEND");
	check_result(suite, ftruncate(other, 2), 0, "ftruncate by another descriptor");
	check_equal(suite, write(fd, "5", 1), 1, "write O_APPEND after ftruncate");
	fstat(fd, &status);
	check_equal(suite, status.st_size, 3, "size after that");
	check_result(suite, fcntl(fd, F_SETFL, 0), 0, "F_SETFL without O_APPEND");
	check_equal(suite, pwrite(fd, "6", 1, 0), 1, "pwrite without O_APPEND");
	fstat(fd, &status);
	check_equal(suite, status.st_size, 3, "size after F_SETFL and pwrite");
	check_result(suite, fcntl(other, F_SETFL, O_APPEND), 0, "F_SETFL O_APPEND");
	check_equal(suite, pwrite(other, "7", 1, 0), 1, "pwrite after F_SETFL O_APPEND");
	fstat(fd, &status);
	check_equal(suite, status.st_size, 4, "size after F_SETFL O_APPEND and pwrite");
	must(suite, ftruncate(fd, 0), "ftruncate");
	fflush(stdout);
	for (int i = 0; i < 4; i++)
		if (must(suite, fork(), "fork") == 0) {
			append_lines(suite);
			_exit(0);
		}
	for (int i = 0; i < 4; i++)
		must(suite, wait(NULL), "wait");
	fstat(fd, &status);
	check_equal(suite, status.st_size, 4L * 200 * 16, "size after four appended at once");
	close(fd);
	close(other);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, holes and what fallocate(2) does with them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/conform.h"

#define BLOCK     4096
#define DATA_AT   (1L << 20)
#define DATA_SIZE (64L << 10)

static off_t size_of(int fd)
{
	struct stat status;

	return fstat(fd, &status) ? -1 : status.st_size;
}

/* Bytes that the file occupies. */
static off_t space_of(int fd)
{
	struct stat status;

	return fstat(fd, &status) ? -1 : status.st_blocks * 512L;
}

static void check_zeros(struct suite *suite, int fd, off_t from, off_t to, const char *what)
{
	static const char zeros[8192];
	static char got[8192];

	while (from < to) {
		size_t length = to - from < (off_t)sizeof(got) ? (size_t)(to - from) : sizeof(got);

		check_equal(suite, pread(fd, got, length, from), (long)length, "read of %s", what);
		check_bytes(suite, got, zeros, length, "zeros at %ld of %s", (long)from, what);
		from += (off_t)length;
	}
}

/* To longer and shorter sizes by both calls: what is new is zeros, what was cut off is gone. */
void conform_size(struct suite *suite)
{
	static const off_t sizes[] = {0,    1,    100,  4095,  4096,  4097, 8192,
				      8191, 5000, 4096, 12289, 65537, 3,    70000};
	static char data[131072];
	int fd = must(suite, open("f", O_RDWR | O_CREAT, 0644), "making a file");

	memset(data, 'd', sizeof(data));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
			off_t before = sizes[i], after = sizes[j];

			must(suite, ftruncate(fd, 0), "ftruncate");
			check_equal(suite, pwrite(fd, data, (size_t)before, 0), before, "write");
			check_result(suite,
				     (i + j) % 2 ? ftruncate(fd, after) : truncate("f", after), 0,
				     "truncate %ld to %ld", (long)before, (long)after);
			check_equal(suite, size_of(fd), after, "size after truncate %ld to %ld",
				    (long)before, (long)after);
			if (after < before) {
				must(suite, ftruncate(fd, before), "ftruncate");
				check_zeros(suite, fd, after, before, "what was cut off");
			} else {
				check_zeros(suite, fd, before, after, "what was added");
			}
		}
	check_result(suite, ftruncate(fd, 1L << 40), 0, "ftruncate to 1 TiB");
	check_equal(suite, size_of(fd), 1L << 40, "size of 1 TiB");
	check_true(suite, space_of(fd) < 1 << 20, "space of an empty file of 1 TiB");
	check_equal(suite, pwrite(fd, "end", 3, (1L << 40) - 3), 3, "write at its end");
	check_equal(suite, pread(fd, data, 10, (1L << 40) - 3), 3, "read at its end");
	check_bytes(suite, data, "end", 3, "content at its end");
	check_zeros(suite, fd, (1L << 40) - 10000, (1L << 40) - 3, "a hole");
	check_result(suite, ftruncate(fd, 0), 0, "ftruncate to nothing");
	check_equal(suite, space_of(fd), 0, "space of an empty file");
	close(fd);
}

static int make_sparse(struct suite *suite)
{
	int fd = must(suite, open("s", O_RDWR | O_CREAT | O_TRUNC, 0644), "making a file");
	char *data = malloc(DATA_SIZE);

	if (!data)
		must(suite, -1, "malloc");
	memset(data, 's', DATA_SIZE);
	must(suite, ftruncate(fd, 4 * DATA_AT), "ftruncate");
	check_equal(suite, pwrite(fd, data, DATA_SIZE, DATA_AT), DATA_SIZE, "write");
	free(data);
	return fd;
}

void conform_holes(struct suite *suite)
{
	int fd = make_sparse(suite);
	const off_t end = 4 * DATA_AT;

	check_equal(suite, size_of(fd), end, "size of a sparse file");
	check_true(suite, space_of(fd) >= DATA_SIZE && space_of(fd) <= DATA_SIZE + 65536,
		   "a sparse file occupies its data, not its holes");
	check_equal(suite, lseek(fd, 0, SEEK_DATA), DATA_AT, "SEEK_DATA from 0");
	check_equal(suite, lseek(fd, 0, SEEK_HOLE), 0, "SEEK_HOLE from 0");
	check_equal(suite, lseek(fd, 0, SEEK_CUR), 0, "the position is what lseek returned");
	check_equal(suite, lseek(fd, DATA_AT, SEEK_DATA), DATA_AT, "SEEK_DATA from data");
	check_equal(suite, lseek(fd, DATA_AT + 5, SEEK_DATA), DATA_AT + 5, "SEEK_DATA within data");
	check_equal(suite, lseek(fd, DATA_AT, SEEK_HOLE), DATA_AT + DATA_SIZE,
		    "SEEK_HOLE from data");
	check_equal(suite, lseek(fd, DATA_AT - 5, SEEK_HOLE), DATA_AT - 5, "SEEK_HOLE in a hole");
	check_equal(suite, lseek(fd, 0, SEEK_CUR), DATA_AT - 5, "position after SEEK_HOLE");
	check_result(suite, lseek(fd, DATA_AT + DATA_SIZE, SEEK_DATA), ENXIO,
		     "SEEK_DATA behind the last data");
	check_equal(suite, lseek(fd, DATA_AT + DATA_SIZE, SEEK_HOLE), DATA_AT + DATA_SIZE,
		    "SEEK_HOLE behind the last data");
	check_result(suite, lseek(fd, end, SEEK_DATA), ENXIO, "SEEK_DATA at the end");
	check_result(suite, lseek(fd, end, SEEK_HOLE), ENXIO, "SEEK_HOLE at the end");
	check_result(suite, lseek(fd, end + 1, SEEK_DATA), ENXIO, "SEEK_DATA past the end");
	check_result(suite, lseek(fd, end + 1, SEEK_HOLE), ENXIO, "SEEK_HOLE past the end");
	check_result(suite, lseek(fd, -1, SEEK_DATA), ENXIO, "SEEK_DATA from -1");
	check_result(suite, lseek(fd, -1, SEEK_HOLE), ENXIO, "SEEK_HOLE from -1");
	check_zeros(suite, fd, 0, 20000, "the first hole");
	check_zeros(suite, fd, end - 20000, end, "the last hole");
	/* Every file ends with a hole. */
	must(suite, ftruncate(fd, DATA_AT + 100), "ftruncate");
	check_equal(suite, lseek(fd, DATA_AT, SEEK_HOLE), DATA_AT + 100, "SEEK_HOLE to the end");
	must(suite, ftruncate(fd, 0), "ftruncate");
	check_result(suite, lseek(fd, 0, SEEK_HOLE), ENXIO, "SEEK_HOLE of an empty file");
	close(fd);
}

/* Fills 16 blocks, each with its own letter. */
static int make_blocks(struct suite *suite)
{
	int fd = must(suite, open("b", O_RDWR | O_CREAT | O_TRUNC, 0644), "making a file");
	char block[BLOCK];

	for (int i = 0; i < 16; i++) {
		memset(block, 'A' + i, BLOCK);
		check_equal(suite, pwrite(fd, block, BLOCK, i * BLOCK), BLOCK, "write");
	}
	return fd;
}

static void check_letter(struct suite *suite, int fd, off_t at, char letter, const char *what)
{
	char got = 0;

	check_equal(suite, pread(fd, &got, 1, at), 1, "read after %s", what);
	check_equal(suite, got, letter, "byte at %ld after %s", (long)at, what);
}

static void check_allocate(struct suite *suite)
{
	int fd = must(suite, open("a", O_RDWR | O_CREAT, 0644), "making a file");

	check_result(suite, fallocate(fd, 0, 0, 100000), 0, "fallocate");
	check_equal(suite, size_of(fd), 100000, "size after fallocate");
	check_true(suite, space_of(fd) >= 100000, "space after fallocate");
	check_zeros(suite, fd, 0, 100000, "what fallocate made");
	check_result(suite, fallocate(fd, 0, 0, 10), 0, "fallocate within");
	check_equal(suite, size_of(fd), 100000, "size after fallocate within");
	check_result(suite, fallocate(fd, FALLOC_FL_KEEP_SIZE, 200000, 100000), 0,
		     "fallocate KEEP_SIZE");
	check_equal(suite, size_of(fd), 100000, "size after fallocate KEEP_SIZE");
	check_true(suite, space_of(fd) >= 200000, "space after fallocate KEEP_SIZE");
	check_equal(suite, posix_fallocate(fd, 0, 150000), 0, "posix_fallocate");
	check_equal(suite, size_of(fd), 150000, "size after posix_fallocate");
	check_result(suite, fallocate(fd, 0x8000, 0, 1), EOPNOTSUPP, "fallocate of a bad mode");
	check_result(suite, fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 1), EOPNOTSUPP,
		     "fallocate PUNCH_HOLE without KEEP_SIZE");
	check_result(suite, fallocate(fd, 0, INT64_MAX - 10, 100), EFBIG,
		     "fallocate past the largest offset");
	close(fd);
	check_result(suite, unlink("a"), 0, "unlink");
}

static void check_punch(struct suite *suite)
{
	int fd = make_blocks(suite);
	off_t space = space_of(fd);

	check_result(
		suite,
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * BLOCK, 4 * BLOCK), 0,
		"fallocate PUNCH_HOLE");
	check_equal(suite, size_of(fd), 16 * BLOCK, "size after PUNCH_HOLE");
	check_zeros(suite, fd, 2 * BLOCK, 6 * BLOCK, "the hole");
	check_letter(suite, fd, 2 * BLOCK - 1, 'B', "PUNCH_HOLE");
	check_letter(suite, fd, 6 * BLOCK, 'G', "PUNCH_HOLE");
	check_equal(suite, space_of(fd), space - 4 * BLOCK, "space after PUNCH_HOLE");
	check_equal(suite, lseek(fd, 0, SEEK_HOLE), 2 * BLOCK, "SEEK_HOLE after PUNCH_HOLE");
	check_equal(suite, lseek(fd, 2 * BLOCK, SEEK_DATA), 6 * BLOCK, "SEEK_DATA after it");
	check_result(suite,
		     fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8 * BLOCK + 100, 50),
		     0, "fallocate PUNCH_HOLE within a block");
	check_zeros(suite, fd, 8 * BLOCK + 100, 8 * BLOCK + 150, "the small hole");
	check_letter(suite, fd, 8 * BLOCK + 99, 'I', "a small PUNCH_HOLE");
	check_letter(suite, fd, 8 * BLOCK + 150, 'I', "a small PUNCH_HOLE");
	check_result(
		suite,
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 15 * BLOCK, 100 * BLOCK),
		0, "fallocate PUNCH_HOLE across the end");
	check_equal(suite, size_of(fd), 16 * BLOCK, "size after PUNCH_HOLE across the end");
	check_zeros(suite, fd, 15 * BLOCK, 16 * BLOCK, "the last block");
	close(fd);
}

static void check_zero_range(struct suite *suite)
{
	int fd = make_blocks(suite);

	if (suite->backing == BACKING_TMPFS) {
		check_result(suite, fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, BLOCK), EOPNOTSUPP,
			     "fallocate ZERO_RANGE, which tmpfs has not");
		close(fd);
		return;
	}
	check_result(suite, fallocate(fd, FALLOC_FL_ZERO_RANGE, 1000, 10000), 0,
		     "fallocate ZERO_RANGE");
	check_zeros(suite, fd, 1000, 11000, "what was zeroed");
	check_letter(suite, fd, 999, 'A', "ZERO_RANGE");
	check_letter(suite, fd, 11000, 'C', "ZERO_RANGE");
	check_result(suite, fallocate(fd, FALLOC_FL_ZERO_RANGE, 15 * BLOCK, 3 * BLOCK), 0,
		     "fallocate ZERO_RANGE across the end");
	check_equal(suite, size_of(fd), 18 * BLOCK, "size after it");
	check_result(
		suite,
		fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 17 * BLOCK, 10 * BLOCK),
		0, "fallocate ZERO_RANGE|KEEP_SIZE");
	check_equal(suite, size_of(fd), 18 * BLOCK, "size after that");
	close(fd);
}

static void check_collapse(struct suite *suite)
{
	int supported = suite->backing == BACKING_TMPFS
				? EOPNOTSUPP
				: expect_unless(suite, DEVIATION_COLLAPSE, 0, EOPNOTSUPP);
	int fd = make_blocks(suite);

	check_result(suite, fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 2 * BLOCK, 3 * BLOCK),
		     supported, "fallocate COLLAPSE_RANGE");
	check_equal(suite, size_of(fd), (supported ? 16 : 13) * BLOCK, "size after it");
	check_letter(suite, fd, 2 * BLOCK, supported ? 'C' : 'F', "COLLAPSE_RANGE");
	check_result(suite, fallocate(fd, FALLOC_FL_INSERT_RANGE, BLOCK, 2 * BLOCK), supported,
		     "fallocate INSERT_RANGE");
	check_equal(suite, size_of(fd), (supported ? 16 : 15) * BLOCK, "size after it");
	check_letter(suite, fd, BLOCK, supported ? 'B' : 0, "INSERT_RANGE");
	close(fd);
}

void conform_fallocate(struct suite *suite)
{
	check_allocate(suite);
	check_punch(suite);
	check_zero_range(suite);
	check_collapse(suite);
}

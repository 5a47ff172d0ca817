/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that the kernel makes: copy_file_range(2), sendfile(2), splice(2). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/conform.h"

#define SIZE (2U << 20)

static unsigned char source[SIZE], got[SIZE];

static off_t size_of(int fd)
{
	struct stat status;

	return fstat(fd, &status) ? -1 : status.st_size;
}

/* As cp(1) does: until nothing is left. Returns what was copied. */
static long copy_all(int from, off_t *from_at, int to, off_t *to_at, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t length = copy_file_range(from, from_at, to, to_at, size - done, 0);

		if (length < 0)
			return -1;
		if (length == 0)
			break;
		done += (size_t)length;
	}
	return (long)done;
}

static void check_ranges(struct suite *suite, int from, int to)
{
	static const size_t sizes[] = {1, 100, 4095, 4096, 4097, 65536, 100001, 1U << 20};
	static const off_t places[] = {0, 1, 4096, 5000, 70000};

	for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++)
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			off_t from_at = places[i], to_at = places[(i + size) % 5];
			off_t from_begin = from_at, to_begin = to_at;
			long length = (long)sizes[size];

			must(suite, ftruncate(to, 0), "ftruncate");
			check_equal(suite, copy_all(from, &from_at, to, &to_at, sizes[size]),
				    length, "copy_file_range of %ld", length);
			check_equal(suite, from_at, from_begin + length, "offset of the source");
			check_equal(suite, to_at, to_begin + length, "offset of the copy");
			check_equal(suite, size_of(to), to_begin + length, "size of the copy");
			check_equal(suite, pread(to, got, sizes[size], to_begin), length, "read");
			check_bytes(suite, got, source + from_begin, sizes[size],
				    "copy of %ld from %ld to %ld", length, (long)from_begin,
				    (long)to_begin);
		}
}

static void check_positions(struct suite *suite, int from, int to)
{
	off_t at = 100;

	must(suite, ftruncate(to, 0), "ftruncate");
	lseek(from, 10, SEEK_SET);
	lseek(to, 20, SEEK_SET);
	check_equal(suite, copy_file_range(from, NULL, to, NULL, 50, 0), 50,
		    "copy_file_range at the positions");
	check_equal(suite, lseek(from, 0, SEEK_CUR), 60, "position of the source");
	check_equal(suite, lseek(to, 0, SEEK_CUR), 70, "position of the copy");
	check_equal(suite, copy_file_range(from, &at, to, NULL, 0, 0), 0, "of nothing");
	at = SIZE;
	check_equal(suite, copy_file_range(from, &at, to, NULL, 50, 0), 0, "at the end");
	at = SIZE - 10;
	check_equal(suite, copy_file_range(from, &at, to, NULL, 50, 0), 10, "across the end");
}

static void check_refusals(struct suite *suite, int from, int to)
{
	int directory = must(suite, open(".", O_RDONLY | O_DIRECTORY), "open");
	int append = must(suite, open("to", O_WRONLY | O_APPEND), "open");
	int reader = must(suite, open("to", O_RDONLY), "open");
	int writer = must(suite, open("from", O_WRONLY), "open");
	off_t at = 0, other = 100, negative = -1;

	check_result(suite, copy_file_range(from, NULL, to, NULL, 10, 1), EINVAL,
		     "copy_file_range of a flag");
	check_result(suite, copy_file_range(directory, NULL, to, NULL, 10, 0), EISDIR,
		     "copy_file_range from a directory");
	check_result(suite, copy_file_range(from, NULL, directory, NULL, 10, 0), EISDIR,
		     "copy_file_range to a directory");
	check_result(suite, copy_file_range(from, NULL, append, NULL, 10, 0), EBADF,
		     "copy_file_range to O_APPEND");
	check_result(suite, copy_file_range(from, NULL, reader, NULL, 10, 0), EBADF,
		     "copy_file_range to O_RDONLY");
	check_result(suite, copy_file_range(writer, NULL, to, NULL, 10, 0), EBADF,
		     "copy_file_range from O_WRONLY");
	check_result(suite, copy_file_range(from, &negative, to, NULL, 10, 0), EOVERFLOW,
		     "copy_file_range from -1");
	must(suite, pwrite(to, source, 1000, 0), "write");
	check_result(suite, copy_file_range(to, &at, to, &other, 200, 0), EINVAL,
		     "copy_file_range onto an overlap");
	at = 0;
	other = 500;
	check_equal(suite, copy_file_range(to, &at, to, &other, 500, 0), 500,
		    "copy_file_range within a file");
	check_equal(suite, pread(to, got, 500, 500), 500, "read");
	check_bytes(suite, got, source, 500, "copy within a file");
	close(directory);
	close(append);
	close(reader);
	close(writer);
}

static void check_other_mount(struct suite *suite, int from)
{
	char path[PATH_MAX];
	off_t at = 1000, to_at = 0;
	int fd;

	if (!suite->other) {
		check_skip(suite, 4, "no other mount to copy to (--other)");
		return;
	}
	snprintf(path, sizeof(path), "%s/conform.copy.%d", suite->other, getpid());
	fd = must(suite, open(path, O_RDWR | O_CREAT | O_EXCL, 0600), path);
	unlink(path);
	/* copy_file_range(2): between file systems of different types EXDEV since Linux 5.19 */
	if (copy_file_range(from, &at, fd, &to_at, 10, 0) == -1)
		check_result(suite, -1, EXDEV, "copy_file_range to another mount");
	check_equal(suite, lseek(from, 1000, SEEK_SET), 1000, "lseek");
	must(suite, ftruncate(fd, 0), "ftruncate");
	check_equal(suite, sendfile(fd, from, NULL, 100000), 100000, "sendfile to another mount");
	check_equal(suite, pread(fd, got, 100000, 0), 100000, "read of what was sent");
	check_bytes(suite, got, source + 1000, 100000, "what was sent");
	close(fd);
}

static void check_sendfile(struct suite *suite, int from, int to)
{
	off_t at = 12345;

	must(suite, ftruncate(to, 0), "ftruncate");
	lseek(to, 0, SEEK_SET);
	lseek(from, 7, SEEK_SET);
	check_equal(suite, sendfile(to, from, &at, 50000), 50000, "sendfile");
	check_equal(suite, at, 62345, "offset after sendfile");
	check_equal(suite, lseek(from, 0, SEEK_CUR), 7, "position after sendfile with an offset");
	check_equal(suite, pread(to, got, 50000, 0), 50000, "read");
	check_bytes(suite, got, source + 12345, 50000, "what sendfile sent");
	check_equal(suite, sendfile(to, from, NULL, 1000), 1000, "sendfile at the position");
	check_equal(suite, lseek(from, 0, SEEK_CUR), 1007, "position after that");
	at = SIZE;
	check_equal(suite, sendfile(to, from, &at, 1000), 0, "sendfile at the end");
}

static void check_splice(struct suite *suite, int from, int to)
{
	off_t from_at = 3000, to_at = 5000;
	int ends[2];

	must(suite, pipe2(ends, O_CLOEXEC), "pipe");
	must(suite, ftruncate(to, 0), "ftruncate");
	check_equal(suite, splice(from, &from_at, ends[1], NULL, 20000, 0), 20000,
		    "splice to a pipe");
	check_equal(suite, splice(ends[0], NULL, to, &to_at, 20000, 0), 20000,
		    "splice from a pipe");
	check_equal(suite, from_at, 23000, "offset of the source");
	check_equal(suite, to_at, 25000, "offset of the copy");
	check_equal(suite, pread(to, got, 20000, 5000), 20000, "read");
	check_bytes(suite, got, source + 3000, 20000, "what was spliced");
	check_result(suite, splice(from, NULL, to, NULL, 10, 0), EINVAL, "splice without a pipe");
	close(ends[0]);
	close(ends[1]);
}

void conform_copy(struct suite *suite)
{
	int from = must(suite, open("from", O_RDWR | O_CREAT, 0644), "making a file");
	int to = must(suite, open("to", O_RDWR | O_CREAT, 0644), "making a file");

	for (size_t at = 0; at < SIZE; at++)
		source[at] = (unsigned char)(at * 17 + (at >> 12));
	check_equal(suite, pwrite(from, source, SIZE, 0), SIZE, "write");
	check_ranges(suite, from, to);
	check_positions(suite, from, to);
	check_refusals(suite, from, to);
	check_other_mount(suite, from);
	check_sendfile(suite, from, to);
	check_splice(suite, from, to);
	close(from);
	close(to);
}

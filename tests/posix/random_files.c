/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_files [--seed N] [--steps N] [--check N] DIRECTORY: random operations on one file, by
 * several descriptors and a mapping, each compared with the same operation on bytes in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/posix/random.h"

#define FILE_NAME "random-file"
#define MAX_SIZE  (256U << 10)
#define MAX_PIECE (64U << 10)
#define PAGE      4096U

struct state {
	struct random_numbers numbers;
	struct journal journal;
	int fd;
	int append_fd;
	unsigned char *map; /* MAX_SIZE bytes of the file, shared */
	bool no_zero_range; /* this file system has none */
	const char *failure;
	size_t size; /* the model: what the file's size and content must be */
	unsigned char model[MAX_SIZE];
	unsigned char piece[MAX_SIZE];
};

typedef void operation(struct state *state, size_t offset, size_t length);

static void fail(struct state *state, const char *what)
{
	if (!state->failure)
		state->failure = what;
}

static void fill_piece(struct state *state, size_t length)
{
	for (size_t at = 0; at < length; at += 8) {
		uint64_t number = random_next(&state->numbers);

		memcpy(state->piece + at, &number, 8);
	}
}

/* The model's part of a write: what lies between the old end and @offset is zeros. */
static void model_write(struct state *state, size_t offset, size_t length)
{
	if (length == 0)
		return;
	memcpy(state->model + offset, state->piece, length);
	if (offset + length > state->size)
		state->size = offset + length;
}

/* What is behind the end of the model is kept zero, so that a longer size shows zeros. */
static void model_resize(struct state *state, size_t size)
{
	if (size < state->size)
		memset(state->model + size, 0, state->size - size);
	state->size = size;
}

static void compare(struct state *state, const unsigned char *got, size_t offset, size_t length,
		    const char *what)
{
	for (size_t at = 0; at < length && !state->failure; at++)
		if (got[at] != state->model[offset + at]) {
			printf("byte %zu is %#x instead of %#x\n", offset + at, got[at],
			       state->model[offset + at]);
			fail(state, what);
		}
}

static void do_read(struct state *state, size_t offset, size_t length)
{
	size_t there = offset >= state->size ? 0 : state->size - offset;
	ssize_t wanted = (ssize_t)(there < length ? there : length);

	if (pread(state->fd, state->piece, length, (off_t)offset) != wanted)
		fail(state, "read returned another length");
	compare(state, state->piece, offset, (size_t)wanted, "read returned other bytes");
}

static void do_write(struct state *state, size_t offset, size_t length)
{
	fill_piece(state, length);
	if (pwrite(state->fd, state->piece, length, (off_t)offset) != (ssize_t)length)
		fail(state, "write");
	model_write(state, offset, length);
}

static void do_write_pieces(struct state *state, size_t offset, size_t length)
{
	size_t first = random_below(&state->numbers, length + 1);
	struct iovec parts[2] = {{state->piece, first}, {state->piece + first, length - first}};

	fill_piece(state, length);
	if (pwritev(state->fd, parts, 2, (off_t)offset) != (ssize_t)length)
		fail(state, "pwritev");
	model_write(state, offset, length);
}

static void do_append(struct state *state, size_t offset, size_t length)
{
	(void)offset;
	if (length > MAX_SIZE - state->size)
		length = MAX_SIZE - state->size;
	fill_piece(state, length);
	if (write(state->append_fd, state->piece, length) != (ssize_t)length)
		fail(state, "write O_APPEND");
	model_write(state, state->size, length);
}

static void do_ftruncate(struct state *state, size_t offset, size_t length)
{
	(void)length;
	if (ftruncate(state->fd, (off_t)offset))
		fail(state, "ftruncate");
	model_resize(state, offset);
}

static void do_truncate(struct state *state, size_t offset, size_t length)
{
	(void)length;
	if (truncate(FILE_NAME, (off_t)offset))
		fail(state, "truncate");
	model_resize(state, offset);
}

/* Mappings are only used within the size. */
static size_t clip(const struct state *state, size_t offset, size_t length)
{
	if (offset >= state->size)
		return 0;
	return length < state->size - offset ? length : state->size - offset;
}

static void do_map_read(struct state *state, size_t offset, size_t length)
{
	compare(state, state->map + offset, offset, clip(state, offset, length),
		"the mapping shows other bytes");
}

static void do_map_write(struct state *state, size_t offset, size_t length)
{
	length = clip(state, offset, length);
	fill_piece(state, length);
	memcpy(state->map + offset, state->piece, length);
	model_write(state, offset, length);
}

static void do_allocate(struct state *state, size_t offset, size_t length)
{
	bool keep = random_below(&state->numbers, 2);

	if (!length)
		return;
	if (fallocate(state->fd, keep ? FALLOC_FL_KEEP_SIZE : 0, (off_t)offset, (off_t)length))
		fail(state, "fallocate");
	if (!keep && offset + length > state->size)
		model_resize(state, offset + length);
}

static void do_punch(struct state *state, size_t offset, size_t length)
{
	if (!length)
		return;
	if (fallocate(state->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		      (off_t)length))
		fail(state, "fallocate PUNCH_HOLE");
	memset(state->model + offset, 0, length);
}

static void do_zero(struct state *state, size_t offset, size_t length)
{
	bool keep = random_below(&state->numbers, 2);

	if (!length || state->no_zero_range)
		return;
	if (fallocate(state->fd, FALLOC_FL_ZERO_RANGE | (keep ? FALLOC_FL_KEEP_SIZE : 0),
		      (off_t)offset, (off_t)length)) {
		if (errno != EOPNOTSUPP)
			fail(state, "fallocate ZERO_RANGE");
		state->no_zero_range = true;
		return;
	}
	memset(state->model + offset, 0, length);
	if (!keep && offset + length > state->size)
		model_resize(state, offset + length);
}

/* Within the file, between places that do not overlap. */
static void do_copy(struct state *state, size_t offset, size_t length)
{
	size_t to = random_below(&state->numbers, MAX_SIZE - MAX_PIECE);
	off_t from_at = (off_t)offset, to_at = (off_t)to;
	size_t done = 0;

	length = clip(state, offset, length);
	if (to < offset + length && offset < to + length)
		return;
	while (done < length) {
		ssize_t copied =
			copy_file_range(state->fd, &from_at, state->fd, &to_at, length - done, 0);

		if (copied <= 0) {
			fail(state, "copy_file_range");
			return;
		}
		done += (size_t)copied;
	}
	memcpy(state->piece, state->model + offset, length);
	model_write(state, to, length);
}

static void do_sync(struct state *state, size_t offset, size_t length)
{
	(void)length;
	switch (offset % 3) {
	case 0:
		if (fsync(state->fd))
			fail(state, "fsync");
		break;
	case 1:
		if (fdatasync(state->append_fd))
			fail(state, "fdatasync");
		break;
	default:
		if (msync(state->map, MAX_SIZE, MS_SYNC))
			fail(state, "msync");
	}
}

/* What SEEK_DATA and SEEK_HOLE call a hole is zeros. */
static void do_seek(struct state *state, size_t offset, size_t length)
{
	off_t hole, end;

	(void)length;
	if (offset >= state->size)
		return;
	/* The server of a share hears of what a mapping changed when it is synchronized. */
	if (msync(state->map, MAX_SIZE, MS_SYNC))
		fail(state, "msync");
	hole = lseek(state->fd, (off_t)offset, SEEK_HOLE);
	if (hole < (off_t)offset || hole > (off_t)state->size) {
		fail(state, "SEEK_HOLE");
		return;
	}
	if (hole == (off_t)state->size)
		return;
	end = lseek(state->fd, hole, SEEK_DATA);
	if (end == -1 && errno == ENXIO)
		end = (off_t)state->size;
	if (end < hole || end > (off_t)state->size)
		fail(state, "SEEK_DATA");
	for (off_t at = hole; at < end; at++)
		if (state->model[at]) {
			printf("byte %ld is data\n", (long)at);
			fail(state, "a hole that is none");
			return;
		}
}

static void open_file(struct state *state, int flags)
{
	state->fd = open(FILE_NAME, O_RDWR | O_CREAT | flags, 0644);
	state->append_fd = open(FILE_NAME, O_WRONLY | O_APPEND);
	state->map = mmap(NULL, MAX_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, state->fd, 0);
	if (state->fd < 0 || state->append_fd < 0 || state->map == MAP_FAILED) {
		fprintf(stderr, "random_files: opening the file: %s\n", strerror(errno));
		exit(2);
	}
}

static void close_file(struct state *state)
{
	if (munmap(state->map, MAX_SIZE) || close(state->append_fd) || close(state->fd))
		fail(state, "close");
}

static void do_reopen(struct state *state, size_t offset, size_t length)
{
	bool truncate = offset % 16 == 0;

	(void)length;
	close_file(state);
	if (truncate)
		model_resize(state, 0);
	open_file(state, truncate ? O_TRUNC : 0);
}

static void do_drop(struct state *state, size_t offset, size_t length)
{
	/* Written first: dirty pages would stay. */
	if (fsync(state->fd) ||
	    posix_fadvise(state->fd, (off_t)offset, (off_t)length, POSIX_FADV_DONTNEED))
		fail(state, "posix_fadvise");
}

static const struct {
	const char *name;
	operation *run;
	unsigned int weight;
} operations[] = {
	{"read", do_read, 10},
	{"write", do_write, 10},
	{"pwritev", do_write_pieces, 4},
	{"append", do_append, 4},
	{"ftruncate", do_ftruncate, 4},
	{"truncate", do_truncate, 2},
	{"map read", do_map_read, 8},
	{"map write", do_map_write, 8},
	{"fallocate", do_allocate, 3},
	{"punch", do_punch, 4},
	{"zero range", do_zero, 3},
	{"copy", do_copy, 4},
	{"sync", do_sync, 1},
	{"seek", do_seek, 2},
	{"reopen", do_reopen, 2},
	{"drop cache", do_drop, 2},
};

#define OPERATION_COUNT (sizeof(operations) / sizeof(operations[0]))

/* An offset or a length: often at a page boundary, where mistakes live. */
static size_t choose(struct state *state, size_t bound)
{
	size_t number = random_below(&state->numbers, bound);

	switch (random_below(&state->numbers, 4)) {
	case 0:
		return number & ~(size_t)(PAGE - 1);
	case 1:
		number = (number & ~(size_t)(PAGE - 1)) + random_below(&state->numbers, 3);
		return number ? number - 1 : 0;
	default:
		return number;
	}
}

static void check_everything(struct state *state)
{
	ssize_t length = pread(state->fd, state->piece, MAX_SIZE, 0);

	if (length != (ssize_t)state->size)
		fail(state, "reading all returned another length");
	compare(state, state->piece, 0, state->size, "reading all returned other bytes");
	compare(state, state->map, 0, state->size, "all of the mapping shows other bytes");
}

static void step(struct state *state, unsigned long check)
{
	size_t offset = choose(state, MAX_SIZE - MAX_PIECE);
	size_t length = choose(state, random_below(&state->numbers, 4) ? 2 * PAGE : MAX_PIECE);
	unsigned int total = 0, chosen, index = 0;
	struct stat status;

	for (size_t i = 0; i < OPERATION_COUNT; i++)
		total += operations[i].weight;
	chosen = (unsigned int)random_below(&state->numbers, total);
	while (chosen >= operations[index].weight)
		chosen -= operations[index++].weight;
	journal_note(&state->journal, "%s offset %zu length %zu, size %zu", operations[index].name,
		     offset, length, state->size);
	operations[index].run(state, offset, length);
	if (fstat(state->fd, &status) || status.st_size != (off_t)state->size)
		fail(state, "fstat tells another size");
	if (state->journal.step % check == 0)
		check_everything(state);
}

int main(int argc, char **argv)
{
	static struct state state;
	struct random_options options;
	int first = random_take_options(&options, argc, argv);

	if (first < 0 || first >= argc || chdir(argv[first])) {
		fputs("usage: random_files [--seed N] [--steps N] [--check N] DIRECTORY\n", stderr);
		return 2;
	}
	state.numbers.state = options.seed;
	unlink(FILE_NAME);
	open_file(&state, 0);
	while (state.journal.step < options.steps && !state.failure)
		step(&state, options.check);
	if (!state.failure)
		check_everything(&state);
	close_file(&state);
	unlink(FILE_NAME);
	if (state.failure) {
		printf("FAIL random_files --seed %llu: %s\n", (unsigned long long)options.seed,
		       state.failure);
		journal_print(&state.journal);
		return 1;
	}
	printf("random_files: %lu steps passed, seed %llu\n", state.journal.step,
	       (unsigned long long)options.seed);
	return 0;
}

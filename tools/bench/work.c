/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of tools/bench/share that no common program does: marks between which is measured, and
 * plain system calls in great numbers. Static, so that it runs in any guest.
 *
 *   work mark before|after             "MARK NAME INTERRUPTS": of virtio devices so far; a moment
 * of rest comes after the first and before the second work stat FILES TIMES              lstat of
 * each file of the tree, and of an absent name in ten work open FILES TIMES              open, read
 * to the end, close work write|read FILE MIB           from the beginning to the end, 1 MiB each
 *   work random-write|random-read FILE MIB COUNT     4 KiB each
 *   work writers COUNT MIB             as many processes, each with a file of its own, 64 KiB each
 *
 * Files of the tree are named dDDD/fFFFFF, FILES_PER_DIRECTORY in each directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILES_PER_DIRECTORY 100U
#define MIB                 (1UL << 20)

static char buffer[MIB];

static void need(bool condition, const char *what)
{
	if (!condition) {
		perror(what);
		exit(1);
	}
}

static unsigned long number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || !*text) {
		fprintf(stderr, "work: %s is not a number\n", text);
		exit(2);
	}
	return value;
}

/* The sum over the lines of /proc/interrupts that name a virtio device; 0 where there is none. */
static unsigned long virtio_interrupts(void)
{
	FILE *file = fopen("/proc/interrupts", "re");
	unsigned long sum = 0;
	char line[1024];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		char *at = strchr(line, ':');

		if (!at || !strstr(line, "virtio"))
			continue;
		for (at++;;) {
			char *end;
			unsigned long count = strtoul(at, &end, 10);

			if (end == at || (*end && *end != ' '))
				break;
			sum += count;
			at = end;
		}
	}
	fclose(file);
	return sum;
}

/* The host looks at us meanwhile: it may have a single processor. */
static void mark(const char *name)
{
	const struct timespec rest = {.tv_nsec = 300000000};
	bool after = strcmp(name, "after") == 0;

	if (after)
		nanosleep(&rest, NULL);
	printf("MARK %s %lu\n", name, virtio_interrupts());
	fflush(stdout);
	if (!after)
		nanosleep(&rest, NULL);
}

static void tree_path(char *path, size_t size, const char *kind, unsigned long index)
{
	snprintf(path, size, "d%03lu/%s%05lu", index / FILES_PER_DIRECTORY, kind, index);
}

static void work_stat(unsigned long files, unsigned long times)
{
	struct stat status;
	char path[64];

	while (times--) {
		for (unsigned long i = 0; i < files; i++) {
			tree_path(path, sizeof(path), "f", i);
			need(lstat(path, &status) == 0, path);
			if (i % 10)
				continue;
			tree_path(path, sizeof(path), "absent", i);
			need(lstat(path, &status) == -1 && errno == ENOENT, path);
		}
	}
}

static void work_open(unsigned long files, unsigned long times)
{
	char path[64];

	while (times--) {
		for (unsigned long i = 0; i < files; i++) {
			ssize_t count;
			int fd;

			tree_path(path, sizeof(path), "f", i);
			fd = open(path, O_RDONLY | O_CLOEXEC);
			need(fd >= 0, path);
			do {
				count = read(fd, buffer, sizeof(buffer));
				need(count >= 0, path);
			} while (count);
			close(fd);
		}
	}
}

static int open_file(const char *path, bool writes)
{
	int fd = open(path, (writes ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0644);

	need(fd >= 0, path);
	return fd;
}

static void work_stream(const char *path, unsigned long mib, size_t piece, bool writes)
{
	int fd = open_file(path, writes);

	for (unsigned long left = mib * (MIB / piece); left; left--) {
		ssize_t count = writes ? write(fd, buffer, piece) : read(fd, buffer, piece);

		need(count == (ssize_t)piece, path);
	}
	close(fd);
}

static void work_random(const char *path, unsigned long mib, unsigned long count, bool writes)
{
	uint64_t state = 1;
	int fd = open_file(path, writes);

	while (count--) {
		off_t offset;
		ssize_t done;

		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		offset = (off_t)((state >> 33) % (mib * 256)) * 4096;
		done = writes ? pwrite(fd, buffer, 4096, offset) : pread(fd, buffer, 4096, offset);
		need(done == 4096, path);
	}
	close(fd);
}

static void work_writers(unsigned long count, unsigned long mib)
{
	for (unsigned long i = 0; i < count; i++) {
		pid_t child = fork();

		need(child >= 0, "fork");
		if (child == 0) {
			char path[32];

			snprintf(path, sizeof(path), "writer%lu", i);
			work_stream(path, mib, 65536, true);
			_exit(0);
		}
	}
	while (count--) {
		int status;

		need(wait(&status) > 0 && status == 0, "a writer");
	}
}

static bool is(const char *name, int argc, int arguments, char **argv)
{
	return argc == arguments + 2 && strcmp(argv[1], name) == 0;
}

int main(int argc, char **argv)
{
	memset(buffer, 'x', sizeof(buffer));
	if (is("mark", argc, 1, argv))
		mark(argv[2]);
	else if (is("stat", argc, 2, argv))
		work_stat(number(argv[2]), number(argv[3]));
	else if (is("open", argc, 2, argv))
		work_open(number(argv[2]), number(argv[3]));
	else if (is("write", argc, 2, argv))
		work_stream(argv[2], number(argv[3]), MIB, true);
	else if (is("read", argc, 2, argv))
		work_stream(argv[2], number(argv[3]), MIB, false);
	else if (is("random-write", argc, 3, argv))
		work_random(argv[2], number(argv[3]), number(argv[4]), true);
	else if (is("random-read", argc, 3, argv))
		work_random(argv[2], number(argv[3]), number(argv[4]), false);
	else if (is("writers", argc, 2, argv))
		work_writers(number(argv[2]), number(argv[3]));
	else {
		fprintf(stderr, "work: the comment in work.c lists what it does\n");
		return 2;
	}
	return 0;
}

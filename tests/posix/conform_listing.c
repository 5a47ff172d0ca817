/* SPDX-License-Identifier: Apache-2.0 */
/* Listings: every name once, its type and number, positions that stay good. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/conform.h"

#define LARGE_COUNT 10000
#define SMALL_COUNT 300

static void make_file(struct suite *suite, const char *path)
{
	close(must(suite, open(path, O_WRONLY | O_CREAT, 0644), path));
}

/* The number in the name of an entry, -1 for "." and "..", -2 for what should not be there. */
static int entry_index(const char *name, int count)
{
	char *end;
	long index;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -1;
	index = strncmp(name, "entry", 5) == 0 ? strtol(name + 5, &end, 10) : -2;
	return index < 0 || *end || index >= count ? -2 : (int)index;
}

/* Reads @directory to its end and counts how often each entry is there. */
static int count_entries(struct suite *suite, DIR *directory, unsigned char *seen, int count)
{
	struct dirent *entry;
	int dots = 0;

	memset(seen, 0, (size_t)count);
	errno = 0;
	while ((entry = readdir(directory)) != NULL) {
		int index = entry_index(entry->d_name, count);

		if (index >= 0)
			seen[index]++;
		else if (index == -1)
			dots++;
		else
			check_true(suite, false, "%s belongs into the listing", entry->d_name);
	}
	check_equal(suite, errno, 0, "errno at the end of a listing");
	return dots;
}

static void make_entries(struct suite *suite, const char *path, int count)
{
	char name[64];

	must(suite, mkdir(path, 0755), "mkdir");
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s/entry%d", path, i);
		make_file(suite, name);
	}
}

static void remove_entries(struct suite *suite, const char *path, int count)
{
	char name[64];

	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s/entry%d", path, i);
		unlink(name);
	}
	check_result(suite, rmdir(path), 0, "rmdir of a directory emptied");
}

static void check_types(struct suite *suite)
{
	static const struct {
		const char *name;
		unsigned char type;
	} rows[] = {
		{"file", DT_REG},  {"directory", DT_DIR}, {"link", DT_LNK},
		{"fifo", DT_FIFO}, {"socket", DT_SOCK},
	};
	unsigned int found = 0;
	struct dirent *entry;
	struct stat status;
	DIR *directory;

	must(suite, mkdir("t", 0755), "mkdir");
	make_file(suite, "t/file");
	must(suite, mkdir("t/directory", 0755), "mkdir");
	must(suite, symlink("nowhere", "t/link"), "symlink");
	must(suite, mkfifo("t/fifo", 0644), "mkfifo");
	must(suite, mknod("t/socket", S_IFSOCK | 0644, 0), "mknod");
	/* Once as it comes, once when the names are known already. */
	for (int round = 0; round < 2; round++) {
		directory = opendir("t");
		while (directory && (entry = readdir(directory)) != NULL) {
			if (fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW))
				continue;
			found++;
			check_equal(suite, entry->d_type, IFTODT(status.st_mode), "d_type of %s",
				    entry->d_name);
			if (strcmp(entry->d_name, "..") != 0)
				check_equal(suite, (long)entry->d_ino, (long)status.st_ino,
					    "d_ino of %s", entry->d_name);
			for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
				if (strcmp(entry->d_name, rows[i].name) == 0)
					check_equal(suite, entry->d_type, rows[i].type,
						    "d_type of the %s", rows[i].name);
		}
		if (directory)
			closedir(directory);
	}
	check_equal(suite, found, 14, "entries in two listings");
}

/* telldir gives positions that seekdir finds again, in any order. */
static void check_positions(struct suite *suite)
{
	static long positions[SMALL_COUNT + 8];
	static char names[SMALL_COUNT + 8][24];
	DIR *directory = opendir("s");
	struct dirent *entry;
	int count = 0;

	if (!directory) {
		check_true(suite, false, "opendir");
		return;
	}
	for (;;) {
		positions[count] = telldir(directory);
		entry = readdir(directory);
		if (!entry || count >= SMALL_COUNT + 2)
			break;
		snprintf(names[count++], sizeof(names[0]), "%.23s", entry->d_name);
	}
	check_equal(suite, count, SMALL_COUNT + 2, "entries between positions");
	for (int i = 0, at = 0; i < count; i++, at = (at + 97) % count) {
		seekdir(directory, positions[at]);
		entry = readdir(directory);
		check_true(suite, entry && strcmp(entry->d_name, names[at]) == 0,
			   "seekdir to entry %d finds it again", at);
	}
	seekdir(directory, positions[count]);
	check_true(suite, readdir(directory) == NULL, "seekdir to the end finds nothing");
	rewinddir(directory);
	entry = readdir(directory);
	check_true(suite, entry && strcmp(entry->d_name, names[0]) == 0,
		   "rewinddir finds the first entry");
	closedir(directory);
}

/* Removing what was listed skips nothing of the rest; this is how rm -r works. */
static void check_removing(struct suite *suite)
{
	unsigned char seen[SMALL_COUNT];
	struct dirent *entry;
	int removed = 0, twice = 0;
	DIR *directory = opendir("s");

	memset(seen, 0, sizeof(seen));
	while (directory && (entry = readdir(directory)) != NULL) {
		int index = entry_index(entry->d_name, SMALL_COUNT);

		if (index < 0)
			continue;
		twice += seen[index]++;
		if (unlinkat(dirfd(directory), entry->d_name, 0) == 0)
			removed++;
	}
	check_equal(suite, removed, SMALL_COUNT, "files removed while listing");
	check_equal(suite, twice, 0, "files listed twice while removing");
	if (directory) {
		rewinddir(directory);
		check_equal(suite, count_entries(suite, directory, seen, SMALL_COUNT), 2,
			    "dots after that");
		for (int i = 0; i < SMALL_COUNT; i++)
			check_equal(suite, seen[i], 0, "entry %d after that", i);
		closedir(directory);
	}
}

/* rewinddir(3): what is made after opendir is seen after it. */
static void check_rewind(struct suite *suite)
{
	unsigned char seen[3];
	DIR *directory;

	make_entries(suite, "r", 1);
	directory = opendir("r");
	if (!directory) {
		check_true(suite, false, "opendir");
		return;
	}
	check_equal(suite, count_entries(suite, directory, seen, 3), 2, "dots");
	make_file(suite, "r/entry1");
	rewinddir(directory);
	check_equal(suite, count_entries(suite, directory, seen, 3), 2, "dots");
	check_equal(suite, seen[0] + 2 * seen[1], 3, "both entries after rewinddir");
	must(suite, rename("r/entry0", "r/entry2"), "rename");
	rewinddir(directory);
	count_entries(suite, directory, seen, 3);
	check_equal(suite, seen[0] + 2 * seen[1] + 4 * seen[2], 6, "entries after a rename");
	closedir(directory);
	unlink("r/entry1");
	unlink("r/entry2");
	rmdir("r");
}

void conform_listing(struct suite *suite)
{
	char entries[24];
	int fd;

	check_types(suite);
	make_entries(suite, "s", SMALL_COUNT);
	check_positions(suite);
	check_removing(suite);
	check_result(suite, rmdir("s"), 0, "rmdir of the directory emptied");
	check_rewind(suite);
	must(suite, mkdir("gone", 0755), "mkdir");
	fd = must(suite, open("gone", O_RDONLY | O_DIRECTORY), "open");
	check_result(suite, getdents64(fd, entries, 8), EINVAL, "getdents64 into too little");
	check_result(suite, rmdir("gone"), 0, "rmdir of an open directory");
	check_result(suite, getdents64(fd, entries, sizeof(entries)), ENOENT,
		     "getdents64 of a removed directory");
	close(fd);
}

/* Ten thousand entries, each once, by small and by large reads. */
void conform_large_listing(struct suite *suite)
{
	static unsigned char seen[LARGE_COUNT];
	static char small[1000];
	DIR *directory;
	ssize_t length;
	int fd, once = 0, total = 0;
	const char *path = suite->large ? suite->large : "large";

	if (!suite->large)
		make_entries(suite, path, LARGE_COUNT);
	directory = opendir(path);
	if (!directory) {
		check_true(suite, false, "opendir");
		return;
	}
	check_equal(suite, count_entries(suite, directory, seen, LARGE_COUNT), 2, "dots");
	for (int i = 0; i < LARGE_COUNT; i++)
		once += seen[i] == 1;
	check_equal(suite, once, LARGE_COUNT, "entries listed once");
	closedir(directory);
	fd = must(suite, open(path, O_RDONLY | O_DIRECTORY), "open");
	while ((length = getdents64(fd, small, sizeof(small))) > 0)
		for (ssize_t at = 0; at < length; total++) {
			unsigned short size;

			memcpy(&size, small + at + offsetof(struct dirent64, d_reclen), 2);
			at += size;
		}
	check_equal(suite, length, 0, "the end of many small reads");
	check_equal(suite, total, LARGE_COUNT + 2, "entries in many small reads");
	close(fd);
	if (!suite->large)
		remove_entries(suite, path, LARGE_COUNT);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/posix/differential.h"

#define TEXT 256

void differential_describe(int directory, const char *path, char *text, size_t size)
{
	struct stat status;

	if (fstatat(directory, path, &status, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) {
		snprintf(text, size, "%s", strerrorname_np(errno));
		return;
	}
	/* What a directory's size is, each file system says in its own way. */
	snprintf(text, size, "mode %o links %lu size %ld", status.st_mode,
		 (unsigned long)status.st_nlink,
		 S_ISDIR(status.st_mode) ? 0L : (long)status.st_size);
}

static bool differ(const char *path, const char *what, const char *one, const char *other)
{
	printf("%s: %s differs: %s, and %s\n", path, what, one, other);
	return false;
}

static bool same_target(int one, int other, const char *name, const char *path)
{
	char targets[2][PATH_MAX + 1] = {"", ""};
	ssize_t length;

	for (int side = 0; side < 2; side++) {
		length = readlinkat(side ? other : one, name, targets[side], PATH_MAX);
		targets[side][length > 0 ? length : 0] = '\0';
	}
	return strcmp(targets[0], targets[1]) == 0 ||
	       differ(path, "the target", targets[0], targets[1]);
}

/* The content of files that may be read; that they may has been compared with their modes. */
static bool same_content(int one, int other, const char *name, const char *path)
{
	static char data[2][DATA_BYTES];
	int fds[2] = {openat(one, name, O_RDONLY | O_CLOEXEC),
		      openat(other, name, O_RDONLY | O_CLOEXEC)};
	ssize_t lengths[2];
	bool same = (fds[0] < 0) == (fds[1] < 0);

	while (same && fds[0] >= 0) {
		for (int side = 0; side < 2; side++)
			lengths[side] = read(fds[side], data[side], DATA_BYTES);
		same = lengths[0] == lengths[1] &&
		       (lengths[0] <= 0 || memcmp(data[0], data[1], (size_t)lengths[0]) == 0);
		if (lengths[0] <= 0)
			break;
	}
	for (int side = 0; side < 2; side++)
		if (fds[side] >= 0)
			close(fds[side]);
	return same || differ(path, "the content", "one", "another");
}

static bool same_directory(int one, int other, const char *path);

static bool same_entry(int one, int other, const char *name, const char *path)
{
	char texts[2][TEXT], below[PATH_MAX];
	struct stat status;
	bool same;

	snprintf(below, sizeof(below), "%s/%s", path, name);
	differential_describe(one, name, texts[0], TEXT);
	differential_describe(other, name, texts[1], TEXT);
	if (strcmp(texts[0], texts[1]) != 0)
		return differ(below, "what stat tells", texts[0], texts[1]);
	if (fstatat(one, name, &status, AT_SYMLINK_NOFOLLOW))
		return true;
	if (S_ISLNK(status.st_mode))
		return same_target(one, other, name, below);
	if (S_ISREG(status.st_mode))
		return same_content(one, other, name, below);
	if (!S_ISDIR(status.st_mode))
		return true;
	int fds[2] = {openat(one, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		      openat(other, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

	if ((fds[0] < 0) != (fds[1] < 0))
		same = differ(below, "whether it opens", fds[0] < 0 ? "no" : "yes",
			      fds[1] < 0 ? "no" : "yes");
	else
		same = fds[0] < 0 || same_directory(fds[0], fds[1], below);
	for (int side = 0; side < 2; side++)
		if (fds[side] >= 0)
			close(fds[side]);
	return same;
}

static int count_names(int directory)
{
	DIR *listing = fdopendir(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	int count = 0;

	while (listing && readdir(listing))
		count++;
	if (listing)
		closedir(listing);
	return count;
}

/* Every name of the one is the same in the other, and there are as many. */
static bool same_directory(int one, int other, const char *path)
{
	DIR *listing = fdopendir(openat(one, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	char counts[2][16];
	struct dirent *entry;
	bool same = true;
	int count = 0;

	while (same && listing && (entry = readdir(listing)) != NULL) {
		count++;
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			same = same_entry(one, other, entry->d_name, path);
	}
	if (listing)
		closedir(listing);
	if (!same || count == count_names(other))
		return same;
	snprintf(counts[0], sizeof(counts[0]), "%d", count);
	snprintf(counts[1], sizeof(counts[1]), "%d", count_names(other));
	return differ(path, "the number of names", counts[0], counts[1]);
}

bool differential_same_tree(int one, int other)
{
	return same_directory(one, other, ".");
}

void differential_clear(int directory)
{
	DIR *listing = fdopendir(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;

	while (listing && (entry = readdir(listing)) != NULL) {
		const char *name = entry->d_name;
		int below;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    unlinkat(directory, name, 0) == 0)
			continue;
		/* A symlink would be gone by now. */
		if (fchmodat(directory, name, 0700, 0))
			continue;
		below = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (below >= 0) {
			differential_clear(below);
			close(below);
		}
		unlinkat(directory, name, AT_REMOVEDIR);
	}
	if (listing)
		closedir(listing);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/posix/subject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct subject_kind {
	const char *name;
	mode_t type;        /* of the name itself */
	mode_t target_type; /* of what it leads to */
	int path_error;
};

static const struct subject_kind kinds[SUBJECT_COUNT] = {
	[SUBJECT_MISSING] = {"a missing name", 0, 0, 0},
	[SUBJECT_FILE] = {"a file", S_IFREG, S_IFREG, 0},
	[SUBJECT_DIRECTORY] = {"an empty directory", S_IFDIR, S_IFDIR, 0},
	[SUBJECT_FULL_DIRECTORY] = {"a full directory", S_IFDIR, S_IFDIR, 0},
	[SUBJECT_LINK_TO_FILE] = {"a symlink to a file", S_IFLNK, S_IFREG, 0},
	[SUBJECT_LINK_TO_DIRECTORY] = {"a symlink to a directory", S_IFLNK, S_IFDIR, 0},
	[SUBJECT_LINK_TO_NOTHING] = {"a dangling symlink", S_IFLNK, 0, 0},
	[SUBJECT_LINK_TO_ITSELF] = {"a symlink to itself", S_IFLNK, 0, 0},
	[SUBJECT_FIFO] = {"a FIFO", S_IFIFO, S_IFIFO, 0},
	[SUBJECT_SOCKET] = {"a socket", S_IFSOCK, S_IFSOCK, 0},
	[SUBJECT_BELOW_MISSING] = {"a name below a missing one", 0, 0, ENOENT},
	[SUBJECT_BELOW_FILE] = {"a name below a file", 0, 0, ENOTDIR},
	[SUBJECT_BELOW_FIFO] = {"a name below a FIFO", 0, 0, ENOTDIR},
	[SUBJECT_BELOW_LINK_TO_NOTHING] = {"a name below a dangling symlink", 0, 0, ENOENT},
	[SUBJECT_BELOW_LOOP] = {"a name below a symlink to itself", 0, 0, ELOOP},
	[SUBJECT_LONG_NAME] = {"a name of 256 bytes", 0, 0, ENAMETOOLONG},
	[SUBJECT_LONG_PATH] = {"a path of 4096 bytes", 0, 0, ENAMETOOLONG},
	[SUBJECT_EMPTY_PATH] = {"an empty path", 0, 0, ENOENT},
};

const char *subject_name(enum subject subject)
{
	return kinds[subject].name;
}

int subject_path_error(enum subject subject)
{
	return kinds[subject].path_error;
}

mode_t subject_type(enum subject subject)
{
	return kinds[subject].type;
}

mode_t subject_target_type(enum subject subject)
{
	return kinds[subject].target_type;
}

int subject_follow_error(enum subject subject)
{
	if (kinds[subject].path_error)
		return kinds[subject].path_error;
	if (subject == SUBJECT_LINK_TO_ITSELF)
		return ELOOP;
	return kinds[subject].target_type ? 0 : ENOENT;
}

static const char *beside(const char *base, const char *suffix, char path[NAME_MAX + 1])
{
	snprintf(path, NAME_MAX + 1, "%s%s", base, suffix);
	return path;
}

static void make_file(struct suite *suite, const char *path)
{
	int fd = must(suite, open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644), "making a file");

	if (write(fd, SUBJECT_CONTENT, strlen(SUBJECT_CONTENT)) != (ssize_t)strlen(SUBJECT_CONTENT))
		must(suite, -1, "filling a file");
	close(fd);
}

void subject_make(struct suite *suite, enum subject subject, const char *base)
{
	char path[NAME_MAX + 1];

	switch (subject) {
	case SUBJECT_FILE:
	case SUBJECT_BELOW_FILE:
		make_file(suite, base);
		break;
	case SUBJECT_DIRECTORY:
		must(suite, mkdir(base, 0755), "making a directory");
		break;
	case SUBJECT_FULL_DIRECTORY:
		must(suite, mkdir(base, 0755), "making a directory");
		make_file(suite, beside(base, "/inside", path));
		break;
	case SUBJECT_LINK_TO_FILE:
		make_file(suite, beside(base, ".target", path));
		must(suite, symlink(path, base), "making a symlink");
		break;
	case SUBJECT_LINK_TO_DIRECTORY:
		must(suite, mkdir(beside(base, ".target", path), 0755), "making a directory");
		must(suite, symlink(path, base), "making a symlink");
		break;
	case SUBJECT_LINK_TO_NOTHING:
	case SUBJECT_BELOW_LINK_TO_NOTHING:
		must(suite, symlink(beside(base, ".target", path), base), "making a symlink");
		break;
	case SUBJECT_LINK_TO_ITSELF:
	case SUBJECT_BELOW_LOOP:
		must(suite, symlink(base, base), "making a symlink");
		break;
	case SUBJECT_FIFO:
	case SUBJECT_BELOW_FIFO:
		must(suite, mkfifo(base, 0644), "making a FIFO");
		break;
	case SUBJECT_SOCKET:
		must(suite, mknod(base, S_IFSOCK | 0644, 0), "making a socket");
		break;
	default:
		break;
	}
}

static void remove_any(struct suite *suite, const char *path)
{
	char inside[NAME_MAX + 1];

	if (unlink(path) == 0 || errno == ENOENT)
		return;
	if (errno != EISDIR)
		must(suite, -1, path);
	if (rmdir(path) == 0)
		return;
	unlink(beside(path, "/inside", inside));
	must(suite, rmdir(path), path);
}

void subject_remove(struct suite *suite, enum subject subject, const char *base)
{
	char path[NAME_MAX + 1];

	remove_any(suite, base);
	if (kinds[subject].type == S_IFLNK)
		remove_any(suite, beside(base, ".target", path));
}

const char *subject_path(enum subject subject, const char *base, char path[PATH_MAX + 2])
{
	switch (subject) {
	case SUBJECT_BELOW_MISSING:
	case SUBJECT_BELOW_FILE:
	case SUBJECT_BELOW_FIFO:
	case SUBJECT_BELOW_LINK_TO_NOTHING:
	case SUBJECT_BELOW_LOOP:
		snprintf(path, PATH_MAX + 2, "%s/x", base);
		break;
	case SUBJECT_LONG_NAME:
		memset(path, 'n', NAME_MAX + 1);
		path[NAME_MAX + 1] = '\0';
		break;
	case SUBJECT_LONG_PATH:
		for (size_t at = 0; at < PATH_MAX; at += 2)
			memcpy(path + at, "./", 2);
		path[PATH_MAX - 1] = 'x';
		path[PATH_MAX] = '\0';
		break;
	case SUBJECT_EMPTY_PATH:
		path[0] = '\0';
		break;
	default:
		snprintf(path, PATH_MAX + 2, "%s", base);
		break;
	}
	return path;
}

struct subject_state subject_state(const char *path)
{
	struct subject_state state = {.exists = false};
	struct stat status;

	if (lstat(path, &status))
		return state;
	state.exists = true;
	state.number = status.st_ino;
	state.mode = status.st_mode;
	state.links = status.st_nlink;
	state.size = status.st_size;
	return state;
}

bool subject_same(const struct subject_state *one, const struct subject_state *other)
{
	return one->exists == other->exists && one->number == other->number &&
	       one->mode == other->mode && one->links == other->links && one->size == other->size;
}

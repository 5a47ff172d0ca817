/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"

#define RUN_NAME_ATTEMPTS 64
#define LOCK_ATTEMPTS     10

/* The XDG base directory specification: a relative path counts for nothing. */
int review_state_path(char path[PATH_MAX], const char *name)
{
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	int length;

	if (!home || home[0] != '/') {
		const struct passwd *user = getpwuid(geteuid());

		home = user ? user->pw_dir : "/";
	}
	if (state && state[0] == '/')
		length = snprintf(path, PATH_MAX, "%s/mvagent/%s", state, name);
	else
		length = snprintf(path, PATH_MAX, "%s/.local/state/mvagent/%s", home, name);
	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int review_store_path(char path[PATH_MAX])
{
	return review_state_path(path, "runs");
}

int review_state_make(char *path)
{
	for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = '\0';
		if (mkdir(path, 0700) && errno != EEXIST)
			return -errno;
		if (!slash)
			return 0;
		*slash = '/';
	}
}

int review_store_open(bool create)
{
	char path[PATH_MAX];
	int fd, error = review_store_path(path);

	if (!error && create)
		error = review_state_make(path);
	if (error)
		return log_errno(error, "cannot make the directory for runs, %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		return log_errno(-errno, "cannot open the directory for runs, %s", path);
	return fd < 0 ? -errno : fd;
}

int review_make_run_name(char name[REVIEW_RUN_NAME_BYTES])
{
	time_t now = time(NULL);
	uint16_t random;
	struct tm parts;
	size_t length;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	gmtime_r(&now, &parts);
	length = strftime(name, REVIEW_RUN_NAME_BYTES, "%Y%m%d-%H%M%S-", &parts);
	snprintf(name + length, REVIEW_RUN_NAME_BYTES - length, "%04x", random);
	return 0;
}

/* Locks a run that was just made. Before that it may be taken for one of a process that was killed
 * (`mvagent runs --repair`), and be removed. 0 or -errno; -EEXIST: it is not there any more. */
static int lock_new(int store_fd, const char *name, int fd)
{
	struct stat made, there;
	int error = review_run_lock(fd);

	if (!error && fstat(fd, &made))
		error = -errno;
	if (!error && (fstatat(store_fd, name, &there, AT_SYMLINK_NOFOLLOW) ||
		       there.st_dev != made.st_dev || there.st_ino != made.st_ino))
		error = -EEXIST;
	return error;
}

int review_store_create_run(int store_fd, char name[REVIEW_RUN_NAME_BYTES])
{
	for (int attempt = 0; attempt < RUN_NAME_ATTEMPTS; attempt++) {
		int fd, error = review_make_run_name(name);

		if (error)
			return error;
		if (mkdirat(store_fd, name, 0700)) {
			if (errno != EEXIST)
				return -errno;
			continue;
		}
		fd = review_store_open_run(store_fd, name);
		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return fd;
		error = lock_new(store_fd, name, fd);
		if (!error)
			return fd;
		fd_close(&fd);
		if (error != -EEXIST)
			return error;
	}
	return -EEXIST;
}

int review_store_create_share(int run_fd, unsigned int index, mode_t mode, int *directory_fd,
			      int *upper_fd)
{
	int FD_CLEANUP directory = -1, FD_CLEANUP upper = -1;
	char name[16];
	int error;

	snprintf(name, sizeof(name), "share%u", index);
	if (mkdirat(run_fd, name, 0700))
		return -errno;
	directory = tree_open_directory(run_fd, name, O_RDONLY);
	if (directory < 0)
		return directory;
	if (mkdirat(directory, REVIEW_UPPER, 0700))
		return -errno;
	upper = tree_open_directory(directory, REVIEW_UPPER, O_RDONLY);
	if (upper < 0)
		return upper;
	error = tree_change_mode(upper, mode & 0777);
	if (error)
		return error;
	*directory_fd = fd_take(&directory);
	*upper_fd = fd_take(&upper);
	return 0;
}

/* One that is just being made, or never was, has none. */
static bool has_record(int store_fd, const char *name)
{
	char path[REVIEW_RUN_NAME_BYTES + sizeof(REVIEW_RUN_FILE)];

	snprintf(path, sizeof(path), "%s/" REVIEW_RUN_FILE, name);
	return faccessat(store_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int list(int store_fd, bool recorded, struct tree_names *names)
{
	int error = tree_list(store_fd, names);
	size_t kept = 0;

	for (size_t i = 0; i < names->count; i++) {
		if (review_is_run_name(names->names[i]) &&
		    has_record(store_fd, names->names[i]) == recorded)
			names->names[kept++] = names->names[i];
		else
			free(names->names[i]);
	}
	names->count = kept;
	return error;
}

int review_store_list(int store_fd, struct tree_names *names)
{
	return list(store_fd, true, names);
}

int review_store_list_unborn(int store_fd, struct tree_names *names)
{
	return list(store_fd, false, names);
}

int review_store_open_run(int store_fd, const char *name)
{
	int fd;

	if (!review_is_run_name(name))
		return -EINVAL;
	fd = openat(store_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int review_run_lock(int run_fd)
{
	static const struct timespec pause = {.tv_nsec = 20000000};

	/* Those who only ask whether it is locked hold it for a moment. */
	for (int attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
		if (flock(run_fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return -errno;
		nanosleep(&pause, NULL);
	}
	return -EWOULDBLOCK;
}

bool review_run_is_locked(int run_fd)
{
	if (flock(run_fd, LOCK_SH | LOCK_NB))
		return true;
	flock(run_fd, LOCK_UN);
	return false;
}

int review_run_set_mark(int run_fd, const char *mark)
{
	int FD_CLEANUP fd = openat(run_fd, mark, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	return fsync(fd) || fsync(run_fd) ? -errno : 0;
}

bool review_run_has_mark(int run_fd, const char *mark)
{
	return faccessat(run_fd, mark, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/record/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/review/store.h"

/* Nobody else may put a record there, or a link in its way. */
static int check_owner(int fd, const char *path)
{
	struct stat status;

	if (fstat(fd, &status))
		return log_errno(-errno, "cannot look at the directory for records, %s", path);
	if (status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	log_error("the directory for records, %s, is not yours alone to write; 'chmod 700' it, or "
		  "give another with --record",
		  path);
	return -EPERM;
}

int record_store_open(const char *given, bool create, char path[PATH_MAX])
{
	char wanted[PATH_MAX];
	int FD_CLEANUP fd = -1;
	int error = 0;

	if (given)
		error = snprintf(wanted, sizeof(wanted), "%s", given) < PATH_MAX ? 0
										 : -ENAMETOOLONG;
	else
		error = review_state_path(wanted, "records");
	if (!error && create)
		error = review_state_make(wanted);
	if (error)
		return log_errno(error,
				 "cannot make the directory for records, %s (--record DIR keeps "
				 "them elsewhere, --no-record keeps none)",
				 wanted);
	fd = open(wanted, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && !given)
		return -ENOENT;
	if (fd < 0 || !realpath(wanted, path)) {
		error = log_errno(-errno, "cannot open the directory for records, %s", wanted);
		return error == -ENOENT ? -ENOTDIR
					: error; /* ENOENT means: none, and all is well */
	}
	error = create ? check_owner(fd, path) : 0;
	return error ? error : fd_take(&fd);
}

int record_store_list(int store_fd, struct tree_names *names)
{
	int error = tree_list(store_fd, names);
	size_t kept = 0;

	for (size_t i = 0; i < names->count; i++) {
		char *suffix = strrchr(names->names[i], '.');

		if (suffix && strcmp(suffix, RECORD_SUFFIX) == 0)
			*suffix = '\0';
		if (suffix && review_is_run_name(names->names[i]))
			names->names[kept++] = names->names[i];
		else
			free(names->names[i]);
	}
	names->count = kept;
	return error;
}

static int read_all(int fd, char **text, size_t *length)
{
	const size_t limit = LIMIT_RECORD_BYTES + 4 * LIMIT_RECORD_LINE_BYTES;
	struct stat status;
	int error;

	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	if ((uint64_t)status.st_size > limit)
		return -EFBIG;
	*length = (size_t)status.st_size;
	*text = malloc(*length + 1);
	if (!*text)
		return -ENOMEM;
	error = fd_pread_full(fd, *text, *length, 0);
	(*text)[*length] = '\0';
	if (error) {
		free(*text);
		*text = NULL;
	}
	return error;
}

int record_read_file(int directory_fd, const char *path, char **text, size_t *length, bool *running)
{
	int FD_CLEANUP fd =
		openat(directory_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	*text = NULL;
	if (fd < 0)
		return -errno;
	/* Asked first: what is written after that is missed, the end of the run is not. */
	*running = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	return read_all(fd, text, length);
}

static void file_name(const char *run, char name[RECORD_NAME_BYTES])
{
	snprintf(name, RECORD_NAME_BYTES, "%s" RECORD_SUFFIX, run);
}

int record_store_read(int store_fd, const char *run, char **text, size_t *length, bool *running)
{
	char name[RECORD_NAME_BYTES];

	*text = NULL;
	if (!review_is_run_name(run))
		return -EINVAL;
	file_name(run, name);
	return record_read_file(store_fd, name, text, length, running);
}

int record_store_remove(int store_fd, const char *run)
{
	char name[RECORD_NAME_BYTES];
	int FD_CLEANUP fd = -1;

	if (!review_is_run_name(run))
		return -EINVAL;
	file_name(run, name);
	fd = openat(store_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_SH | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return unlinkat(store_fd, name, 0) ? -errno : 0;
}

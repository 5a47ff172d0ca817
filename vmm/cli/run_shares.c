/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_shares.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/cache_directory.h"
#include "vmm/review/store.h"

static bool path_is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return strncmp(path, directory, length) == 0 && path[length] == '/';
}

/* Places in the guest that are the guest's own: a share there would hide what it needs to work. */
static bool path_is_taken(const char *path)
{
	static const char *const trees[] = {"/dev",  "/proc", "/sys",   "/usr", "/bin",
					    "/sbin", "/lib",  "/lib64", "/etc"};

	/* What lies in /run is the user's (sockets, mounts): a share below it hides nothing. */
	if (strcmp(path, "/run") == 0)
		return true;
	for (unsigned int i = 0; i < ARRAY_SIZE(trees); i++) {
		if (strcmp(path, trees[i]) == 0)
			return true;
		/* The kernel's own trees hold no directories of ours, but /dev/shm does. */
		if (path_is_below(path, trees[i]))
			return !path_is_below(path, "/dev/shm");
	}
	return false;
}

/* An absolute path without ".", "..", "//" or a trailing slash. */
static bool path_is_canonical(const char *path)
{
	const char *component = path;

	if (path[0] != '/' || !path[1])
		return false;
	while (*component) {
		size_t length = strcspn(++component, "/");

		if (length == 0 || (length == 1 && component[0] == '.') ||
		    (length == 2 && component[0] == '.' && component[1] == '.'))
			return false;
		component += length;
	}
	return true;
}

/* What may have been meant as the share's mode, and is none; NULL: nothing. */
static const char *share_mode_in(const char *given)
{
	const char *colon = strrchr(given, ':');

	return colon && !strchr(colon, '/') ? colon : NULL;
}

static int share_open_directory(struct shared_directory *directory, const char *given)
{
	directory->directory_fd = open(given, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory->directory_fd < 0 && errno == ENOTDIR) {
		log_error("--share %s: it is not a directory; share the directory that holds it",
			  given);
		return -ENOTDIR;
	}
	if (directory->directory_fd < 0 && errno == ENOENT && share_mode_in(given)) {
		log_error("--share %s: there is no such directory, and '%s' is no mode; DIR, "
			  "DIR:rw, DIR:ro or DIR:review can be given",
			  given, share_mode_in(given));
		return -ENOENT;
	}
	if (directory->directory_fd < 0)
		return log_errno(-errno, "--share %s", given);
	if (faccessat(AT_FDCWD, given, R_OK | X_OK, AT_EACCESS) < 0)
		return log_errno(-errno, "--share %s: you cannot read this directory yourself",
				 given);
	return 0;
}

/* Whether @path, made canonical, is @directory or lies in it. */
static bool path_is_within(const char *path, const char *directory)
{
	char resolved[PATH_MAX];

	if (!path || !*path || !realpath(path, resolved))
		return false;
	return strcmp(directory, "/") == 0 || strcmp(resolved, directory) == 0 ||
	       path_is_below(resolved, directory);
}

/* A work tree is one project. These are all that a user has, or what mvagent itself relies on. */
static int share_check_extent(const char *given, const char *resolved)
{
	const struct passwd *user = getpwuid(getuid());
	char state[PATH_MAX], cache[PATH_MAX];
	const char *what = NULL;

	if (strcmp(resolved, "/") == 0)
		what = "it is this whole system";
	else if (path_is_within(getenv("HOME"), resolved) ||
		 (user && path_is_within(user->pw_dir, resolved)))
		what = "your home directory is in it, with all your keys and settings";
	else if (review_store_path(state) == 0 && path_is_within(state, resolved))
		what = "mvagent's own records of its runs are in it";
	else if (cache_directory_path(cache) == 0 && path_is_within(cache, resolved))
		what = "what mvagent keeps of this host's tools for later runs is in it";
	if (!what)
		return 0;
	log_error("--share %s: %s; share the project's directory, or add --share-anyway", given,
		  what);
	return -EPERM;
}

static int share_open(struct shared_directory *directory, const struct run_share *share,
		      bool anyway)
{
	char resolved[PATH_MAX];
	const char *at = share->at;
	int error = share_open_directory(directory, share->directory);

	if (error)
		return error;
	directory->read_only = share->read_only;
	directory->review = share->review;
	if (!realpath(share->directory, resolved))
		return log_errno(-errno, "--share %s: cannot find its full path", share->directory);
	error = anyway ? 0 : share_check_extent(share->directory, resolved);
	if (error)
		return error;
	if (!at)
		at = resolved;
	if (!path_is_canonical(at)) {
		log_error("--share %s: it cannot be mounted at '%s'; choose a plain absolute path "
			  "with "
			  "--at",
			  share->directory, at);
		return -EINVAL;
	}
	if (path_is_taken(at)) {
		log_error("--share %s: %s is the guest's own; choose another place with --at",
			  share->directory, at);
		return -EBUSY;
	}
	directory->path = strdup(at);
	directory->host_path = strdup(resolved);
	return directory->path && directory->host_path
		       ? 0
		       : log_errno(-ENOMEM, "--share %s", share->directory);
}

static int compare_paths(const void *a, const void *b)
{
	const struct shared_directory *one = a, *other = b;

	return strcmp(one->path, other->path);
}

int run_shares_open(struct run_shares *shares, const struct run_options *options)
{
	*shares = (struct run_shares){0};
	for (unsigned int i = 0; i < options->share_count; i++) {
		struct shared_directory *directory = &shares->directories[i];
		int error;

		directory->directory_fd = directory->upper_fd = directory->base_fd = -1;
		shares->count++;
		snprintf(directory->tag, sizeof(directory->tag), "share%u", i);
		error = share_open(directory, &options->shares[i], options->share_anyway);
		if (error)
			return error;
	}
	if (shares->count)
		shares->first = shares->directories[0].path;
	/* A path sorts before every path below it. */
	qsort(shares->directories, shares->count, sizeof(shares->directories[0]), compare_paths);
	for (unsigned int i = 1; i < shares->count; i++) {
		if (strcmp(shares->directories[i - 1].path, shares->directories[i].path) == 0) {
			log_error("--share: two shares want to be at %s; choose another place for "
				  "one "
				  "with --at",
				  shares->directories[i].path);
			return -EEXIST;
		}
	}
	return 0;
}

const char *run_shares_below(const char *path, const char *directory)
{
	size_t length = strcmp(directory, "/") == 0 ? 0 : strlen(directory);

	if (strncmp(path, directory, length) != 0 || (path[length] && path[length] != '/'))
		return NULL;
	return path[length] ? path + length + 1 : path + length;
}

void run_shares_destroy(struct run_shares *shares)
{
	for (unsigned int i = 0; i < shares->count; i++) {
		struct shared_directory *directory = &shares->directories[i];

		fd_close(&directory->directory_fd);
		fd_close(&directory->upper_fd);
		fd_close(&directory->base_fd);
		for (unsigned int k = 0; k < directory->hidden_count; k++)
			free(directory->hidden[k]);
		directory->hidden_count = 0;
		free(directory->path);
		free(directory->host_path);
		directory->path = directory->host_path = NULL;
	}
	shares->count = 0;
}

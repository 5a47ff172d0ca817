/* SPDX-License-Identifier: Apache-2.0 */
/* What processes that were killed have left outside the state directory. Only what is the user's
 * own, has one of our names, and is locked by nobody is taken for that. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/cgroup.h"
#include "vmm/cli/checklist_host.h"
#include "vmm/cli/demo_place.h"
#include "vmm/cli/repair.h"
#include "vmm/cli/selftest_place.h"
#include "vmm/fs/scan.h"
#include "vmm/review/store.h"
#include "vmm/review/upper.h"

/* What is younger may be in the making: a directory is locked right after it was made, and a key is
 * not locked at all. */
#define YOUNG_SECONDS 60

void repair_share(struct repair *repair, int directory_fd, const char *path)
{
	struct policy *policy = policy_create();
	struct scan_result result = {0};

	if (!policy || scan_run(&result, directory_fd, policy, true)) {
		log_error("%s could not be looked through for files in the making", path);
		repair->failed = true;
	}
	if (result.removed_count) {
		repair->removed += (unsigned int)result.removed_count;
		repair_tell(repair, path, "files in the making were removed: %llu",
			    (unsigned long long)result.removed_count);
	}
	scan_result_destroy(&result);
	policy_destroy(policy);
}

/* Opens what is called @name, if it is the user's, of that type, and nobody holds a lock on it. */
static int open_left(int directory_fd, const char *name, mode_t type, struct stat *status)
{
	int FD_CLEANUP fd =
		openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || fstat(fd, status) || (status->st_mode & S_IFMT) != type ||
	    status->st_uid != geteuid() || flock(fd, LOCK_EX | LOCK_NB))
		return -1;
	return fd_take(&fd);
}

/* A file with 32 hex digits: nothing else is in one that was planted. */
static bool is_planted(int directory_fd, const char *name)
{
	char text[CHECKLIST_MARK_SIZE + 1] = "";
	struct stat status;
	int FD_CLEANUP fd = -1;
	ssize_t length;

	if (strncmp(name, CHECKLIST_CANARY_PREFIX, strlen(CHECKLIST_CANARY_PREFIX)) != 0)
		return false;
	fd = open_left(directory_fd, name, S_IFREG, &status);
	length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	return length == CHECKLIST_MARK_SIZE - 1 &&
	       strspn(text, "0123456789abcdef") == (size_t)length;
}

static void remove_planted(struct repair *repair, int directory_fd, const char *path,
			   const char *name)
{
	char *whole;

	if (!is_planted(directory_fd, name) || unlinkat(directory_fd, name, 0))
		return;
	repair->removed++;
	if (asprintf(&whole, "%s/%s", path, name) < 0)
		return;
	repair_tell(repair, whole, "planted by 'mvagent review', removed");
	free(whole);
}

static bool is_old(const struct stat *status)
{
	return time(NULL) - status->st_mtime > YOUNG_SECONDS;
}

/* Of a directory that a command made for a while: that command's name, or NULL. */
static const char *maker_of(const char *name)
{
	if (strncmp(name, SELFTEST_PLACE_PREFIX, strlen(SELFTEST_PLACE_PREFIX)) == 0)
		return "selftest";
	return strncmp(name, DEMO_PLACE_PREFIX, strlen(DEMO_PLACE_PREFIX)) == 0 ? "demo" : NULL;
}

static void remove_left(struct repair *repair, int directory_fd, const char *path, const char *name)
{
	const char *maker = maker_of(name);
	int FD_CLEANUP fd = -1;
	struct stat status;
	char *whole;

	if (!maker)
		return;
	fd = open_left(directory_fd, name, S_IFDIR, &status);
	if (fd < 0 || !is_old(&status))
		return;
	if (upper_remove_contents(fd) || unlinkat(directory_fd, name, AT_REMOVEDIR)) {
		log_errno(-errno, "cannot remove %s/%s", path, name);
		repair->failed = true;
		return;
	}
	repair->removed++;
	if (asprintf(&whole, "%s/%s", path, name) < 0)
		return;
	repair_tell(repair, whole, "left by 'mvagent %s', removed", maker);
	free(whole);
}

/* A key in the making (vmm/record/key.c). */
static void remove_key(struct repair *repair, int directory_fd, const char *path, const char *name)
{
	int FD_CLEANUP fd = -1;
	struct stat status;

	(void)path;
	if (!review_is_temporary(name))
		return;
	fd = open_left(directory_fd, name, S_IFREG, &status);
	if (fd < 0 || !is_old(&status) || unlinkat(directory_fd, name, 0))
		return;
	repair->removed++;
	repair_tell(repair, name, "a key in the making, removed");
}

typedef void visit_entry(struct repair *repair, int directory_fd, const char *path,
			 const char *name);

/* A directory that cannot be listed holds nothing that could be removed. */
static void visit_directory(struct repair *repair, const char *path, visit_entry *visit)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;

	if (!directory)
		return;
	while ((entry = readdir(directory)))
		visit(repair, dirfd(directory), path, entry->d_name);
	closedir(directory);
}

void repair_planted(struct repair *repair, const char *path, bool above)
{
	char *directory = strdup(path), *slash;

	while (directory) {
		visit_directory(repair, *directory ? directory : "/", remove_planted);
		slash = above ? strrchr(directory, '/') : NULL;
		if (!slash)
			break;
		*slash = '\0';
	}
	free(directory);
}

void repair_common(struct repair *repair)
{
	const char *home = getenv("HOME"), *temporary = getenv("TMPDIR");
	unsigned int groups = cgroup_sweep();
	char path[PATH_MAX];

	if (home && home[0] == '/')
		repair_planted(repair, home, false);
	if (review_state_path(path, "") == 0) {
		repair_planted(repair, path, false);
		visit_directory(repair, path, remove_key);
	}
	visit_directory(repair, temporary && *temporary ? temporary : "/tmp", remove_left);
	if (groups)
		repair_tell(repair, "control groups", "%u of runs that are gone removed", groups);
	repair->removed += groups;
}

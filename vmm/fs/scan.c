/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/fs/git_index.h"
#include "vmm/fs/path.h"
#include "vmm/fs/scan_internal.h"

#define SCAN_NAMED       4U /* how many are named in a message */
#define SCAN_INDEX_BYTES (1UL << 30)

void scan_list_add(struct scan_list *list, const char *path)
{
	size_t length = strlen(list->text);

	if (list->count++ < SCAN_NAMED)
		snprintf(list->text + length, sizeof(list->text) - length, "%s%s",
			 length ? ", " : "", path);
	else if (list->count == SCAN_NAMED + 1)
		snprintf(list->text + length, sizeof(list->text) - length, ", ...");
}

static void scan_tracked(void *context, const char *path)
{
	struct scan *scan = context;
	struct policy_verdict verdict;

	policy_examine_path(scan->policy, path, &verdict);
	if (verdict.hidden)
		scan_list_add(&scan->tracked, path);
}

/* A repository without an index, or none at all, tracks nothing. */
static void scan_git(struct scan *scan)
{
	FD_CLEANUP int git = path_open_name(scan->root_fd, ".git");
	FD_CLEANUP int path_fd = git < 0 ? -1 : path_open_name(git, "index");
	FD_CLEANUP int proc = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	FD_CLEANUP int fd = -1;
	struct statx status;
	void *bytes;

	if (path_fd < 0 || proc < 0 || path_status(path_fd, &status) || !S_ISREG(status.stx_mode) ||
	    !status.stx_size || status.stx_size > SCAN_INDEX_BYTES)
		return;
	fd = path_reopen(proc, path_fd, O_RDONLY);
	if (fd < 0)
		return;
	/* Read, not mapped: the host may cut the file off meanwhile. */
	bytes = malloc(status.stx_size);
	if (bytes && fd_pread_full(fd, bytes, status.stx_size, 0) == 0)
		git_index_read(bytes, status.stx_size, scan_tracked, scan);
	free(bytes);
}

static void *scan_thread(void *context)
{
	struct scan *scan = context;

	scan_all(scan);
	if (scan->hidden.count)
		scan_git(scan);
	return NULL;
}

/* NULL with errno. */
static struct scan *scan_create(int root_fd, struct policy *policy, bool clean)
{
	struct scan *scan = calloc(1, sizeof(*scan));

	if (!scan)
		return NULL;
	scan->policy = policy;
	scan->clean = clean;
	scan->user = geteuid();
	scan->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
	if (scan->root_fd < 0) {
		free(scan);
		return NULL;
	}
	return scan;
}

static void scan_destroy(struct scan *scan)
{
	while (scan->depth)
		scan_pop(scan);
	for (unsigned int i = 0; i < scan->end_count; i++)
		free(scan->ends[i]);
	free(scan->path);
	fd_close(&scan->root_fd);
	free(scan);
}

int scan_start(struct scan **result, int root_fd, const char *root_path, struct policy *policy,
	       bool clean)
{
	struct scan *scan = scan_create(root_fd, policy, clean);
	int error;

	if (!scan)
		return -errno;
	scan->root_path = root_path;
	error = pthread_create(&scan->thread, NULL, scan_thread, scan);
	if (error) {
		scan_destroy(scan);
		return -error;
	}
	*result = scan;
	return 0;
}

int scan_run(struct scan_result *result, int root_fd, struct policy *policy, bool clean)
{
	struct scan *scan = scan_create(root_fd, policy, clean);
	int error;

	*result = (struct scan_result){0};
	if (!scan)
		return log_errno(-errno, "cannot look through the share");
	scan_all(scan);
	error = scan->error;
	*result = scan->result;
	scan_destroy(scan);
	return error;
}

static void scan_report(const struct scan *scan)
{
	if (scan->hidden.count)
		log_warning("%lu name%s in the share %s hidden from the guest: %s",
			    scan->hidden.count, scan->hidden.count == 1 ? "" : "s",
			    scan->hidden.count == 1 ? "is" : "are", scan->hidden.text);
	if (scan->tracked.count)
		log_warning("git tracks what is hidden and will show it as deleted in the guest: "
			    "%s (--show PATTERN lets the guest see it)",
			    scan->tracked.text);
	if (scan->removed.count)
		log_warning("removed from the share what an earlier process left behind when it "
			    "was killed: %s",
			    scan->removed.text);
	if (scan->led.count)
		log_warning("symbolic links under hidden or protected names lead to what is hidden "
			    "or protected for that: %s",
			    scan->led.text);
	if (scan->closed.count)
		log_warning("%lu director%s that you may not look into %s closed to the guest: %s",
			    scan->closed.count, scan->closed.count == 1 ? "y" : "ies",
			    scan->closed.count == 1 ? "is" : "are", scan->closed.text);
}

int scan_finish(struct scan *scan, struct scan_result *result)
{
	int error = -pthread_join(scan->thread, NULL);

	if (!error)
		error = scan->error;
	scan_report(scan);
	*result = scan->result;
	scan_destroy(scan);
	return error;
}

void scan_result_destroy(struct scan_result *result)
{
	identity_set_destroy(&result->links);
	identity_set_destroy(&result->repositories);
	identity_set_destroy(&result->closed);
}

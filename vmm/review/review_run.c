/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/review_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/review/upper.h"

int review_run_open(struct review_run *run, int store_fd, const char *name, bool lock)
{
	int error;

	*run = (struct review_run){.fd = -1};
	run->fd = review_store_open_run(store_fd, name);
	if (run->fd == -ENOENT || run->fd == -EINVAL) {
		log_error("there is no run '%s'; 'mvagent runs' lists them", name);
		return run->fd;
	}
	if (run->fd < 0)
		return log_errno(run->fd, "cannot open the run %s", name);
	snprintf(run->name, sizeof(run->name), "%s", name);
	error = review_record_read(&run->record, run->fd);
	if (error)
		return log_errno(error, "cannot read " REVIEW_RUN_FILE " of the run %s", name);
	if (lock)
		error = review_run_lock(run->fd);
	else if (review_run_is_locked(run->fd))
		error = -EWOULDBLOCK;
	if (error && error != -EWOULDBLOCK)
		return log_errno(error, "cannot lock the run %s", name);
	if (error)
		run->state = REVIEW_RUNNING;
	else if (review_run_has_mark(run->fd, REVIEW_MARK_DISCARDED))
		run->state = REVIEW_DISCARDED;
	else if (review_run_has_mark(run->fd, REVIEW_MARK_APPLIED))
		run->state = REVIEW_APPLIED;
	else
		run->state = REVIEW_OPEN;
	return 0;
}

static void share_close(struct review_share *share)
{
	fd_close(&share->host_fd);
	fd_close(&share->upper_fd);
	base_list_destroy(share->base);
}

void review_run_close(struct review_run *run)
{
	for (unsigned int i = 0; i < run->share_count; i++)
		share_close(&run->shares[i]);
	review_record_destroy(&run->record);
	fd_close(&run->fd);
	run->share_count = 0;
}

static int open_host(struct review_share *share, const struct review_record_share *record,
		     bool moved)
{
	struct stat status;

	share->host_fd = open(share->host_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (share->host_fd < 0)
		return log_errno(-errno, "cannot open the shared directory %s", share->host_path);
	if (fstat(share->host_fd, &status))
		return log_errno(-errno, "cannot look at %s", share->host_path);
	if (moved || (status.st_dev == record->device && status.st_ino == record->inode))
		return 0;
	log_error("%s is not the directory that was shared, but another one of that name; give "
		  "--moved if its content is the same",
		  share->host_path);
	return -ESTALE;
}

/* The guest may have taken the user's permissions from the top of its tree. */
static int open_upper(const struct review_run *run, const char *path)
{
	const char *name;
	int FD_CLEANUP parent_fd = tree_open_parent(run->fd, path, &name);
	int FD_CLEANUP fd = parent_fd < 0 ? parent_fd : tree_open_entry(parent_fd, name);
	struct review_object object;
	int error = fd < 0 ? fd : tree_status(fd, &object);

	if (error)
		return error;
	if (!S_ISDIR(object.mode))
		return -ENOTDIR;
	if ((object.mode & S_IRWXU) != S_IRWXU)
		error = tree_change_mode(fd, (object.mode & 0777) | S_IRWXU);
	return error ? error : tree_reopen(fd);
}

static int open_base(struct base_list **base, const struct review_run *run, const char *path)
{
	int error, FD_CLEANUP fd = tree_open_file(run->fd, path);

	/* Where nothing of the host's was changed, there need be none. */
	if (fd == -ENOENT)
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return log_errno(fd, "cannot open %s of the run %s", path, run->name);
	error = base_list_read(base, fd);
	return error ? log_errno(error, "cannot read %s of the run %s", path, run->name) : 0;
}

int review_run_open_shares(struct review_run *run, const struct review_policy *policy, bool moved)
{
	for (unsigned int i = 0; i < run->record.share_count; i++) {
		const struct review_record_share *record = &run->record.shares[i];
		struct review_share *share = &run->shares[run->share_count++];
		int error;

		*share = (struct review_share){.host_path = record->host_path,
					       .host_fd = -1,
					       .upper_fd = -1,
					       .policy = policy};
		error = open_host(share, record, moved);
		if (!error)
			error = open_base(&share->base, run, record->base);
		if (error)
			return error;
		share->upper_fd = open_upper(run, record->upper);
		if (share->upper_fd < 0 && share->upper_fd != -ENOENT)
			return log_errno(share->upper_fd, "cannot open %s of the run %s",
					 record->upper, run->name);
	}
	return 0;
}

int review_run_count_changes(const struct review_run *run, size_t *count)
{
	static const struct review_paths everything;
	int error = 0;

	*count = 0;
	for (unsigned int i = 0; !error && i < run->share_count; i++) {
		struct review_changes changes;

		error = review_changes_find(&changes, &run->shares[i], &everything);
		*count += changes.count;
		review_changes_destroy(&changes);
	}
	return error;
}

static int remove_share(const struct review_run *run, const struct review_record_share *record)
{
	const char *name;
	int FD_CLEANUP parent_fd = tree_open_parent(run->fd, record->base, &name);
	int error, FD_CLEANUP upper_fd = -1;

	if (parent_fd >= 0 && unlinkat(parent_fd, name, 0) && errno != ENOENT)
		return -errno;
	upper_fd = open_upper(run, record->upper);
	if (upper_fd == -ENOENT)
		return 0;
	if (upper_fd < 0)
		return upper_fd;
	error = upper_remove_contents(upper_fd);
	fd_close(&parent_fd);
	if (!error)
		parent_fd = tree_open_parent(run->fd, record->upper, &name);
	if (!error && parent_fd >= 0 && unlinkat(parent_fd, name, AT_REMOVEDIR))
		error = -errno;
	return error;
}

int review_run_finish(struct review_run *run, const char *mark)
{
	int error = review_run_set_mark(run->fd, mark);

	if (error)
		return log_errno(error, "cannot mark the run %s", run->name);
	for (unsigned int i = 0; i < run->record.share_count; i++) {
		error = remove_share(run, &run->record.shares[i]);
		if (error)
			return log_errno(error, "cannot remove all that the run %s left behind",
					 run->name);
	}
	return 0;
}

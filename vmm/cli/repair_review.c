/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of runs under review: vmm/review/layout.h. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/repair.h"
#include "vmm/cli/review_policy.h"
#include "vmm/review/review_run.h"
#include "vmm/review/upper.h"

static void fail(struct repair *repair, int error, const char *run)
{
	log_errno(error, "cannot bring the run %s to order", run);
	repair->failed = true;
}

/* The directory of a run and all that is in it, which nobody else works on. */
static int remove_directory(struct repair *repair, int run_fd, const char *run)
{
	int error = upper_remove_contents(run_fd);

	if (!error && unlinkat(repair->review_fd, run, AT_REMOVEDIR))
		error = -errno;
	if (!error)
		repair->removed++;
	return error;
}

void repair_unborn(struct repair *repair, const char *run)
{
	int FD_CLEANUP fd = review_store_open_run(repair->review_fd, run);
	int error = fd < 0 ? fd : review_run_lock(fd);

	/* One that is just being made, or was removed meanwhile. */
	if (error == -EWOULDBLOCK || error == -ENOENT)
		return;
	if (!error && review_run_has_mark(fd, REVIEW_RUN_FILE))
		return;
	if (!error)
		error = remove_directory(repair, fd, run);
	if (error)
		fail(repair, error, run);
	else
		repair_tell(repair, run, "had not begun; its directory was removed");
}

/* What an `apply` or `discard` that was killed had still to remove. */
static void finish(struct repair *repair, struct review_run *run)
{
	const bool applied = run->state == REVIEW_APPLIED;
	bool left = false;

	for (unsigned int i = 0; i < run->record.share_count; i++)
		left |= review_run_has_mark(run->fd, run->record.shares[i].upper) ||
			review_run_has_mark(run->fd, run->record.shares[i].base);
	if (!left)
		return;
	if (review_run_finish(run, applied ? REVIEW_MARK_APPLIED : REVIEW_MARK_DISCARDED)) {
		repair->failed = true;
		return;
	}
	repair->removed++;
	repair_tell(repair, run->name, "its changes were %s; what was left of them was removed",
		    applied ? "applied" : "discarded");
}

/* Of a run that did not come to its end. Its changes are as good as the guest had made them. */
static void judge_changes(struct repair *repair, struct review_run *run, size_t count)
{
	int error;

	if (count) {
		repair->waiting++;
		repair_tell(repair, run->name,
			    "its changes (%zu) wait for review: 'mvagent diff %s', then 'mvagent "
			    "apply %s' or 'mvagent discard %s'",
			    count, run->name, run->name, run->name);
		return;
	}
	error = remove_directory(repair, run->fd, run->name);
	if (error)
		fail(repair, error, run->name);
	else
		repair_tell(repair, run->name,
			    "had changed nothing under review; its directory was "
			    "removed");
}

static void repair_open(struct repair *repair, struct review_run *run)
{
	struct run_policy policy;
	size_t count = 0;
	int error = run_policy_create(&policy, &run->record, NULL);

	error = error ? error : review_run_open_shares(run, &policy.policy, false);
	for (unsigned int i = 0; !error && i < run->share_count; i++)
		repair_share(repair, run->shares[i].host_fd, run->shares[i].host_path);
	if (!error && !run->record.ended)
		error = review_run_count_changes(run, &count);
	/* The sentence about it is printed. The changes stay. */
	if (error)
		repair_tell(repair, run->name, "its changes cannot be looked at, and stay");
	else if (!run->record.ended)
		judge_changes(repair, run, count);
	run_policy_destroy(&policy);
}

void repair_review(struct repair *repair, const char *name)
{
	struct review_run run = {.fd = -1};

	if (review_run_open(&run, repair->review_fd, name, true))
		repair->failed = true;
	else if (run.state == REVIEW_APPLIED || run.state == REVIEW_DISCARDED)
		finish(repair, &run);
	else if (run.state == REVIEW_OPEN)
		repair_open(repair, &run);
	review_run_close(&run);
}

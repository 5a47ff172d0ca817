/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/review_select.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/review_paths.h"

/* Opens a run and, unless its changes are settled, its shares. */
static int open_run(struct review_selection *selection, const struct review_options *options,
		    int store_fd, const char *name)
{
	struct review_run *run = &selection->run;
	int error = review_run_open(run, store_fd, name, options->verb != REVIEW_DIFF);

	if (error || run->state == REVIEW_APPLIED || run->state == REVIEW_DISCARDED)
		return error;
	error = run_policy_create(&selection->policy, &run->record, options->unprotect);
	selection->policy.clean = options->verb == REVIEW_APPLY;
	/* Whoever throws changes away need not have the directory any more. */
	if (!error && (options->verb != REVIEW_DISCARD || !options->run))
		error = review_run_open_shares(run, &selection->policy.policy, options->moved);
	for (unsigned int i = 0; !error && selection->policy.clean && i < run->share_count; i++)
		run_policy_of(&selection->policy, &run->shares[i]);
	return error;
}

static void close_run(struct review_selection *selection)
{
	review_run_close(&selection->run);
	run_policy_destroy(&selection->policy);
}

static bool has_share_at(const struct review_record *record, const char *directory)
{
	for (unsigned int i = 0; i < record->share_count; i++) {
		if (tree_path_is_within(directory, record->shares[i].host_path))
			return true;
	}
	return false;
}

/* Whether the run belongs to the current directory (or not, as @here says) and has changes. It is
 * left open then. */
static bool is_candidate(struct review_selection *selection, const struct review_options *options,
			 int store_fd, const char *name, const char *current, bool here)
{
	struct review_run *run = &selection->run;
	size_t count = 0;

	/* Whether it is the right place is asked first: of others, nothing need be told. */
	if (review_run_open(run, store_fd, name, false) == 0 &&
	    (run->state == REVIEW_OPEN || run->state == REVIEW_RUNNING) &&
	    has_share_at(&run->record, current) == here) {
		review_run_close(run);
		if (open_run(selection, options, store_fd, name) == 0 &&
		    review_run_count_changes(run, &count) == 0 && count > 0)
			return true;
	}
	close_run(selection);
	return false;
}

/* Whether no other run than the chosen one has changes. */
static bool is_only_one(const struct review_options *options, int store_fd,
			const struct tree_names *names, size_t chosen, const char *current)
{
	for (size_t i = 0; i < names->count; i++) {
		struct review_selection other = {.run.fd = -1};

		if (i == chosen)
			continue;
		for (int here = 0; here < 2; here++) {
			if (is_candidate(&other, options, store_fd, names->names[i], current,
					 here)) {
				log_error("more than one run has changes: %s and %s; say which "
					  "one is meant, 'mvagent runs' lists them",
					  names->names[chosen], names->names[i]);
				close_run(&other);
				return false;
			}
		}
	}
	return true;
}

static int find_run(struct review_selection *selection, const struct review_options *options,
		    int store_fd, const char *current)
{
	struct tree_names names;
	int error = review_store_list(store_fd, &names);
	bool found = false;

	/* Those of the current directory come first, and the newest of them. */
	for (int here = 1; !error && !found && here >= 0; here--) {
		for (size_t i = names.count; !found && i > 0; i--) {
			found = is_candidate(selection, options, store_fd, names.names[i - 1],
					     current, here);
			if (found && options->verb == REVIEW_DISCARD &&
			    !is_only_one(options, store_fd, &names, i - 1, current))
				error = -EINVAL;
		}
	}
	tree_names_destroy(&names);
	selection->none = !found;
	if (!error && found)
		log_warning("run %s, on %s", selection->run.name,
			    selection->run.record.shares[0].host_path);
	return error;
}

/* Sorts the PATHs into the shares that they are in. */
static int assign_paths(struct review_selection *selection, const struct review_options *options,
			const char *current)
{
	const struct review_run *run = &selection->run;

	for (unsigned int i = 0; i < run->share_count; i++) {
		selection->paths[i].paths =
			calloc(options->path_count + 1, sizeof(*selection->paths[i].paths));
		if (!selection->paths[i].paths)
			return log_errno(-ENOMEM, "cannot read the command line");
	}
	for (unsigned int i = 0; i < options->path_count; i++) {
		bool found = false;

		for (unsigned int share = 0; share < run->share_count; share++) {
			struct review_paths *paths = &selection->paths[share];
			char *path = review_path_in_share(options->paths[i],
							  run->shares[share].host_path, current);

			if (path)
				paths->paths[paths->count++] = path;
			found = found || path;
		}
		if (!found && run->share_count) {
			log_error("'%s' is in no directory that the run %s changed",
				  options->paths[i], run->name);
			return -EINVAL;
		}
	}
	for (unsigned int i = 0; i < run->share_count; i++)
		selection->skipped[i] = options->path_count && !selection->paths[i].count;
	return 0;
}

int review_select(struct review_selection *selection, const struct review_options *options)
{
	int error, FD_CLEANUP store_fd = review_store_open(false);
	char current[PATH_MAX];

	*selection = (struct review_selection){.run.fd = -1};
	if (!getcwd(current, sizeof(current)))
		return log_errno(-errno, "cannot tell the current directory");
	if (store_fd == -ENOENT && options->run) {
		log_error("there is no run '%s': no run with --share DIR:review was made yet",
			  options->run);
		return -ENOENT;
	}
	selection->none = store_fd == -ENOENT;
	if (store_fd < 0)
		return selection->none ? 0 : store_fd;
	error = options->run ? open_run(selection, options, store_fd, options->run)
			     : find_run(selection, options, store_fd, current);
	if (error || selection->none)
		return error;
	return assign_paths(selection, options, current);
}

void review_selection_destroy(struct review_selection *selection)
{
	for (unsigned int i = 0; i < LIMIT_SHARES; i++) {
		for (size_t k = 0; k < selection->paths[i].count; k++)
			free((char *)selection->paths[i].paths[k]);
		free(selection->paths[i].paths);
	}
	close_run(selection);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/review_select.h"

#include <errno.h>
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

/* Whether the run belongs to the current directory (or not, as @here says) and has changes: 1, and
 * it is left open; 0; or -errno when it is the right place and that cannot be told, with the
 * sentence printed. */
static int try_run(struct review_selection *selection, const struct review_options *options,
		   int store_fd, const char *name, bool here)
{
	struct review_run *run = &selection->run;
	int error = review_run_open(run, store_fd, name, false);
	size_t count = 0;
	bool meant;

	/* Whether it is the right place is asked first: of others, nothing need be told. One whose
	 * record cannot be read is in no known place. */
	meant = error ? !here
		      : (run->state == REVIEW_OPEN || run->state == REVIEW_RUNNING) &&
				has_share_at(&run->record, selection->current) == here;
	if (meant && !error) {
		review_run_close(run);
		error = open_run(selection, options, store_fd, name);
		error = error ? error : review_run_count_changes(run, &count);
		if (!error && count > 0)
			return 1;
	}
	close_run(selection);
	return meant ? error : 0;
}

/* Whether no other run than the chosen one has changes. */
static bool is_only_one(const struct review_selection *selection,
			const struct review_options *options, int store_fd,
			const struct tree_names *names, size_t chosen)
{
	for (size_t i = 0; i < names->count; i++) {
		struct review_selection other = {.run.fd = -1};

		if (i == chosen)
			continue;
		memcpy(other.current, selection->current, sizeof(other.current));
		for (int here = 0; here < 2; here++) {
			if (try_run(&other, options, store_fd, names->names[i], here) > 0) {
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

/* The newest run with changes, of those of the current directory (or of the others). One of the
 * current directory that cannot be looked at is not passed over for an older one; of the others,
 * *@unknown is the newest such. 1: found, 0: none, or -errno with the sentence printed. */
static int find_newest(struct review_selection *selection, const struct review_options *options,
		       int store_fd, const struct tree_names *names, bool here,
		       const char **unknown)
{
	for (size_t i = names->count; i > 0; i--) {
		const char *name = names->names[i - 1];
		int result = try_run(selection, options, store_fd, name, here);

		if (result < 0 && !*unknown)
			*unknown = name;
		if (result < 0 && here)
			return result;
		if (result <= 0)
			continue;
		if (options->verb == REVIEW_DISCARD &&
		    !is_only_one(selection, options, store_fd, names, i - 1))
			return -EINVAL;
		return 1;
	}
	return 0;
}

static int find_run(struct review_selection *selection, const struct review_options *options,
		    int store_fd)
{
	const char *unknown = NULL;
	struct tree_names names;
	int result = review_store_list(store_fd, &names);

	for (int here = 1; !result && here >= 0; here--)
		result = find_newest(selection, options, store_fd, &names, here, &unknown);
	if (result > 0) {
		log_warning("run %s, on %s", selection->run.name,
			    selection->run.record.shares[0].host_path);
	} else if (unknown) {
		log_error("whether the run %s has changes cannot be told, see above; 'mvagent "
			  "discard %s' throws away what it has",
			  unknown, unknown);
		result = result ? result : -ESTALE;
	}
	selection->none = !result;
	tree_names_destroy(&names);
	return result > 0 ? 0 : result;
}

/* Sorts the PATHs into the shares that they are in. */
static int assign_paths(struct review_selection *selection, const struct review_options *options)
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
							  run->shares[share].host_path,
							  selection->current);

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

	*selection = (struct review_selection){.run.fd = -1};
	if (!getcwd(selection->current, sizeof(selection->current)))
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
			     : find_run(selection, options, store_fd);
	if (error || selection->none)
		return error;
	return assign_paths(selection, options);
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

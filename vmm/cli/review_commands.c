/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/review_commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vmm/base/log.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/review_paths.h"
#include "vmm/cli/review_select.h"
#include "vmm/review/apply.h"
#include "vmm/review/diff.h"

/* One review command at work. */
struct review {
	struct review_options options;
	struct review_selection selection;
	struct review_output output;
	struct review_changes changes[LIMIT_SHARES];
	size_t change_count;
	size_t problem_count;
	size_t applied_count;
};

static int find_changes(struct review *review)
{
	const struct review_run *run = &review->selection.run;

	for (unsigned int i = 0; i < run->share_count; i++) {
		int error = 0;

		if (!review->selection.skipped[i])
			error = review_changes_find(&review->changes[i], &run->shares[i],
						    &review->selection.paths[i]);
		if (error)
			return error;
		review->change_count += review->changes[i].count;
		for (size_t k = 0; k < review->changes[i].count; k++)
			review->problem_count += review->changes[i].list[k].problem != REVIEW_GOOD;
	}
	return 0;
}

static bool path_has_changes(const struct review *review, const char *word)
{
	for (unsigned int i = 0; i < review->selection.run.share_count; i++) {
		char *path = review_path_in_share(word, review->selection.run.shares[i].host_path,
						  review->selection.current);
		const struct review_paths paths = {1, (const char **)&path};
		bool found = false;

		for (size_t k = 0; path && !found && k < review->changes[i].count; k++)
			found = review_paths_cover(&paths, review->changes[i].list[k].path);
		free(path);
		if (found)
			return true;
	}
	return false;
}

/* Names the PATHs where nothing was changed, which may be mistyped. Their number. */
static unsigned int tell_idle_paths(const struct review *review)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < review->options.path_count; i++) {
		if (path_has_changes(review, review->options.paths[i]))
			continue;
		log_warning("no change of run %s is at or below '%s'", review->selection.run.name,
			    review->options.paths[i]);
		count++;
	}
	return count;
}

/* Parses, selects, and finds the changes. 1: go on; 0: done, nothing is to be done; -errno. */
static int review_begin(struct review *review, enum review_verb verb, int argc, char **argv)
{
	int result = review_options_parse(&review->options, verb, argc, argv);

	review->selection.run.fd = -1;
	review->output = (struct review_output){
		.file = stdout,
		.terminal = isatty(STDOUT_FILENO),
	};
	if (result <= 0)
		return result;
	result = review_select(&review->selection, &review->options);
	if (result)
		return result;
	if (review->selection.none) {
		log_warning("no run has changes that wait for review");
		return 0;
	}
	if (review->selection.run.state == REVIEW_DISCARDED ||
	    review->selection.run.state == REVIEW_APPLIED) {
		log_warning("the changes of run %s were %s", review->selection.run.name,
			    review->selection.run.state == REVIEW_APPLIED ? "applied"
									  : "discarded");
		/* Discarding once more removes what an interrupted one left. */
		return verb == REVIEW_DISCARD;
	}
	if (verb == REVIEW_DISCARD)
		return 1;
	result = find_changes(review);
	return result ? result : 1;
}

static int review_end(struct review *review, int status)
{
	for (unsigned int i = 0; i < LIMIT_SHARES; i++)
		review_changes_destroy(&review->changes[i]);
	review_selection_destroy(&review->selection);
	review_options_free(&review->options);
	return status;
}

static void print_problem(const struct review_change *change)
{
	if (change->problem == REVIEW_PROTECTED)
		log_warning("'%s' is protected by the rule '%s'; --unprotect '%s' applies it",
			    change->path, change->rule, change->path);
	else if (change->problem == REVIEW_REPOSITORY)
		log_warning("'%s' %s; --unprotect '%s' applies it", change->path,
			    review_problem_text(change->problem), change->path);
	else if (change->problem == REVIEW_HIDDEN)
		log_warning("'%s' %s (rule '%s')", change->path,
			    review_problem_text(change->problem), change->rule);
	else if (change->problem != REVIEW_GOOD)
		log_warning("'%s' %s", change->path, review_problem_text(change->problem));
}

static void print_problems(const struct review *review)
{
	for (unsigned int i = 0; i < review->selection.run.share_count; i++) {
		for (size_t k = 0; k < review->changes[i].count; k++)
			print_problem(&review->changes[i].list[k]);
	}
}

int diff_command(int argc, char **argv)
{
	struct review review = {0};
	const struct review_run *run = &review.selection.run;
	int result = review_begin(&review, REVIEW_DIFF, argc, argv);
	int error = 0;

	if (result <= 0)
		return review_end(&review, result ? EXIT_MVAGENT : 0);
	if (run->state == REVIEW_RUNNING)
		log_warning("run %s is still going on; this is what it has changed so far",
			    run->name);
	for (unsigned int i = 0; !error && i < run->share_count; i++) {
		if (run->share_count > 1 && review.changes[i].count)
			output_print(&review.output, "# in %s\n", run->shares[i].host_path);
		error = review.options.stat
				? review_diff_print_stat(&review.output, &run->shares[i],
							 &review.changes[i])
				: review_diff_print(&review.output, &run->shares[i],
						    &review.changes[i]);
	}
	fflush(stdout);
	print_problems(&review);
	tell_idle_paths(&review);
	return review_end(&review, error ? EXIT_MVAGENT : 0);
}

static void print_change(struct review *review, const struct review_change *change)
{
	static const char *const verbs[] = {
		[REVIEW_CREATED] = "created", [REVIEW_CHANGED] = "changed",
		[REVIEW_MODE] = "mode of",    [REVIEW_TYPE] = "replaced",
		[REVIEW_DELETED] = "deleted",
	};
	char *name = output_quote("", change->path);

	output_print(&review->output, "%-8s %s\n", verbs[change->kind], name ? name : "?");
	free(name);
}

static void tell_applied(void *context, const struct review_change *change)
{
	struct review *review = context;

	review->applied_count++;
	print_change(review, change);
}

/* What is about to be thrown away. Changes that cannot be looked at any more, since the directory
 * is gone for instance, can be discarded all the same. */
static void tell_discarded(struct review *review)
{
	struct review_run *run = &review->selection.run;

	if (run->state == REVIEW_APPLIED || run->state == REVIEW_DISCARDED)
		return;
	/* A run that was named had no need of its directories so far. */
	if ((!run->share_count &&
	     review_run_open_shares(run, &review->selection.policy.policy, true)) ||
	    find_changes(review)) {
		log_warning("what run %s had changed cannot be told; it is discarded", run->name);
		return;
	}
	for (unsigned int i = 0; i < run->share_count; i++) {
		if (run->share_count > 1 && review->changes[i].count)
			output_print(&review->output, "# in %s\n", run->shares[i].host_path);
		for (size_t k = 0; k < review->changes[i].count; k++)
			print_change(review, &review->changes[i].list[k]);
	}
	fflush(stdout);
	if (!review->change_count) {
		log_warning("run %s had changed nothing; it is discarded", run->name);
		return;
	}
	log_warning("%zu change%s of run %s, listed above, %s discarded", review->change_count,
		    review->change_count == 1 ? "" : "s", run->name,
		    review->change_count == 1 ? "is" : "are");
}

/* The run's changes are settled when none is left. */
static int settle(struct review *review)
{
	struct review_run *run = &review->selection.run;
	size_t left;
	int error = review_run_count_changes(run, &left);

	if (!error && left == 0)
		return review_run_finish(run, REVIEW_MARK_APPLIED);
	if (!error)
		log_warning("%zu change%s of run %s wait%s for review", left, left == 1 ? "" : "s",
			    run->name, left == 1 ? "s" : "");
	return error;
}

static int apply_share(struct review *review, unsigned int index)
{
	const struct review_share *share = &review->selection.run.shares[index];
	const struct review_change *failed;
	int error = review_apply(share, &review->changes[index], tell_applied, review, &failed);

	if (!error)
		return 0;
	if (failed && error == -ESTALE)
		log_error("'%s' was changed on the host while changes were applied", failed->path);
	else if (failed)
		log_errno(error, "cannot apply the change of '%s'", failed->path);
	else
		log_errno(error, "cannot apply the changes in %s", share->host_path);
	return error;
}

/* Whether everything that the user asked for can be applied. */
static bool can_apply(const struct review *review)
{
	if (tell_idle_paths(review)) {
		log_error("nothing was applied: name PATHs that 'mvagent diff --stat %s' lists",
			  review->selection.run.name);
		return false;
	}
	if (review->problem_count) {
		print_problems(review);
		log_error("nothing was applied: %zu of %zu changes cannot be, see above; name "
			  "PATHs to apply others",
			  review->problem_count, review->change_count);
		return false;
	}
	return true;
}

static int apply_changes(struct review *review)
{
	const struct review_run *run = &review->selection.run;
	int error = 0;

	if (!can_apply(review))
		return EXIT_APPLY_REFUSED;
	for (unsigned int i = 0; !error && i < run->share_count; i++) {
		if (review->changes[i].count)
			error = apply_share(review, i);
	}
	if (error) {
		log_error("%zu of %zu changes were applied%s; the others wait in run %s",
			  review->applied_count, review->change_count,
			  review->applied_count ? " and are listed above" : "", run->name);
		return review->applied_count ? EXIT_APPLY_PARTIAL : EXIT_MVAGENT;
	}
	if (!review->change_count)
		log_warning("run %s: nothing is to be applied", run->name);
	return settle(review) ? EXIT_MVAGENT : 0;
}

static bool is_running(const struct review *review)
{
	if (review->selection.run.state != REVIEW_RUNNING)
		return false;
	log_error("run %s is still going on, or another mvagent works on its changes; wait for its "
		  "end",
		  review->selection.run.name);
	return true;
}

int apply_command(int argc, char **argv)
{
	struct review review = {0};
	int result = review_begin(&review, REVIEW_APPLY, argc, argv);

	/* What was thrown away can never be applied; what was applied already is where it should
	 * be. */
	if (!result && review.selection.run.fd >= 0 &&
	    review.selection.run.state == REVIEW_DISCARDED)
		return review_end(&review, EXIT_APPLY_REFUSED);
	if (result <= 0)
		return review_end(&review, result ? EXIT_MVAGENT : 0);
	if (is_running(&review))
		return review_end(&review, EXIT_MVAGENT);
	return review_end(&review, apply_changes(&review));
}

int discard_command(int argc, char **argv)
{
	struct review review = {0};
	struct review_run *run = &review.selection.run;
	int result = review_begin(&review, REVIEW_DISCARD, argc, argv);

	if (result <= 0)
		return review_end(&review, result ? EXIT_MVAGENT : 0);
	if (is_running(&review))
		return review_end(&review, EXIT_MVAGENT);
	tell_discarded(&review);
	result = review_run_finish(run, run->state == REVIEW_APPLIED ? REVIEW_MARK_APPLIED
								     : REVIEW_MARK_DISCARDED);
	return review_end(&review, result ? EXIT_MVAGENT : 0);
}

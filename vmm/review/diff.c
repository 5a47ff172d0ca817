/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "vmm/base/log.h"
#include "vmm/review/content.h"
#include "vmm/review/diff_process.h"

/* The names of one change, quoted. */
struct diff_names {
	char *plain;
	char *before; /* a/... */
	char *after;  /* b/... */
};

struct diff {
	struct review_output *output;
	const struct review_share *share;
	struct review_change change;
	struct diff_names names;
	bool headed; /* the lines "---" and "+++" are written */
};

static int names_make(struct diff_names *names, const char *path)
{
	names->plain = output_quote("", path);
	names->before = output_quote("a/", path);
	names->after = output_quote("b/", path);
	return names->plain && names->before && names->after ? 0 : -ENOMEM;
}

static void names_free(struct diff_names *names)
{
	free(names->plain);
	free(names->before);
	free(names->after);
}

static const char *type_name(mode_t mode)
{
	if (S_ISDIR(mode))
		return "directory";
	if (S_ISFIFO(mode))
		return "fifo";
	return S_ISSOCK(mode) ? "socket" : "device";
}

/* What the headers say before the hunks: nothing else tells git whether a side is there. */
static void print_hunk_names(struct diff *diff)
{
	/* As git does, so that a name with a blank in it has an end. */
	const char *end = strchr(diff->change.path, ' ') ? "\t" : "";

	diff->headed = true;
	if (diff->change.host.mode)
		output_print(diff->output, "--- %s%s\n", diff->names.before, end);
	else
		output_print(diff->output, "--- /dev/null\n");
	if (diff->change.wanted.mode)
		output_print(diff->output, "+++ %s%s\n", diff->names.after, end);
	else
		output_print(diff->output, "+++ /dev/null\n");
}

static void print_hunks(void *context, const char *text, size_t length)
{
	struct diff *diff = context;

	if (!diff->headed)
		print_hunk_names(diff);
	output_write(diff->output, text, length);
}

static int print_content(struct diff *diff, const struct content_pair *pair)
{
	const struct review_change *change = &diff->change;
	int error;

	if (pair->before.binary || pair->after.binary) {
		output_print(diff->output, "Binary files %s and %s differ\n",
			     change->host.mode ? diff->names.before : "/dev/null",
			     change->wanted.mode ? diff->names.after : "/dev/null");
		return 0;
	}
	error = diff_process_run(pair->before.fd, pair->after.fd, print_hunks, diff);
	output_finish(diff->output);
	return error;
}

/* The modes that git knows. */
static mode_t git_mode(mode_t mode)
{
	if (S_ISLNK(mode))
		return S_IFLNK;
	return S_IFREG | (mode & S_IXUSR ? 0755 : 0644);
}

/* A mode as it is; a link has none. */
static mode_t full_mode(mode_t mode)
{
	return S_ISLNK(mode) ? S_IFLNK : mode & (S_IFMT | 0777);
}

static void print_header(const struct diff *diff, const struct review_change *change)
{
	mode_t before = change->host.mode, after = change->wanted.mode;

	output_print(diff->output, "diff --git %s %s\n", diff->names.before, diff->names.after);
	if (!before)
		output_print(diff->output, "new file mode %o\n", full_mode(after));
	else if (!after)
		output_print(diff->output, "deleted file mode %o\n", git_mode(before));
	/* The mode before as git has it on record, where that can tell the two apart. */
	else if (full_mode(before) != full_mode(after))
		output_print(diff->output, "old mode %o\nnew mode %o\n",
			     git_mode(before) != git_mode(after) ? git_mode(before)
								 : full_mode(before),
			     full_mode(after));
}

/* One patch: from the host's content to the guest's, each of which may be missing. */
static int print_patch(struct diff *diff, struct review_change change)
{
	struct content_pair pair;
	int error;

	if (!content_exists(&change.host))
		change.host.mode = 0;
	if (!content_exists(&change.wanted))
		change.wanted.mode = 0;
	diff->change = change;
	diff->headed = false;
	error = content_open_pair(&pair, diff->share, &change);
	if (!error)
		print_header(diff, &change);
	if (!error && change.kind != REVIEW_MODE)
		error = print_content(diff, &pair);
	content_close_pair(&pair);
	if (error != -EACCES)
		return error;
	output_print(diff->output, "# %s: %s\n", review_problem_text(REVIEW_UNREADABLE),
		     diff->names.plain);
	return 0;
}

/* Whether a directory shows by what is in it: git has no other sign of one. */
static bool shows_by_content(const struct review_change *change, const struct review_change *next)
{
	return change->kind != REVIEW_MODE && next && tree_path_is_within(next->path, change->path);
}

static void print_remarks(const struct diff *diff, const struct review_change *change,
			  const struct review_change *next)
{
	const struct review_object *host = &change->host, *wanted = &change->wanted;

	if (host->mode && !content_exists(host) && change->kind != REVIEW_MODE &&
	    !shows_by_content(change, next))
		output_print(diff->output, "# deleted %s: %s\n", type_name(host->mode),
			     diff->names.plain);
	if (wanted->mode && !content_exists(wanted) && change->kind != REVIEW_MODE &&
	    !shows_by_content(change, next))
		output_print(diff->output, "# new %s, mode %03o: %s\n", type_name(wanted->mode),
			     wanted->mode & 0777, diff->names.plain);
	if (change->kind == REVIEW_MODE && !content_exists(host))
		output_print(diff->output, "# %s, mode %03o to %03o: %s\n", type_name(host->mode),
			     host->mode & 0777, wanted->mode & 0777, diff->names.plain);
}

static int print_change(struct diff *diff, const struct review_change *change,
			const struct review_change *next)
{
	bool before = content_exists(&change->host), after = content_exists(&change->wanted);
	struct review_change part = *change;
	int error = 0;

	if (change->problem == REVIEW_HIDDEN || change->problem >= REVIEW_DEVICE) {
		output_print(diff->output, "# %s: %s\n", review_problem_text(change->problem),
			     diff->names.plain);
		return 0;
	}
	print_remarks(diff, change, next);
	/* Another type is a deletion and a creation. */
	if (before && (!after || change->kind == REVIEW_TYPE)) {
		part.wanted.mode = 0;
		error = print_patch(diff, part);
		part.host.mode = 0;
	}
	part.wanted = change->wanted;
	if (!error && after)
		error = print_patch(diff, part);
	return error;
}

int review_diff_print(struct review_output *output, const struct review_share *share,
		      const struct review_changes *changes)
{
	int error = 0;

	for (size_t i = 0; !error && i < changes->count; i++) {
		const struct review_change *change = &changes->list[i];
		struct diff diff = {.output = output, .share = share};

		error = names_make(&diff.names, change->path);
		if (!error)
			error = print_change(&diff, change,
					     i + 1 < changes->count ? change + 1 : NULL);
		names_free(&diff.names);
		if (error == -ENOPKG)
			log_error("the program diff is needed and not there; install the package "
				  "diffutils");
		else if (error)
			log_errno(error, "cannot show what changed in '%s'", change->path);
	}
	return error;
}

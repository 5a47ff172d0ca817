/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/review/apply.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/review/place.h"
#include "vmm/review/upper.h"

struct application {
	const struct review_share *share;
	struct review_changes *changes;
	apply_told *told;
	void *context;
	const struct review_change *failed;
};

static void apply_note(struct application *application, struct review_change *change, int error)
{
	change->done = !error;
	if (error)
		application->failed = change;
	else
		application->told(application->context, change);
}

/* The end of the part of the list that is below a change. */
static size_t find_end(const struct review_changes *changes, size_t index)
{
	size_t end = index + 1;

	while (end < changes->count &&
	       tree_path_is_within(changes->list[end].path, changes->list[index].path))
		end++;
	return end;
}

/* Deletions in a part of the list, deepest first. */
static int apply_deletions(struct application *application, size_t begin, size_t end)
{
	int error = 0;

	while (!error && end > begin) {
		struct review_change *change = &application->changes->list[--end];

		if (change->kind != REVIEW_DELETED || change->done)
			continue;
		error = place_deletion(application->share, change);
		apply_note(application, change, error);
	}
	return error;
}

/* Whether a directory's mode must wait until everything in it was made. */
static bool waits(const struct review_change *change)
{
	return S_ISDIR(change->wanted.mode) && (change->wanted.mode & S_IRWXU) != S_IRWXU;
}

static int apply_one(struct application *application, size_t index)
{
	const struct review_share *share = application->share;
	struct review_change *change = &application->changes->list[index];
	int error = 0;

	if (change->kind == REVIEW_DELETED)
		return 0;
	if (change->kind == REVIEW_MODE && waits(change))
		return 0;
	/* A directory must be empty before something else can replace it. */
	if (change->kind == REVIEW_TYPE && S_ISDIR(change->host.mode))
		error = apply_deletions(application, index + 1,
					find_end(application->changes, index));
	if (error)
		return error;
	error = change->kind == REVIEW_MODE ? place_mode(share, change)
					    : place_object(share, change);
	apply_note(application, change, error);
	return error;
}

/* Modes that kept the owner out of a directory. */
static int apply_waiting(struct application *application)
{
	int error = 0;

	for (size_t i = application->changes->count; !error && i > 0; i--) {
		struct review_change *change = &application->changes->list[i - 1];
		struct review_change mode = *change;

		if (!waits(change))
			continue;
		/* One that was made just now is not what was looked at before. */
		if (change->kind != REVIEW_MODE)
			mode.host.mode = 0;
		error = place_mode(application->share, &mode);
		if (error || !change->done)
			apply_note(application, change, error);
	}
	return error;
}

static int apply_forget(const struct application *application)
{
	int error = 0;

	if (syncfs(application->share->host_fd))
		return -errno;
	for (size_t i = application->changes->count; !error && i > 0; i--) {
		const struct review_change *change = &application->changes->list[i - 1];

		if (change->done)
			error = upper_forget(application->share, change);
	}
	return error;
}

int review_apply(const struct review_share *share, struct review_changes *changes, apply_told *told,
		 void *context, const struct review_change **failed)
{
	struct application application = {
		.share = share, .changes = changes, .told = told, .context = context};
	int error, forget_error;

	*failed = NULL;
	error = upper_spell_out(share);
	if (error)
		return error;
	for (size_t i = 0; !error && i < changes->count; i++)
		error = apply_one(&application, i);
	if (!error)
		error = apply_deletions(&application, 0, changes->count);
	if (!error)
		error = apply_waiting(&application);
	forget_error = apply_forget(&application);
	*failed = application.failed;
	return error ? error : forget_error;
}

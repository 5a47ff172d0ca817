/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a change may be applied: the host's object must be the one that the guest's change was
 * made from. What the host has already as the guest wants it is no change, and is never asked here.
 */
#include <stddef.h>
#include <sys/stat.h>

#include "vmm/review/change.h"

static bool same_as_base(const struct review_change *change, const struct review_base *base)
{
	const struct review_object *host = &change->host;

	if ((host->mode & S_IFMT) != (base->mode & S_IFMT) || host->inode != base->inode)
		return false;
	/* A directory's size and times change with the names in it, and these are changes of their
	 * own. Its mode matters where the guest changed it. */
	if (S_ISDIR(host->mode))
		return change->kind != REVIEW_MODE || (host->mode & 07777) == (base->mode & 07777);
	return (host->mode & 07777) == (base->mode & 07777) && host->size == base->size &&
	       host->mtime_ns == base->mtime_ns && host->ctime_ns == base->ctime_ns;
}

/* A directory as apply makes it before what is in it: one that was stopped there goes on. */
static bool is_half_applied(const struct review_change *change)
{
	mode_t wanted = change->wanted.mode & 0777;

	return change->kind == REVIEW_MODE && S_ISDIR(change->host.mode) &&
	       (change->host.mode & 0777) == (wanted | S_IRWXU);
}

static enum review_problem find_conflict(const struct review_change *change,
					 const struct base_list *list)
{
	const struct review_base *base = base_list_find(list, change->path);

	if (is_half_applied(change))
		return REVIEW_GOOD;
	if (!base)
		return change->host.mode ? REVIEW_HOST_CREATED : REVIEW_GOOD;
	if (!change->host.mode)
		return REVIEW_HOST_DELETED;
	return same_as_base(change, base) ? REVIEW_GOOD : REVIEW_HOST_CHANGED;
}

void review_judge(struct review_change *change, const struct review_share *share)
{
	const struct review_policy *policy = share->policy;

	if (change->problem)
		return;
	change->rule = policy->hidden_by(policy->context, change->path);
	if (change->rule) {
		change->problem = REVIEW_HIDDEN;
		return;
	}
	change->problem = find_conflict(change, share->base);
	if (change->problem)
		return;
	change->problem = policy->protects(policy->context, share, change, &change->rule);
}

const char *review_problem_text(enum review_problem problem)
{
	switch (problem) {
	case REVIEW_GOOD:
		return "can be applied";
	case REVIEW_HOST_CREATED:
		return "was made on the host meanwhile";
	case REVIEW_HOST_CHANGED:
		return "was changed on the host meanwhile";
	case REVIEW_HOST_DELETED:
		return "was deleted on the host meanwhile";
	case REVIEW_HIDDEN:
		return "is hidden from guests and is never applied";
	case REVIEW_PROTECTED:
		return "is protected";
	case REVIEW_REPOSITORY:
		return "is something that git on the host would obey";
	case REVIEW_DEVICE:
		return "is a device and is never applied";
	case REVIEW_MOUNTED:
		return "has another file system mounted on it";
	case REVIEW_UNREADABLE:
		return "has permissions that keep you from reading it";
	case REVIEW_TOO_DEEP:
		return "holds names too deep to be reviewed";
	}
	return "";
}

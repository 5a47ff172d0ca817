/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks upper/ beside the host's tree. Directories wait in a list of their own paths and are opened
 * anew, so that neither the stack nor the open descriptors grow with the tree's depth.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/review/change.h"
#include "vmm/review/upper.h"

#define PERMISSIONS (S_IRWXU | S_IRWXG | S_IRWXO)

/* What is still to be walked. */
enum walk_kind {
	WALK_BOTH,    /* a directory in upper/ and on the host */
	WALK_OPAQUE,  /* the same, below an opaque one */
	WALK_UPPER,   /* in upper/ only */
	WALK_DELETED, /* on the host only: deleted with all below it */
};

struct walk {
	const struct review_share *share;
	const struct review_paths *paths;
	struct review_changes *changes;
	struct tree_pending *pending;
	char path[LIMIT_REVIEW_PATH_BYTES]; /* of the entry that is looked at */
};

/* Whether something at or below @path may be what the user named. */
static bool walk_wants(const struct walk *walk, const char *path)
{
	return review_paths_cover(walk->paths, path) ||
	       review_paths_lead_through(walk->paths, path);
}

static int walk_push(struct walk *walk, enum walk_kind kind, const char *path)
{
	return tree_pending_push(&walk->pending, path, (int)kind);
}

static int walk_add(struct walk *walk, struct review_change change)
{
	bool made = change.wanted.mode && S_ISDIR(change.wanted.mode) && change.kind != REVIEW_MODE;

	/* A directory on the way to what the user named has to be made for it. */
	if (!review_paths_cover(walk->paths, change.path) &&
	    !(made && review_paths_lead_through(walk->paths, change.path)))
		return 0;
	review_judge(&change, walk->share);
	return review_changes_add(walk->changes, &change);
}

/* Adds what cannot be looked at, under the name of @path. */
static int walk_add_problem(struct walk *walk, char *path, enum review_problem problem)
{
	return walk_add(walk, (struct review_change){
				      .path = path,
				      .kind = REVIEW_CHANGED,
				      .problem = problem,
			      });
}

/* Adds what the kernel refuses to open, if it does so for a reason that belongs to the object;
 * other errors go on. */
static int walk_add_refusal(struct walk *walk, char *path, int error)
{
	if (error == -EXDEV)
		return walk_add_problem(walk, path, REVIEW_MOUNTED);
	if (error == -EACCES)
		return walk_add_problem(walk, path, REVIEW_UNREADABLE);
	return error;
}

/* Makes walk->path the path of @name in a directory. Whether it fits. */
static bool walk_join(struct walk *walk, const char *directory, const char *name)
{
	int length = snprintf(walk->path, sizeof(walk->path), "%s%s%s", directory,
			      *directory ? "/" : "", name);

	return length >= 0 && (size_t)length < sizeof(walk->path);
}

static int walk_add_deleted(struct walk *walk, const struct review_object *host, bool implied)
{
	int error = walk_add(walk, (struct review_change){
					   .path = walk->path,
					   .kind = REVIEW_DELETED,
					   .implied = implied,
					   .host = *host,
				   });

	if (!error && S_ISDIR(host->mode))
		error = walk_push(walk, WALK_DELETED, walk->path);
	return error;
}

/* What the error of opening the host's object means: one that was replaced meanwhile is not the
 * same any more. */
static int walk_not_same(int error)
{
	return error == -ENOENT || error == -EINVAL || error == -ELOOP ? 0 : error;
}

/* 1, 0 or -errno. */
static int walk_same_content(int upper_fd, int host_fd, const char *name,
			     const struct review_object *upper, const struct review_object *host)
{
	char targets[2][LIMIT_FS_SYMLINK_BYTES + 1];
	int FD_CLEANUP upper_file = -1, FD_CLEANUP host_file = -1;
	ssize_t length;

	if (S_ISLNK(upper->mode)) {
		length = tree_read_link(upper_fd, name, targets[0]);
		if (length < 0)
			return (int)length;
		length = tree_read_link(host_fd, name, targets[1]);
		return length < 0 ? walk_not_same((int)length)
				  : strcmp(targets[0], targets[1]) == 0;
	}
	if (!S_ISREG(upper->mode))
		return 1;
	if (upper->size != host->size)
		return 0;
	upper_file = upper_open_file(upper_fd, name);
	if (upper_file < 0)
		return upper_file;
	host_file = tree_open_file(host_fd, name);
	return host_file < 0 ? walk_not_same(host_file)
			     : review_same_content(upper_file, host_file);
}

/* An object that both have and that is a directory in neither. */
static int walk_compare(struct walk *walk, int upper_fd, int host_fd, const char *name,
			struct review_change *change)
{
	int same = walk_same_content(upper_fd, host_fd, name, &change->wanted, &change->host);

	if (same == -EACCES) {
		change->problem = REVIEW_UNREADABLE;
		same = 0;
	}
	if (same < 0)
		return same;
	if (same && (S_ISLNK(change->host.mode) ||
		     ((change->host.mode ^ change->wanted.mode) & PERMISSIONS) == 0))
		return 0;
	change->kind = same ? REVIEW_MODE : REVIEW_CHANGED;
	return walk_add(walk, *change);
}

static int walk_directory_entry(struct walk *walk, bool opaque, struct review_change *change)
{
	const struct review_object *host = &change->host;
	int error = 0;

	if (!S_ISDIR(host->mode)) {
		change->kind = host->mode ? REVIEW_TYPE : REVIEW_CREATED;
		error = walk_add(walk, *change);
		return error ? error : walk_push(walk, WALK_UPPER, change->path);
	}
	change->kind = REVIEW_MODE;
	if ((host->mode ^ change->wanted.mode) & PERMISSIONS)
		error = walk_add(walk, *change);
	return error ? error : walk_push(walk, opaque ? WALK_OPAQUE : WALK_BOTH, change->path);
}

/* walk->path in a directory of upper/; @host_fd is -1 where the host has no such directory. */
static int walk_upper_entry(struct walk *walk, int upper_fd, int host_fd, const char *name,
			    bool opaque)
{
	struct review_change change = {.path = walk->path};
	int error;

	if (!walk_wants(walk, walk->path) || review_is_temporary(name))
		return 0;
	error = tree_look(upper_fd, name, &change.wanted);
	if (!error && !change.wanted.mode)
		return 0;
	if (!error && host_fd >= 0)
		error = tree_look(host_fd, name, &change.host);
	if (error)
		return walk_add_refusal(walk, walk->path, error);
	if (review_is_whiteout(change.wanted.mode, change.wanted.rdev))
		return change.host.mode ? walk_add_deleted(walk, &change.host, false) : 0;
	if (S_ISCHR(change.wanted.mode) || S_ISBLK(change.wanted.mode))
		return walk_add_problem(walk, walk->path, REVIEW_DEVICE);
	if (S_ISDIR(change.wanted.mode))
		return walk_directory_entry(walk, opaque, &change);
	if (change.host.mode && (change.host.mode & S_IFMT) == (change.wanted.mode & S_IFMT))
		return walk_compare(walk, upper_fd, host_fd, name, &change);
	change.kind = change.host.mode ? REVIEW_TYPE : REVIEW_CREATED;
	error = walk_add(walk, change);
	if (!error && S_ISDIR(change.host.mode))
		error = walk_push(walk, WALK_DELETED, walk->path);
	return error;
}

/* What the host has in a directory and @kept does not: all of it is deleted. */
static int walk_host_names(struct walk *walk, const struct tree_pending *directory, int host_fd,
			   const struct tree_names *kept)
{
	const struct review_policy *policy = walk->share->policy;
	int error, FD_CLEANUP readable = tree_reopen(host_fd);
	struct tree_names names;

	if (readable < 0)
		return walk_add_refusal(walk, (char *)directory->path, readable);
	error = tree_list(readable, &names);
	for (size_t i = 0; !error && i < names.count; i++) {
		struct review_object host;

		if (tree_names_have(kept, names.names[i]))
			continue;
		if (!walk_join(walk, directory->path, names.names[i])) {
			error = walk_add_problem(walk, (char *)directory->path, REVIEW_TOO_DEEP);
			break;
		}
		if (!walk_wants(walk, walk->path))
			continue;
		/* A guest that replaced a directory could not know of the hidden names in it. */
		if (directory->tag != WALK_DELETED &&
		    policy->hidden_by(policy->context, walk->path))
			continue;
		error = tree_look(host_fd, names.names[i], &host);
		if (error)
			error = walk_add_refusal(walk, walk->path, error);
		else if (host.mode)
			error = walk_add_deleted(walk, &host, true);
	}
	tree_names_destroy(&names);
	return error;
}

static int walk_upper_directory(struct walk *walk, struct tree_pending *directory, int host_fd)
{
	int FD_CLEANUP upper_fd =
		tree_open_directory(walk->share->upper_fd, directory->path, O_RDONLY);
	struct tree_names names;
	bool opaque;
	int error;

	if (upper_fd < 0)
		return walk_add_refusal(walk, directory->path, upper_fd);
	opaque = directory->tag == WALK_OPAQUE || upper_is_opaque(upper_fd);
	error = tree_list(upper_fd, &names);
	for (size_t i = 0; !error && i < names.count; i++) {
		if (walk_join(walk, directory->path, names.names[i])) {
			error = walk_upper_entry(walk, upper_fd, host_fd, names.names[i], opaque);
			continue;
		}
		error = walk_add_problem(walk, directory->path, REVIEW_TOO_DEEP);
		break;
	}
	if (!error && opaque && host_fd >= 0)
		error = walk_host_names(walk, directory, host_fd, &names);
	tree_names_destroy(&names);
	return error;
}

static int walk_directory(struct walk *walk, struct tree_pending *directory)
{
	static const struct tree_names none;
	int FD_CLEANUP host_fd = -1;

	if (directory->tag != WALK_UPPER) {
		host_fd = tree_open_directory(walk->share->host_fd, directory->path, O_PATH);
		if (host_fd < 0 && host_fd != -ENOENT && host_fd != -ENOTDIR && host_fd != -ELOOP)
			return walk_add_refusal(walk, directory->path, host_fd);
	}
	if (directory->tag == WALK_DELETED)
		return host_fd < 0 ? 0 : walk_host_names(walk, directory, host_fd, &none);
	return walk_upper_directory(walk, directory, host_fd);
}

static int compare_changes(const void *one, const void *other)
{
	const struct review_change *a = one, *b = other;

	return tree_compare_paths(a->path, b->path);
}

int review_changes_find(struct review_changes *changes, const struct review_share *share,
			const struct review_paths *paths)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	int error = walk ? 0 : -ENOMEM;

	*changes = (struct review_changes){0};
	if (!error) {
		*walk = (struct walk){.share = share, .paths = paths, .changes = changes};
		if (share->upper_fd >= 0)
			error = walk_push(walk, WALK_BOTH, "");
	}
	while (walk && walk->pending) {
		struct tree_pending *directory = tree_pending_pop(&walk->pending);

		if (!error) {
			error = walk_directory(walk, directory);
			if (error && error != -E2BIG)
				log_errno(error, "cannot compare the directory %s/%s",
					  share->host_path, directory->path);
		}
		free(directory);
	}
	free(walk);
	if (error == -E2BIG)
		log_error("there are more changes in %s than can be looked at together; name "
			  "directories in it, or discard the run",
			  share->host_path);
	if (changes->count)
		qsort(changes->list, changes->count, sizeof(*changes->list), compare_changes);
	return error;
}

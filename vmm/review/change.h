/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest changed in one share, compared with what the host has there now. */
#ifndef MVAGENT_REVIEW_CHANGE_H
#define MVAGENT_REVIEW_CHANGE_H

#include "vmm/review/base_list.h"
#include "vmm/review/tree.h"

enum review_kind {
	REVIEW_CREATED, /* the host has nothing there */
	REVIEW_CHANGED, /* other content (and perhaps mode) */
	REVIEW_MODE,    /* other permission bits, the same content */
	REVIEW_TYPE,    /* something of another type */
	REVIEW_DELETED,
};

/* Why a change cannot be applied. */
enum review_problem {
	REVIEW_GOOD,
	/* Conflicts: the host's object is not what the guest's change was made from. */
	REVIEW_HOST_CREATED,
	REVIEW_HOST_CHANGED,
	REVIEW_HOST_DELETED,
	/* Refusals. */
	REVIEW_HIDDEN,
	REVIEW_PROTECTED,
	REVIEW_REPOSITORY, /* git on the host would obey it */
	REVIEW_DEVICE,     /* a device node: no run makes one */
	REVIEW_MOUNTED,    /* another file system is mounted on it */
	REVIEW_UNREADABLE, /* its permissions keep the user from reading it */
	REVIEW_TOO_DEEP,   /* a name in this directory has a path past LIMIT_REVIEW_PATH_BYTES */
};

struct review_change {
	char *path;
	enum review_kind kind;
	enum review_problem problem;
	const char *rule; /* the pattern of REVIEW_HIDDEN and REVIEW_PROTECTED; the policy's */
	bool implied;     /* deleted with a directory: upper/ has nothing of this name */
	bool done;        /* applied */
	struct review_object host;   /* now; mode 0: nothing */
	struct review_object wanted; /* mode 0: deleted */
};

struct review_changes {
	size_t count;
	size_t room;
	size_t bytes;               /* of paths */
	struct review_change *list; /* in the order of tree_compare_paths */
};

struct review_share;

/* Which names the guest did not see or may not change. The texts are the rules' patterns. */
struct review_policy {
	void *context;
	/* NULL: not hidden. */
	const char *(*hidden_by)(const void *context, const char *path);
	/* Why the change is not to be made unless the user says so: REVIEW_GOOD (it is),
	 * REVIEW_PROTECTED or REVIEW_HIDDEN with *@rule, or REVIEW_REPOSITORY. */
	enum review_problem (*protects)(void *context, const struct review_share *share,
					const struct review_change *change, const char **rule);
};

/* Paths that the user named, relative to the share. None: everything. */
struct review_paths {
	size_t count;
	const char **paths;
};

/* A share under review. */
struct review_share {
	char *host_path;
	int host_fd;  /* the host's directory, opened for reading */
	int upper_fd; /* -1: nothing was ever changed */
	struct base_list *base;
	const struct review_policy *policy;
};

/* Finds all changes at or below @paths, and the directories that have to be made for them; names
 * the problem of each. 0 or -errno with the sentence printed. Destroy in every case. */
int review_changes_find(struct review_changes *changes, const struct review_share *share,
			const struct review_paths *paths);
void review_changes_destroy(struct review_changes *changes);

/* Adds a change. Its path is copied. 0, -ENOMEM or -E2BIG. */
int review_changes_add(struct review_changes *changes, const struct review_change *change);

/* Whether @path is at or below one of the paths. */
bool review_paths_cover(const struct review_paths *paths, const char *path);

/* Whether one of the paths is at or below @path. */
bool review_paths_lead_through(const struct review_paths *paths, const char *path);

/* Gives a change the first problem that it has: see conflict.c. */
void review_judge(struct review_change *change, const struct review_share *share);

/* The problem as the end of a sentence that begins with the path. */
const char *review_problem_text(enum review_problem problem);

/* Whether two regular files, open for reading, have the same content. 1, 0 or -errno. */
int review_same_content(int one, int other);

#endif

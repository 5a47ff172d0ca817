/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/git_place.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

/* In the order of enum git_part. */
const char *const git_part_names[] = {"objects", "refs",      "HEAD", "config",
				      "hooks",   "commondir", NULL};

enum git_part {
	GIT_PART_OBJECTS = 1,
	GIT_PART_REFS = 2,
	GIT_PART_HEAD = 4,
	GIT_PART_COMMONDIR = 32,
};

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcasecmp(name, *names) == 0)
			return true;
	return false;
}

bool git_is_repository_name(const char *name)
{
	size_t length = strlen(name);

	return length >= 4 && strcasecmp(name + length - 4, ".git") == 0;
}

/*
 * What lies below ".git" may come to lie below another's modules with it, as submodules are taken
 * in, and be a repository there. X.git may be a work tree, and is not moved to such a place.
 */
enum git_directory git_walk_up(struct git_walk *walk, const char *name)
{
	static const char *const data[] = {"objects", "refs", "logs", "hooks", "info", NULL};
	static const char *const holders[] = {"modules", "worktrees", NULL};

	if (git_is_repository_name(name))
		return !walk->begun || (!walk->data &&
					(walk->holds_repositories || strcasecmp(name, ".git") == 0))
			       ? GIT_DIRECTORY_REPOSITORY
			       : GIT_DIRECTORY_INSIDE;
	walk->begun = true;
	walk->data |= is_one_of(name, data);
	walk->holds_repositories = is_one_of(name, holders);
	return GIT_DIRECTORY_OPEN;
}

/* Below a directory called ".git" all is git's own. One called X.git may also be a work tree, and
 * has other names in it than git's. */
bool git_keep_up(struct git_keep *keep, const char *name)
{
	static const char *const data[] = {"branches",     "hooks",        "info",    "lfs",
					   "logs",         "modules",      "objects", "refs",
					   "rebase-apply", "rebase-merge", "remotes", "rr-cache",
					   "sequencer",    "worktrees",    NULL};

	if (git_is_repository_name(name) &&
	    (!keep->begun || keep->data || strcasecmp(name, ".git") == 0))
		return true;
	keep->begun = true;
	keep->data |= is_one_of(name, data);
	return false;
}

static const char *const config_names[] = {"config", "config.worktree", "commondir", NULL};

bool git_place_may_matter(const char *directory_name, const char *name)
{
	return is_one_of(name, config_names) || strcasecmp(name, "hooks") == 0 ||
	       (directory_name && strcasecmp(directory_name, "hooks") == 0);
}

/* When in doubt, it is one. */
static bool may_be_repository(enum git_directory directory)
{
	return directory == GIT_DIRECTORY_REPOSITORY || directory == GIT_DIRECTORY_UNKNOWN;
}

enum git_place git_place_of(enum git_directory parent, const char *directory_name,
			    enum git_directory directory, const char *name)
{
	if (directory_name && strcasecmp(directory_name, "hooks") == 0 && may_be_repository(parent))
		return GIT_PLACE_HOOK;
	if (!may_be_repository(directory))
		return GIT_PLACE_NONE;
	if (is_one_of(name, config_names))
		return GIT_PLACE_CONFIG;
	return strcasecmp(name, "hooks") == 0 ? GIT_PLACE_HOOKS : GIT_PLACE_NONE;
}

/* Where the last name of the first @length bytes of a path begins. */
static size_t last_name(const char *path, size_t length)
{
	while (length > 0 && path[length - 1] != '/')
		length--;
	return length;
}

/* Takes the last name off the first *@length bytes of a path. 1; 0: none is left; -ENAMETOOLONG. */
static int take_last_name(const char *path, size_t *length, char name[NAME_MAX + 1])
{
	size_t start = last_name(path, *length), count = *length - start;

	if (count > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, path + start, count);
	name[count] = '\0';
	*length = start ? start - 1 : 0;
	return count > 0 || start > 0;
}

enum git_directory git_directory_at(const char *path, size_t length)
{
	enum git_directory found = GIT_DIRECTORY_OPEN;
	struct git_walk walk = {0};
	char name[NAME_MAX + 1];
	int taken;

	while ((taken = take_last_name(path, &length, name)) > 0) {
		found = git_walk_up(&walk, name);
		if (found != GIT_DIRECTORY_OPEN)
			return found;
	}
	return taken < 0 ? GIT_DIRECTORY_UNKNOWN : GIT_DIRECTORY_OUTSIDE;
}

bool git_keeps_at(const char *path, size_t length)
{
	struct git_keep keep = {0};
	char name[NAME_MAX + 1];
	int taken;

	while ((taken = take_last_name(path, &length, name)) > 0) {
		if (git_keep_up(&keep, name))
			return true;
	}
	return taken < 0;
}

bool git_is_probe(const char *target)
{
	return strcmp(target, "testing") == 0;
}

enum git_place git_place_at(const char *path)
{
	size_t start = last_name(path, strlen(path)), length = start ? start - 1 : 0;
	size_t directory = last_name(path, length);
	char name[NAME_MAX + 1] = "";

	if (length - directory < sizeof(name))
		memcpy(name, path + directory, length - directory);
	return git_place_of(git_directory_at(path, directory ? directory - 1 : 0),
			    length ? name : NULL, git_directory_at(path, length), path + start);
}

unsigned int git_submodule_depth(const char *path)
{
	size_t start = last_name(path, strlen(path)), length = start ? start - 1 : 0;
	char name[NAME_MAX + 1];

	for (unsigned int depth = 1; take_last_name(path, &length, name) > 0; depth++) {
		if (git_is_repository_name(name))
			return depth > 1 ? depth : 0;
	}
	return 0;
}

bool git_is_sample(const char *name)
{
	size_t length = strlen(name);

	return length > 7 && strcmp(name + length - 7, ".sample") == 0;
}

unsigned int git_part_of(const char *name)
{
	for (unsigned int i = 0; git_part_names[i]; i++)
		if (strcasecmp(name, git_part_names[i]) == 0)
			return 1U << i;
	return 0;
}

/*
 * HEAD, objects and refs are a repository. One that names another directory for all but HEAD
 * ("commondir") has its objects, refs and hooks there, but may have a configuration of its own
 * (config.worktree).
 */
bool git_parts_are_repository(unsigned int parts)
{
	const unsigned int both = GIT_PART_OBJECTS | GIT_PART_REFS;
	const unsigned int linked = GIT_PART_HEAD | GIT_PART_COMMONDIR;

	return (parts & linked) == linked || ((parts & both) == both && (parts & ~both));
}

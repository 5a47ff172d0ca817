/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What git would take a name for, told from the names above it: which directories may be
 * repositories (X.git, and what lies below its "modules" and "worktrees"), and which names in them
 * are a configuration, lead to one, or are a hook (gitrepository-layout(5)). Pure: works on names
 * alone.
 */
#ifndef MVAGENT_FS_GIT_PLACE_H
#define MVAGENT_FS_GIT_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* What a directory is, as far as its path has been followed upwards. */
enum git_directory {
	GIT_DIRECTORY_OPEN,       /* not known yet: go on with the name above */
	GIT_DIRECTORY_REPOSITORY, /* git may take it for a repository */
	GIT_DIRECTORY_INSIDE,     /* it lies in one, where git keeps data */
	GIT_DIRECTORY_OUTSIDE,
	GIT_DIRECTORY_UNKNOWN, /* its path could not be followed */
};

/* Follows the path of a directory upwards; zeroed at first. */
struct git_walk {
	bool begun;
	bool data;               /* below a directory where git keeps data of its own */
	bool holds_repositories; /* the last name: repositories lie below it */
};

/* Takes the next name, the directory's own first. At the top of the path: GIT_DIRECTORY_OUTSIDE. */
enum git_directory git_walk_up(struct git_walk *walk, const char *name);

/* What the directory is that the first @length bytes of @path lead to, from the top. */
enum git_directory git_directory_at(const char *path, size_t length);

/* Goes up as git_walk_up does, but always to the top; zeroed at first. */
struct git_keep {
	bool begun;
	bool data; /* below a directory where git keeps data of its own */
};

/* Takes the next name, the directory's own first. Whether git writes files of its own in there:
 * through whatever symbolic link it finds in the place of one. */
bool git_keep_up(struct git_keep *keep, const char *name);

/* The same of the directory that the first @length bytes of @path lead to. */
bool git_keeps_at(const char *path, size_t length);

/* Where the symbolic link leads by which "git init" finds out whether there can be any. */
bool git_is_probe(const char *target);

enum git_place {
	GIT_PLACE_NONE,
	GIT_PLACE_CONFIG, /* a configuration file, or what leads to one (commondir) */
	GIT_PLACE_HOOKS,  /* the directory of the hooks */
	GIT_PLACE_HOOK,   /* something in it */
};

/* Whether it matters to git_place_of what the directory of @name (called @directory_name) is. */
bool git_place_may_matter(const char *directory_name, const char *name);

/* What @name is in @directory, which is in @parent and is called @directory_name. */
enum git_place git_place_of(enum git_directory parent, const char *directory_name,
			    enum git_directory directory, const char *name);

/* The same of a whole path. */
enum git_place git_place_at(const char *path);

/* A hook that git does not run: those that "git init" makes. */
bool git_is_sample(const char *name);

/* The path of a submodule's configuration: how many directories up from it the directory is that
 * X.git lies in, whose submodule it is; 0 for any other path. */
unsigned int git_submodule_depth(const char *path);

/* A name by which a directory is known as a repository: X.git. */
bool git_is_repository_name(const char *name);

/* What git takes a directory for a repository by, whatever its name is: a set of parts. */
unsigned int git_part_of(const char *name);
bool git_parts_are_repository(unsigned int parts);

/* The names of the parts, NULL at the end. */
extern const char *const git_part_names[];

#endif

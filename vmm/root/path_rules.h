/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of fnmatch(3) for paths, one name at a time: no wildcard goes over a slash. */
#ifndef MVAGENT_ROOT_PATH_RULES_H
#define MVAGENT_ROOT_PATH_RULES_H

#include <stdbool.h>

enum path_place {
	PATH_OUTSIDE, /* neither of these */
	PATH_ABOVE,   /* a directory that leads to what the pattern means */
	PATH_INSIDE,  /* what it means, or below that */
};

/* Where @path lies, at best, by any pattern of a list that ends in NULL; all without a leading
 * slash. */
enum path_place path_rules_place_in_list(const char *const *patterns, const char *path);

/* Whether @pattern hides the file at @path (absolute): a pattern with a slash begins with one and
 * means a whole path, one without means a name anywhere. */
bool path_rules_hides(const char *pattern, const char *path);

#endif

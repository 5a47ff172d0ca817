/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/path_rules.h"

#include <fnmatch.h>
#include <string.h>

#include "vmm/root/erofs_format.h"

#define PATTERN_BYTES 1024U

/* Matches the first name of both; moves both behind it. A name that is longer than any file's
 * matches nothing. */
static bool match_name(const char **pattern, const char **path)
{
	size_t pattern_length = strcspn(*pattern, "/");
	size_t length = strcspn(*path, "/");
	char pattern_name[PATTERN_BYTES], name[EROFS_NAME_MAXIMUM + 1];

	if (pattern_length >= sizeof(pattern_name) || length >= sizeof(name))
		return false;
	memcpy(pattern_name, *pattern, pattern_length);
	pattern_name[pattern_length] = '\0';
	memcpy(name, *path, length);
	name[length] = '\0';
	*pattern += pattern_length + ((*pattern)[pattern_length] == '/');
	*path += length + ((*path)[length] == '/');
	return fnmatch(pattern_name, name, 0) == 0;
}

static enum path_place place_by(const char *pattern, const char *path)
{
	while (*pattern) {
		if (!*path)
			return PATH_ABOVE;
		if (!match_name(&pattern, &path))
			return PATH_OUTSIDE;
	}
	return PATH_INSIDE;
}

enum path_place path_rules_place_in_list(const char *const *patterns, const char *path)
{
	enum path_place best = PATH_OUTSIDE;

	for (; *patterns && best != PATH_INSIDE; patterns++) {
		enum path_place place = place_by(*patterns, path);

		if (place > best)
			best = place;
	}
	return best;
}

bool path_rules_hides(const char *pattern, const char *path)
{
	if (*pattern == '/')
		return place_by(pattern + 1, path + 1) == PATH_INSIDE;
	return fnmatch(pattern, strrchr(path, '/') + 1, 0) == 0;
}

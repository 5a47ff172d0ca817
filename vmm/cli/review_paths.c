/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/review_paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/review/tree.h"

/* Takes ".", "..", and empty components out of an absolute path; in place. */
static void normalize(char *path)
{
	const char *from = path;
	char *to = path;

	while (*from) {
		size_t length;

		from += strspn(from, "/");
		length = strcspn(from, "/");
		if (length == 2 && from[0] == '.' && from[1] == '.') {
			while (to > path && *--to != '/')
				;
		} else if (length && !(length == 1 && from[0] == '.')) {
			*to++ = '/';
			memmove(to, from, length);
			to += length;
		}
		from += length;
	}
	*to = '\0';
}

static char *absolute_path(const char *directory, const char *path)
{
	char *joined;

	if (asprintf(&joined, "%s/%s", *path == '/' ? "" : directory, path) < 0) {
		errno = ENOMEM;
		return NULL;
	}
	normalize(joined);
	return joined;
}

/* The rest of a normalized path in the share; NULL when it is elsewhere. */
static char *below(const char *path, const char *share)
{
	size_t length = strcmp(share, "/") == 0 ? 0 : strlen(share);

	errno = 0;
	if (length && !tree_path_is_within(path, share))
		return NULL;
	path += length;
	return strdup(*path == '/' ? path + 1 : path);
}

/* The directory of @path without links in it, which may be how the user names the share. */
static char *resolved_path(const char *path)
{
	char *slash = strrchr(path, '/'), *directory, *resolved, *joined = NULL;

	directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	resolved = directory ? realpath(directory, NULL) : NULL;
	if (resolved)
		joined = absolute_path(resolved, slash ? slash + 1 : path);
	free(directory);
	free(resolved);
	return joined;
}

/* @path from @directory on, in the share; NULL when it leads elsewhere. */
static char *path_from(const char *directory, const char *path, const char *share)
{
	char *absolute = absolute_path(directory, path);
	char *found = absolute ? below(absolute, share) : NULL;

	free(absolute);
	return found;
}

char *review_path_in_share(const char *path, const char *share, const char *current)
{
	bool at_home = tree_path_is_within(current, share) || strcmp(share, "/") == 0;
	char *found = path_from(current, path, share);

	if (!found && errno != ENOMEM && *path != '/' && !at_home)
		found = path_from(share, path, share);
	if (!found && errno != ENOMEM) {
		char *absolute = resolved_path(path);

		found = absolute ? below(absolute, share) : NULL;
		free(absolute);
	}
	return found;
}

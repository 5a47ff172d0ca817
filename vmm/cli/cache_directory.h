/* SPDX-License-Identifier: Apache-2.0 */
/* The user's cache directory. */
#ifndef MVAGENT_CLI_CACHE_DIRECTORY_H
#define MVAGENT_CLI_CACHE_DIRECTORY_H

#include <limits.h>

/* Opens (O_PATH) the directory mvagent/NAME of $XDG_CACHE_HOME or ~/.cache, made if it is not
 * there, closed to all others. Descriptor, or -errno: then there is no cache, which is no failure.
 */
int cache_directory_open(const char *name);

/* Where those directories are, there or not. 0 or -errno. */
int cache_directory_path(char path[PATH_MAX]);

/* Removes the files that are kept there; what cannot be removed stays. */
void cache_directory_forget(const char *name);

#endif

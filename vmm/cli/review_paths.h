/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as the user names them, in a shared directory. */
#ifndef MVAGENT_CLI_REVIEW_PATHS_H
#define MVAGENT_CLI_REVIEW_PATHS_H

/* The part of @path that is below the directory @share (absolute, without links): "" for the
 * directory itself. A relative path begins at @current, the current directory; if that is not in
 * the share and nothing of the share is meant so, it begins at the share. Nothing need be there.
 * Allocated; NULL when it is not in the share, or with errno ENOMEM. */
char *review_path_in_share(const char *path, const char *share, const char *current);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a file system can hold what a share under review needs of it. */
#ifndef MVAGENT_CLI_REVIEW_PROBE_H
#define MVAGENT_CLI_REVIEW_PROBE_H

/* Tries it in @directory_fd, which is empty of the names used, and leaves nothing there. 0, or
 * -errno and *@lacking: what the file system does not take ("whiteouts"). */
int review_probe(int directory_fd, const char **lacking);

/* The same for where the runs would be kept (review_store_path), of which perhaps nothing is there
 * yet: tried in the nearest directory above it that is. @directory: PATH_MAX bytes for its name. */
int review_probe_store(char *directory, const char **lacking);

#endif

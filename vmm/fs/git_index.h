/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a git repository tracks, read from its index (gitformat-index(5), versions 2 to 4).
 */
#ifndef MVAGENT_FS_GIT_INDEX_H
#define MVAGENT_FS_GIT_INDEX_H

#include <stddef.h>
#include <stdint.h>

typedef void git_index_visit(void *context, const char *path);

/* Calls @visit with each tracked path. @bytes: the whole file. 0, or -EPROTO when it is not such a
 * file; what came before the fault was visited. */
int git_index_read(const uint8_t *bytes, size_t size, git_index_visit *visit, void *context);

#endif

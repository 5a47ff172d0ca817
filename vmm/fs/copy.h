/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of host files, complete and sparse as the original. */
#ifndef MVAGENT_FS_COPY_H
#define MVAGENT_FS_COPY_H

struct statx;

/* Makes the empty file @to (open to write) a copy of @from (open to read), whose status is @status:
 * contents, holes, user attributes, mode without set-id bits, times. Extents are shared where the
 * file system can. 0 or -errno. */
int copy_file(int from, int to, const struct statx *status);

/* Copies the attributes user.* but our own (vmm/review/layout.h). 0 or -errno. */
int copy_user_attributes(int from, int to);

#endif

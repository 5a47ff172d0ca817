/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MVAGENT_REVIEW_COPY_H
#define MVAGENT_REVIEW_COPY_H

/* Copies the content of one file to an empty one: by sharing its blocks where the file system can,
 * holes as holes. 0 or -errno. */
int copy_content(int from, int to);

/* Copies the attributes user.* but our own. 0 or -errno. */
int copy_attributes(int from, int to);

#endif

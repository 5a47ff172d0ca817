/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a share's base, to be asked by path. */
#ifndef MVAGENT_REVIEW_BASE_LIST_H
#define MVAGENT_REVIEW_BASE_LIST_H

#include "vmm/review/layout.h"

struct base_list;

/* Reads a base from @fd (which stays the caller's). A last line without its newline was never
 * finished and counts for nothing. 0, -EPROTO with the sentence printed, or -errno. Destroy in
 * every case. */
int base_list_read(struct base_list **list, int fd);
void base_list_destroy(struct base_list *list);

/* What the host had at @path, or NULL for nothing. */
const struct review_base *base_list_find(const struct base_list *list, const char *path);

#endif

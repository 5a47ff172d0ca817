/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to upper/ itself, as what is in it gets applied or thrown away. */
#ifndef MVAGENT_REVIEW_UPPER_H
#define MVAGENT_REVIEW_UPPER_H

#include "vmm/review/change.h"

/* Whether a directory of upper/, open for reading, carries the mark. */
bool upper_is_opaque(int directory_fd);

/* Opens a regular file of upper/ for reading, even if the guest took that permission away from it.
 * fd or -errno. */
int upper_open_file(int upper_fd, const char *path);

/* Turns opaque directories into ones that are merged, with a whiteout for each name that they hid:
 * then parts of them can be applied and forgotten. 0 or -errno. */
int upper_spell_out(const struct review_share *share);

/* Forgets an applied change: removes its name from upper/. A directory goes with the last name in
 * it. 0 or -errno. */
int upper_forget(const struct review_share *share, const struct review_change *change);

/* Removes everything in a directory, of any depth and with any permissions in it; opens no more
 * than two directories at a time. 0 or -errno. */
int upper_remove_contents(int directory_fd);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One change, made in the host's tree. Each function first looks whether the host's object is still
 * the one that the change was judged by, and answers -ESTALE when it is not; no content is ever
 * half-written under its name, and no link is followed.
 */
#ifndef MVAGENT_REVIEW_PLACE_H
#define MVAGENT_REVIEW_PLACE_H

#include "vmm/review/change.h"

/* Makes or replaces an object: a file with its content, a link, a fifo, a socket, or an empty
 * directory, with all permissions that its owner may have. What it replaces stays if it is a
 * directory that is not empty. 0 or -errno. */
int place_object(const struct review_share *share, const struct review_change *change);

/* Gives a file or directory its permission bits; set-id and sticky bits of a directory stay. 0 or
 * -errno. */
int place_mode(const struct review_share *share, const struct review_change *change);

/* Removes the host's object; a directory must be empty. 0 or -errno. */
int place_deletion(const struct review_share *share, const struct review_change *change);

#endif

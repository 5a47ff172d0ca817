/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the guest changed, for the record of the run: for each file what it was before the guest's
 * first change of it, and, when the guest is gone, what it is then. Operations tell of what they
 * are about to do and have done; the hash of old contents is taken before they are lost.
 *
 * All is counted. So many files are told of, those apart that were there before the run: a guest
 * that makes a million files must not get what it does to the user's own out of sight.
 */
#ifndef MVAGENT_FS_JOURNAL_H
#define MVAGENT_FS_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "vmm/wire/fs_report.h"

struct fs_place;
struct fs_server;
struct inode;
struct journal;

/* @fd: to the supervisor; taken over, also on failure. *journal is NULL when it is
 * none (-1 or 0). 0 or -ENOMEM. */
int journal_create(struct journal **journal, int fd);
void journal_destroy(struct journal *journal);

/* All the following do nothing in a server without one. */

/* Before the inode's attributes, or its contents as well, change. */
void journal_before(struct fs_server *server, struct inode *inode, bool contents);

/* Before the name goes, or another takes its place. @victim, @status: from fs_hold_victim. */
void journal_before_removal(struct fs_server *server, const struct fs_place *place,
			    const struct inode *victim, const struct statx *status);

/* After it was made, removed, moved (@exchange: and the other one the other way). @mode: of what
 * moved. */
void journal_made(struct fs_server *server, const struct fs_place *place);
void journal_removed(struct fs_server *server, const struct fs_place *place);
void journal_moved(struct fs_server *server, const struct fs_place *from, const struct fs_place *to,
		   mode_t mode, bool exchange);

/* Before it moves; @status: of it. */
void journal_before_move(struct fs_server *server, const struct fs_place *place,
			 const struct statx *status);

/* A change of permissions. */
void journal_count_mode(struct fs_server *server);

/* The guest tried what a rule forbids, for the @count th time. */
void journal_refusal(struct fs_server *server, const char *path, const char *rule, bool hidden,
		     uint64_t count);

/* Something for the user to look at, as it happens. */
void journal_finding(struct fs_server *server, enum fs_report_finding finding, const char *path);

/* The guest is gone: looks at each file once more and tells what became of it. @walls: of the jail.
 */
void journal_finish(struct fs_server *server);

/* What this process is confined by: enum jail_wall. */
void journal_walls(struct fs_server *server, uint8_t walls);

#endif

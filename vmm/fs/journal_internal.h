/* SPDX-License-Identifier: Apache-2.0 */
/* Between journal.c, which keeps what happens, and journal_finish.c, which tells what became of it.
 */
#ifndef MVAGENT_FS_JOURNAL_INTERNAL_H
#define MVAGENT_FS_JOURNAL_INTERNAL_H

#include <time.h>

#include "vmm/fs/journal.h"
#include "vmm/fs/journal_table.h"

/* A path from the share's root. */
struct journal_path {
	char text[FS_REPORT_TEXT_BYTES + 1];
};

struct journal {
	int fd;                /* -1: the supervisor is gone */
	bool full;             /* a file was not taken in for want of room */
	struct timespec begin; /* of the clock by which files are made */
	uint64_t hashed_bytes;
	uint64_t counts[FS_COUNTS];
	struct journal_table table;
	struct journal_path path; /* room for those at work */
	struct journal_path other;
	struct journal_path was;
};

/* Sends a message. @wait: for room; else one that finds none is dropped. */
void journal_send(struct journal *journal, const struct fs_report *report, bool wait);

/* The hash of what an O_PATH descriptor refers to: of a regular file its contents, of a symbolic
 * link where it leads. False: it is neither, has more than @limit bytes, or cannot be read. */
bool journal_hash(const struct fs_server *server, int path_fd, mode_t mode, uint64_t limit,
		  uint8_t hash[32]);

/* Whether CI or a build obeys a file of that path, as far as its name says. */
bool journal_is_build_file(const char *path);

/* Whether it is what a package manager or git has put there. */
bool journal_is_package_file(const char *path);

#endif

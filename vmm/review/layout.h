/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run with `--share DIR:review` leaves behind for `mvagent diff` and `mvagent apply`, and
 * how it is written. mvagent-fs writes the changes, the supervisor writes run.json, the review
 * commands read both.
 *
 *     ${XDG_STATE_HOME:-$HOME/.local/state}/mvagent/runs/RUN/    mode 0700
 *         run.json          what ran, and on which directories: see record.h
 *         share0/upper/     what the guest changed in the first such share
 *         share0/base       what the host had there when the guest changed it
 *         applied           everything was applied: what is left of upper/ means nothing
 *         discarded         the rest was thrown away: the same
 *
 * RUN is the time in UTC and four random digits: 20261129-194633-5fa0. While the run goes on, and
 * while a review command changes something, its process holds an exclusive flock(2) on RUN/.
 *
 * upper/ is an overlay over the host's directory:
 *   - A regular file, symbolic link, fifo or socket is new or changed: its whole content and mode.
 *   - A character device 0:0 is a whiteout: the guest deleted the name (with everything below it).
 *   - A directory with the attribute user.mvagent.opaque = "y" hides all that the host has at its
 *     path, and directories in it do so as well: one that the guest made where it had deleted
 *     something, or moved there. Another one is merged with the host's.
 *   - user.mvagent.origin is for people: device and inode that an object was copied from.
 *
 * base has a line of JSON for each object of the host at the moment when the guest's change hid it:
 * copied up, deleted, or below a directory that was replaced or deleted. The line is written before
 * the change. Of two lines for one path the later one counts; a path without a line was not there.
 *
 *     {"path":"src/a b%0a","type":"file","mode":420,"size":12,"mtime_ns":1764442800123456789,
 *      "ctime_ns":1764442800123456789,"inode":1311}
 *
 * The path is relative to the share, without a slash at either end. In it "%", the quotation mark,
 * the backslash and all bytes that are not printable ASCII are written as % and two hex digits.
 */
#ifndef MVAGENT_REVIEW_LAYOUT_H
#define MVAGENT_REVIEW_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "vmm/base/limits.h"

#define REVIEW_RUN_FILE       "run.json"
#define REVIEW_UPPER          "upper"
#define REVIEW_BASE           "base"
#define REVIEW_MARK_APPLIED   "applied"
#define REVIEW_MARK_DISCARDED "discarded"
#define REVIEW_XATTR_OPAQUE   "user.mvagent.opaque"
#define REVIEW_XATTR_ORIGIN   "user.mvagent.origin"
#define REVIEW_XATTR_OURS     "user.mvagent."

/* "20261129-194633-5fa0" and the end of the string. */
#define REVIEW_RUN_NAME_BYTES 21

/* Room for an escaped path, and for a line of base with it. */
#define REVIEW_ESCAPED_BYTES (3 * LIMIT_REVIEW_PATH_BYTES + 1)
#define REVIEW_LINE_BYTES    (REVIEW_ESCAPED_BYTES + 256)

/* The host's object as the guest's change found it. */
struct review_base {
	mode_t mode; /* type and permission bits */
	uint64_t inode;
	uint64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns;
};

/* Whether such a file in upper/ is a whiteout; @device is its st_rdev. */
bool review_is_whiteout(mode_t mode, dev_t device);

/* Whether a name is one of ours for the moment before an object gets its own: ".mvagent-" or
 * ".mvagent-apply-" and 16 hex digits. Of a process that was killed it stays behind; guests neither
 * see nor make such names. */
bool review_is_temporary(const char *name);

/* Whether @text has the form of a RUN. */
bool review_is_run_name(const char *text);

/* Escapes a path, or a text of any bytes. Returns the length, or -ENAMETOOLONG when @size is too
 * small for it. */
ssize_t review_escape(const char *text, char *escaped, size_t size);

/* The reverse, in place. 0, or -EINVAL (not written by review_escape, or a NUL byte in it). */
int review_unescape(char *text);

/* Writes a line of base, newline included, to @line. Returns its length, -ENAMETOOLONG, or -EINVAL
 * for a type that is never a base (a device). */
ssize_t review_base_format(const char *path, const struct review_base *base, char *line,
			   size_t size);

/* Reads a line without its newline; changes @line. *@path points into it. 0 or -EINVAL. */
int review_base_parse(char *line, const char **path, struct review_base *base);

#endif

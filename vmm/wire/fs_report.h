/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What mvagent-fs tells the supervisor for the record of the run, over a SOCK_SEQPACKET pair: one
 * message a packet, one way. mvagent-fs speaks with the guest and may be its by now, so what it
 * says is decoded as if it were hostile; that it is from this share's server is all that is
 * certain.
 */
#ifndef MVAGENT_WIRE_FS_REPORT_H
#define MVAGENT_WIRE_FS_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FS_REPORT_TEXT_BYTES ((size_t)4095) /* of a path, and of the other text */

enum fs_report_type {
	FS_REPORT_WALLS = 1, /* counts[0]: enum jail_wall */
	FS_REPORT_SHARE,     /* counts: FS_COUNT_*; the last one */
	FS_REPORT_CHANGE,    /* of one file: what it was before the run, and is after it */
	FS_REPORT_REFUSAL,   /* path, other: the rule or the reason; counts[0]: how often so far */
	FS_REPORT_FINDING,   /* path */
	FS_REPORT_TYPES,
};

enum fs_report_change {
	FS_CHANGE_CREATED,
	FS_CHANGE_CHANGED, /* contents, or the kind of file */
	FS_CHANGE_DELETED,
	FS_CHANGE_RENAMED, /* other: its path before the run; it may have been changed as well */
	FS_CHANGE_MODE,    /* nothing but the permissions */
	FS_CHANGES,
};

enum fs_report_finding {
	FS_FINDING_REPOSITORY, /* a git repository that the guest has made */
	FS_FINDING_EXECUTABLE, /* a file that was made, or made executable */
	FS_FINDING_BUILD,      /* what CI or a build obeys was made, changed, moved or deleted */
	FS_FINDINGS,
};

enum fs_report_flag {
	FS_REPORT_BEFORE = 1, /* there was a file: mode_before and size_before are known */
	FS_REPORT_AFTER = 2,
	FS_REPORT_HASH_BEFORE = 4, /* of a regular file, unless it was too large */
	FS_REPORT_HASH_AFTER = 8,
	FS_REPORT_HIDDEN = 16, /* FS_REPORT_REFUSAL: the rule hides; else it protects */
};
#define FS_REPORT_FLAGS 31U

/* What was counted over the whole run, whether it is told of or not. */
enum fs_report_count {
	FS_COUNT_HIDDEN,      /* names that were hidden at the beginning */
	FS_COUNT_PROTECTED,   /* and protected */
	FS_COUNT_MADE,        /* operations: names made, */
	FS_COUNT_REMOVED,     /* removed, */
	FS_COUNT_MOVED,       /* moved, */
	FS_COUNT_OPENED,      /* opened to be changed, */
	FS_COUNT_MODES,       /* changes of permissions */
	FS_COUNT_UNTOLD,      /* of these, those to files that no FS_REPORT_CHANGE tells of */
	FS_COUNT_EXECUTABLES, /* FS_FINDING_EXECUTABLE, and those in packages, which are not told */
	FS_COUNT_REFUSALS,
	FS_COUNT_ERRORS,  /* requests answered with an error */
	FS_COUNT_INVALID, /* requests that were not well-formed */
	FS_COUNT_FULL,    /* requests that hit a bound: ENFILE */
	FS_COUNTS,
};

struct fs_report {
	uint32_t type;
	uint32_t kind; /* enum fs_report_change or fs_report_finding */
	uint32_t flags;
	uint32_t mode_before; /* type and permissions */
	uint32_t mode_after;
	uint32_t zero;
	uint64_t size_before;
	uint64_t size_after;
	uint8_t hash_before[32];
	uint8_t hash_after[32];
	uint64_t counts[FS_COUNTS];
	char path[FS_REPORT_TEXT_BYTES + 1]; /* from the share's root */
	char other[FS_REPORT_TEXT_BYTES + 1];
};

/* Room for any message: what comes before the texts, their lengths, and both of them. */
#define FS_REPORT_BYTES \
	(offsetof(struct fs_report, path) + 2 * sizeof(uint16_t) + 2 * FS_REPORT_TEXT_BYTES)

/* Writes a message to @bytes, FS_REPORT_BYTES of room. Its length. */
size_t fs_report_encode(const struct fs_report *report, uint8_t *bytes);

/* Reads one. 0, or -EPROTO: it is none. */
int fs_report_decode(struct fs_report *report, const uint8_t *bytes, size_t length);

#endif

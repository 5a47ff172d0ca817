/* SPDX-License-Identifier: Apache-2.0 */
/* Where a share differs from a local file system on purpose, each with its reason. */
#ifndef TESTS_POSIX_DEVIATION_H
#define TESTS_POSIX_DEVIATION_H

enum deviation {
	DEVIATION_SET_ID,
	DEVIATION_CHOWN,
	DEVIATION_OWNER,
	DEVIATION_RIGHTS,
	DEVIATION_DEVICE,
	DEVIATION_XATTR,
	DEVIATION_ATIME,
	DEVIATION_COLLAPSE,
	DEVIATION_FLAGS,
	DEVIATION_WHITEOUT,
	DEVIATION_COUNT
};

struct deviation_text {
	const char *name;
	const char *standard; /* what a local file system does */
	const char *share;    /* what the share does */
	const char *reason;
};

const struct deviation_text *deviation_text(enum deviation deviation);

#endif

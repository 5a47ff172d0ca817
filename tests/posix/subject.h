/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The things that operations are tried on: one of each file type, and the paths that lead nowhere.
 * All are made in the current directory.
 */
#ifndef TESTS_POSIX_SUBJECT_H
#define TESTS_POSIX_SUBJECT_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "tests/posix/check.h"

enum subject {
	SUBJECT_MISSING,
	SUBJECT_FILE,           /* 12 bytes, 0644 */
	SUBJECT_DIRECTORY,      /* empty, 0755 */
	SUBJECT_FULL_DIRECTORY, /* with a file "inside" in it */
	SUBJECT_LINK_TO_FILE,
	SUBJECT_LINK_TO_DIRECTORY,
	SUBJECT_LINK_TO_NOTHING,
	SUBJECT_LINK_TO_ITSELF,
	SUBJECT_FIFO,
	SUBJECT_SOCKET,
	SUBJECT_NAMES, /* so far: things with a name of their own; from here: paths that fail */
	SUBJECT_BELOW_MISSING = SUBJECT_NAMES,
	SUBJECT_BELOW_FILE,
	SUBJECT_BELOW_FIFO,
	SUBJECT_BELOW_LINK_TO_NOTHING,
	SUBJECT_BELOW_LOOP,
	SUBJECT_LONG_NAME, /* 256 bytes */
	SUBJECT_LONG_PATH, /* 4096 bytes */
	SUBJECT_EMPTY_PATH,
	SUBJECT_COUNT
};

/* What lstat says of a name, as far as an operation that fails must not change it. */
struct subject_state {
	bool exists;
	ino_t number;
	mode_t mode;
	nlink_t links;
	off_t size;
};

#define SUBJECT_CONTENT "some content"

const char *subject_name(enum subject subject);

/* Makes the subject under the name @base, what it needs beside it under @base with a suffix. */
void subject_make(struct suite *suite, enum subject subject, const char *base);

/* Removes it and what was made for it, whatever has become of them. */
void subject_remove(struct suite *suite, enum subject subject, const char *base);

/* The path by which operations name the subject. */
const char *subject_path(enum subject subject, const char *base, char path[PATH_MAX + 2]);

/* The errno that every operation on the path gives, 0 if that depends on the operation. */
int subject_path_error(enum subject subject);

/* What it is without and with symbolic links followed; an S_IFMT value, 0 if there is nothing. */
mode_t subject_type(enum subject subject);
mode_t subject_target_type(enum subject subject);

/* The errno of an operation that follows symbolic links to something that must exist. */
int subject_follow_error(enum subject subject);

struct subject_state subject_state(const char *path);
bool subject_same(const struct subject_state *one, const struct subject_state *other);

#endif

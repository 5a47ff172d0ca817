/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting assertions. A suite runs groups of checks in a directory of the file system under test;
 * each failed check prints one line: what was done, what was expected, what came instead.
 */
#ifndef TESTS_POSIX_CHECK_H
#define TESTS_POSIX_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/posix/deviation.h"

/* The file system that keeps the files; of a share, the one on the host. */
enum backing { BACKING_TMPFS, BACKING_EXT4 };

struct check_counters {
	unsigned long passed;
	unsigned long failed;
	unsigned long skipped;
	unsigned long deviations[DEVIATION_COUNT];
};

struct suite {
	struct check_counters *counters; /* in memory that forked processes share */
	const char *group;
	enum backing backing;
	bool share;
	bool owner_rights;   /* the share is served by an ordinary user */
	bool privileged;     /* this process is root */
	uid_t user;          /* whose a new file is, */
	gid_t group_id;      /* and its group */
	const char *other;   /* a writable directory on another mount, or NULL */
	const char *large;   /* a directory of the files entry0 to entry9999, or NULL: make one */
	const char *program; /* path of this executable, on the file system it was started from */
};

/* @result is what a system call returned: -1 with errno, or not. @wanted: 0, or the errno it must
 * fail with. Returns whether the check passed. */
bool check_result(struct suite *suite, long result, int wanted, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Any two numbers. */
#define check_equal(suite, got, wanted, ...) \
	check_equal_numbers(suite, (long long)(got), (long long)(wanted), __VA_ARGS__)
bool check_equal_numbers(struct suite *suite, long long got, long long wanted, const char *format,
			 ...) __attribute__((format(printf, 4, 5)));

bool check_true(struct suite *suite, bool condition, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* @size bytes of @got are those of @wanted. */
bool check_bytes(struct suite *suite, const void *got, const void *wanted, size_t size,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Counts checks that cannot be made here, with one line that says why. */
void check_skip(struct suite *suite, unsigned int count, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* What a test needs before it can check anything: ends this process when @result is -1. */
int must(struct suite *suite, long result, const char *what);

/* On a share with this deviation @there, elsewhere @standard. */
int expect_unless(struct suite *suite, enum deviation deviation, int standard, int there);

/* Runs @body in a process of its own and waits; one that crashes or hangs is a failed check. */
void check_in_process(struct suite *suite, const char *name, void (*body)(struct suite *suite));

/* An address where nothing is mapped, which no compiler knows. */
void *check_bad_address(void);

/* "ENOENT", or "success" for 0. */
const char *check_errno_name(int error);

#endif

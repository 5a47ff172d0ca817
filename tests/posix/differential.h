/* SPDX-License-Identifier: Apache-2.0 */
/* The same operation on two directories, and whether it did the same. */
#ifndef TESTS_POSIX_DIFFERENTIAL_H
#define TESTS_POSIX_DIFFERENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/posix/random.h"

#define SLOTS      8
#define DATA_BYTES 65536

/* One of the two directories. */
struct side {
	int directory;
	int slots[SLOTS]; /* open files, -1: none */
};

/* What a step does, chosen once and done on both sides. */
struct choice {
	const struct operation *operation;
	char path[16];
	char other_path[16];
	int slot;
	int other_slot;
	int flags;
	mode_t mode;
	off_t offset;
	size_t length;
	uint64_t content; /* seed of what is written */
};

/* What came of it. */
struct answer {
	long value;
	int error; /* errno, when value is -1 */
	size_t size;
	char data[DATA_BYTES]; /* what was read, listed or told, in a form that can be compared */
};

typedef long operation_function(struct side *side, const struct choice *choice,
				struct answer *answer);

struct operation {
	const char *name;
	operation_function *run;
	unsigned int weight;
};

/* The operations, and how many. */
extern const struct operation differential_operations[];
extern const size_t differential_operation_count;

/* The type, mode, links and size of @path in @directory as text, or its error. */
void differential_describe(int directory, const char *path, char *text, size_t size);

/* Compares the trees below two directories: names, what describes each, contents, targets. Prints
 * the first difference. */
bool differential_same_tree(int one, int other);

/* Empties a directory, whatever the modes in it. */
void differential_clear(int directory);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that a seed repeats, and a record of the last steps for when one fails. */
#ifndef TESTS_POSIX_RANDOM_H
#define TESTS_POSIX_RANDOM_H

#include <stdint.h>

struct random_numbers {
	uint64_t state;
};

/* The next number (splitmix64). */
uint64_t random_next(struct random_numbers *numbers);

/* One of 0 to @bound - 1. */
uint64_t random_below(struct random_numbers *numbers, uint64_t bound);

#define JOURNAL_STEPS 20
#define JOURNAL_TEXT  200

struct journal {
	unsigned long step; /* of the next line */
	char text[JOURNAL_STEPS][JOURNAL_TEXT];
};

/* Notes what the next step does. */
void journal_note(struct journal *journal, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints the steps noted last, the newest at the end. */
void journal_print(const struct journal *journal);

struct random_options {
	uint64_t seed;       /* by default of the clock */
	unsigned long steps; /* by default 10000 */
	unsigned long check; /* how many steps from one look at everything to the next */
};

/* Takes --seed, --steps and --check. Returns the index of the first argument, or -1. */
int random_take_options(struct random_options *options, int argc, char **argv);

#endif

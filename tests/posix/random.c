/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/posix/random.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

uint64_t random_next(struct random_numbers *numbers)
{
	uint64_t mixed = numbers->state += 0x9e3779b97f4a7c15;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
	return mixed ^ mixed >> 31;
}

uint64_t random_below(struct random_numbers *numbers, uint64_t bound)
{
	return random_next(numbers) % bound;
}

void journal_note(struct journal *journal, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(journal->text[journal->step % JOURNAL_STEPS], JOURNAL_TEXT, format, arguments);
	va_end(arguments);
	journal->step++;
}

void journal_print(const struct journal *journal)
{
	unsigned long step = journal->step > JOURNAL_STEPS ? journal->step - JOURNAL_STEPS : 0;

	for (; step < journal->step; step++)
		printf("  step %lu: %s\n", step, journal->text[step % JOURNAL_STEPS]);
}

int random_take_options(struct random_options *options, int argc, char **argv)
{
	static const struct option known[] = {
		{"seed", required_argument, NULL, 's'},
		{"steps", required_argument, NULL, 'n'},
		{"check", required_argument, NULL, 'c'},
		{NULL, 0, NULL, 0},
	};
	struct timespec now;
	int option;

	clock_gettime(CLOCK_REALTIME, &now);
	options->seed = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	options->steps = 10000;
	options->check = 100;
	while ((option = getopt_long(argc, argv, "+", known, NULL)) != -1) {
		if (option == 's')
			options->seed = strtoull(optarg, NULL, 0);
		else if (option == 'n')
			options->steps = strtoul(optarg, NULL, 0);
		else if (option == 'c')
			options->check = strtoul(optarg, NULL, 0);
		else
			return -1;
	}
	return options->check ? optind : -1;
}

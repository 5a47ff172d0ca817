/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of diff, apply, discard and runs: `mvagent diff [RUN] [OPTION...] [PATH...]`.
 */
#ifndef MVAGENT_CLI_REVIEW_OPTIONS_H
#define MVAGENT_CLI_REVIEW_OPTIONS_H

#include <stdbool.h>

enum review_verb { REVIEW_DIFF, REVIEW_APPLY, REVIEW_DISCARD, REVIEW_RUNS };

struct review_options {
	enum review_verb verb;
	const char *run; /* NULL: not given */
	bool stat;
	bool json;
	const char *record; /* where records are; NULL: in the user's state directory */
	bool moved;
	unsigned int path_count;
	char **paths;     /* as given; the array ends with NULL */
	char **unprotect; /* patterns; the array ends with NULL */
	unsigned int unprotect_count;
};

/* Parses argv (argv[0] is the verb). 1: go on; 0: all is done (--help); -errno with the sentence
 * printed. Free in every case. */
int review_options_parse(struct review_options *options, enum review_verb verb, int argc,
			 char **argv);
void review_options_free(struct review_options *options);

#endif

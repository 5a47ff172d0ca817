/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of record, log, and runs. */
#ifndef MVAGENT_CLI_RECORD_OPTIONS_H
#define MVAGENT_CLI_RECORD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum record_verb {
	RECORD_VERB_SHOW,
	RECORD_VERB_VERIFY,
	RECORD_VERB_LOG,
	RECORD_VERB_PRUNE,
	RECORD_VERB_REPAIR,
	RECORD_VERB_COUNT
};

struct record_options {
	enum record_verb verb;
	const char *what;      /* a run, or a file */
	const char *directory; /* --record: where the records are; NULL: the user's own */
	const char *key;       /* --key; NULL: the user's own */
	bool json;
	bool follow;
	bool has_keep;
	uint64_t keep;          /* the newest so many stay */
	uint64_t older_seconds; /* 0: not given */
};

/* Parses argv (argv[0] is the verb). 1: go on; 0: all is done (--help); -errno with the sentence
 * printed. */
int record_options_parse(struct record_options *options, enum record_verb verb, int argc,
			 char **argv);

#endif

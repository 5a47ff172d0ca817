/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines of all our programs: getopt_long(3), but with exact names (an abbreviation would
 * change its meaning when an option is added), and with one sentence for each mistake.
 */
#ifndef MVAGENT_BASE_OPTION_H
#define MVAGENT_BASE_OPTION_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

/* Values in struct option that are answered here; a program's own begin at OPTION_FIRST. */
enum { OPTION_HELP = 'h', OPTION_VERSION = 'V', OPTION_FIRST = 256 };

struct option_set {
	const char *usage;            /* what --help prints */
	const char *version;          /* what --version prints; NULL: there is no such option */
	const char *help;             /* for messages: "mvagent-fs --help" */
	const char *letters;          /* as for getopt(3); begins with "+:" */
	const struct option *options; /* the last one is all zeros */
	/* What may follow the options; nothing if neither is set. */
	bool takes_command; /* a command with options of its own */
	bool takes_words;   /* other arguments, which may stand between the options */
	/* Applies one option; @value is NULL for those without. 0 or -errno with the sentence
	 * printed. */
	int (*apply)(void *context, int option, char *value);
};

/* Applies the options in @argv (of main, or from a subcommand's name on; NULL at its end). Returns
 * the index of the first argument that is no option (argc: none), 0 when all is done (--help,
 * --version), or -errno with the sentence printed. Words are moved to the end of argv, in their
 * order; what is before them is of no use then. */
int option_set_parse(const struct option_set *set, int argc, char **argv, void *context);

/* The value of an option that names an inherited descriptor, which is made CLOEXEC; one that *@fd
 * holds from before is closed. 0, -EINVAL or -EBADF, with the sentence printed. */
int option_parse_fd(const char *option, const char *text, int *fd);

/* The value of an option that is a number within [@minimum, @maximum]. 0 or -EINVAL, with the
 * sentence printed. */
int option_parse_number(const char *option, const char *text, uint64_t minimum, uint64_t maximum,
			uint64_t *number);

#endif

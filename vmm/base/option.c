/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/base/option.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/number.h"

static bool is_long(const char *argument)
{
	return argument[0] == '-' && argument[1] == '-' && argument[2];
}

static bool is_named(const struct option_set *set, const char *argument)
{
	const char *name = argument + 2;
	size_t length = strcspn(name, "=");

	for (const struct option *option = set->options; option->name; option++) {
		if (strlen(option->name) == length && memcmp(option->name, name, length) == 0)
			return true;
	}
	return false;
}

static int refuse_unknown(const struct option_set *set, const char *name)
{
	log_error("unknown option '%s'; see '%s'%s", name, set->help,
		  set->takes_command ? ", and put -- before a command that begins with -" : "");
	return -EINVAL;
}

/* Says what getopt_long(3) did not like in @argument, whose name it knows if it is a long one. */
static int refuse(const struct option_set *set, int option, const char *argument)
{
	const char letter[] = {'-', (char)optopt, '\0'};

	if (option == '?' && !is_long(argument))
		return refuse_unknown(set, letter);
	if (option == '?')
		log_error("'%s': this option takes no value; see '%s'", argument, set->help);
	else
		log_error("%.*s needs a value; see '%s'", (int)strcspn(argument, "="), argument,
			  set->help);
	return -EINVAL;
}

static int check_rest(const struct option_set *set, int argc, char **argv)
{
	if (set->takes_command || set->takes_words || optind == argc)
		return optind;
	log_error("unexpected argument '%s'; see '%s'", argv[optind], set->help);
	return -EINVAL;
}

static int parse_in_order(const struct option_set *set, int argc, char **argv, void *context)
{
	optind = 0; /* glibc: start anew, whoever used getopt before */
	opterr = 0;
	for (;;) {
		/* "+" in the letters: arguments are looked at in their order. */
		const char *argument = argv[optind ? optind : 1];
		int error, option;

		if (!argument)
			return argc;
		if (is_long(argument) && !is_named(set, argument))
			return refuse_unknown(set, argument);
		option = getopt_long(argc, argv, set->letters, set->options, NULL);
		switch (option) {
		case -1:
			return check_rest(set, argc, argv);
		case OPTION_HELP:
			fputs(set->usage, stdout);
			return 0;
		case OPTION_VERSION:
			puts(set->version);
			return 0;
		case '?':
		case ':':
			return refuse(set, option, argument);
		default:
			if (optarg && !*optarg)
				return refuse(set, ':', argument);
			error = set->apply(context, option, optarg);
			if (error)
				return error;
			break;
		}
	}
}

int option_set_parse(const struct option_set *set, int argc, char **argv, void *context)
{
	int at = 0, words = 0;

	if (!set->takes_words)
		return parse_in_order(set, argc, argv, context);
	/* Each round takes options and one word, which goes where argv is not needed any more. */
	while (at < argc) {
		int next = parse_in_order(set, argc - at, argv + at, context);
		bool words_only;

		if (next <= 0)
			return next;
		at += next;
		words_only = strcmp(argv[at - 1], "--") == 0;
		if (at < argc)
			argv[words++] = argv[at];
		while (words_only && ++at < argc)
			argv[words++] = argv[at];
	}
	memmove(argv + argc - words, argv, (size_t)words * sizeof(*argv));
	return argc - words;
}

int option_parse_fd(const char *option, const char *text, int *fd)
{
	uint64_t number;
	int error = number_parse(text, 0, INT_MAX, &number);

	if (!error && fcntl((int)number, F_SETFD, FD_CLOEXEC) < 0)
		error = -errno;
	if (error) {
		log_error("%s needs the number of an open descriptor, not '%s'", option, text);
		return error;
	}
	fd_close(fd);
	*fd = (int)number;
	return 0;
}

int option_parse_number(const char *option, const char *text, uint64_t minimum, uint64_t maximum,
			uint64_t *number)
{
	int error = number_parse(text, minimum, maximum, number);

	if (error)
		log_error("%s needs a number of %llu to %llu, not '%s'", option,
			  (unsigned long long)minimum, (unsigned long long)maximum, text);
	return error;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/record_options.h"

#include <errno.h>
#include <string.h>

#include "vmm/base/log.h"
#include "vmm/base/number.h"
#include "vmm/base/option.h"

#define RUN_HELP                                                                              \
	"RUN is a run as 'mvagent runs' lists it, or the path of a record (with a slash in\n" \
	"it). Without RUN: the newest.\n"
#define DIRECTORY_HELP                                                                \
	"  --record DIR      where the records are, if not in your state directory\n" \
	"  -h, --help        this text\n"

static const char show_usage[] = "usage: mvagent record show [RUN] [OPTIONS]\n"
				 "Shows what is on record of a run.\n" RUN_HELP "\n"
				 "  --json            the lines as they are\n" DIRECTORY_HELP;

static const char verify_usage[] =
	"usage: mvagent record verify FILE|RUN [OPTIONS]\n"
	"Says whether a record is what its run wrote, and else names the first line that was\n"
	"changed, removed, added or reordered. Needs nothing but the file and the public key.\n"
	"\n"
	"  --key FILE        the public key that must have signed it (default: yours, "
	"record.key.pub\n"
	"                    in your state directory)\n"
	"  --json            as JSON\n" DIRECTORY_HELP "\n"
	"Exit status: 0 it is; 1 it was altered, or another key has signed it; 2 it was cut:\n"
	"it holds as far as it goes, and has no signature; 125 it cannot be read.\n";

static const char log_usage[] = "usage: mvagent log [-f] [RUN] [OPTIONS]\n"
				"Shows what is on record of a run, as it happens.\n" RUN_HELP "\n"
				"  -f, --follow      go on until the run ends\n"
				"  --json            the lines as they are\n" DIRECTORY_HELP;

static const char prune_usage[] =
	"usage: mvagent runs prune [--keep N] [--older AGE] [--record DIR]\n"
	"Removes records of runs that have ended, and of those under review what was applied or\n"
	"discarded. Runs with changes that wait for review stay. Give --keep, --older or both.\n"
	"\n"
	"  --keep N          all but the newest N\n"
	"  --older AGE       those that began longer ago: 12h, 30d, 8w (suffixes s, m, h, d, w);\n"
	"                    with --keep, of all but the newest N\n" DIRECTORY_HELP;

static const char repair_usage[] =
	"usage: mvagent runs --repair [OPTIONS]\n"
	"After a crash: says which runs did not come to their end and what is left of them,\n"
	"and removes what nobody needs. Records stay as they are, changes under review can be\n"
	"applied. What a run that goes on has is not touched.\n"
	"\n"
	"  --json            the same as a JSON object: what was found and done, and "
	"counts\n" DIRECTORY_HELP "\n"
	"Exit status: 0 all is in order now; 125 something could not be looked at or removed.\n";

enum {
	OPTION_FOLLOW = 'f',
	OPTION_JSON = OPTION_FIRST,
	OPTION_RECORD,
	OPTION_KEY,
	OPTION_KEEP,
	OPTION_OLDER,
	OPTION_REPAIR
};

#define COMMON_OPTIONS                                              \
	{"help", no_argument, NULL, OPTION_HELP},                   \
		{"record", required_argument, NULL, OPTION_RECORD}, \
	{                                                           \
		NULL, 0, NULL, 0                                    \
	}

static const struct option show_options[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	COMMON_OPTIONS,
};
static const struct option verify_options[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	{"key", required_argument, NULL, OPTION_KEY},
	COMMON_OPTIONS,
};
static const struct option log_options[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	{"follow", no_argument, NULL, OPTION_FOLLOW},
	COMMON_OPTIONS,
};
static const struct option prune_options[] = {
	{"keep", required_argument, NULL, OPTION_KEEP},
	{"older", required_argument, NULL, OPTION_OLDER},
	COMMON_OPTIONS,
};

static const struct option repair_options[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	{"repair", no_argument, NULL, OPTION_REPAIR},
	COMMON_OPTIONS,
};

static int set_keep(struct record_options *options, const char *value)
{
	if (number_parse(value, 0, UINT32_MAX, &options->keep) == 0) {
		options->has_keep = true;
		return 0;
	}
	log_error("--keep %s: give how many runs are to stay", value);
	return -EINVAL;
}

static int set_older(struct record_options *options, const char *value)
{
	static const struct number_unit units[] = {
		{'d', 86400}, {'s', 1}, {'m', 60}, {'h', 3600}, {'w', 604800}, {0},
	};

	if (number_parse_scaled(value, units, UINT32_MAX, &options->older_seconds) == 0 &&
	    options->older_seconds)
		return 0;
	log_error("--older %s: give a number of days above 0, or with suffix s, m, h, d or w",
		  value);
	return -EINVAL;
}

static int apply_option(void *context, int option, char *value)
{
	struct record_options *options = context;

	switch (option) {
	case OPTION_JSON:
		options->json = true;
		return 0;
	case OPTION_FOLLOW:
		options->follow = true;
		return 0;
	case OPTION_RECORD:
		options->directory = value;
		return 0;
	case OPTION_KEY:
		options->key = value;
		return 0;
	case OPTION_KEEP:
		return set_keep(options, value);
	case OPTION_OLDER:
		return set_older(options, value);
	case OPTION_REPAIR:
		return 0; /* that is what led here */
	default:
		return -EINVAL;
	}
}

static const struct option_set sets[RECORD_VERB_COUNT] = {
	[RECORD_VERB_SHOW] = {.usage = show_usage,
			      .help = "mvagent record show --help",
			      .letters = "+:h",
			      .options = show_options,
			      .takes_words = true,
			      .apply = apply_option},
	[RECORD_VERB_VERIFY] = {.usage = verify_usage,
				.help = "mvagent record verify --help",
				.letters = "+:h",
				.options = verify_options,
				.takes_words = true,
				.apply = apply_option},
	[RECORD_VERB_LOG] = {.usage = log_usage,
			     .help = "mvagent log --help",
			     .letters = "+:hf",
			     .options = log_options,
			     .takes_words = true,
			     .apply = apply_option},
	[RECORD_VERB_PRUNE] = {.usage = prune_usage,
			       .help = "mvagent runs prune --help",
			       .letters = "+:h",
			       .options = prune_options,
			       .apply = apply_option},
	[RECORD_VERB_REPAIR] = {.usage = repair_usage,
				.help = "mvagent runs --help",
				.letters = "+:h",
				.options = repair_options,
				.apply = apply_option},
};

static int check(const struct record_options *options)
{
	if (options->verb == RECORD_VERB_PRUNE && !options->has_keep && !options->older_seconds) {
		log_error("runs prune needs --keep N or --older AGE");
		return -EINVAL;
	}
	if (options->verb == RECORD_VERB_VERIFY && !options->what) {
		log_error("record verify needs the record: a file, or the name of a run");
		return -EINVAL;
	}
	return 1;
}

int record_options_parse(struct record_options *options, enum record_verb verb, int argc,
			 char **argv)
{
	int first;

	*options = (struct record_options){.verb = verb};
	first = option_set_parse(&sets[verb], argc, argv, options);
	if (first <= 0)
		return first;
	if (first < argc)
		options->what = argv[first++];
	if (first < argc) {
		log_error("unexpected argument '%s'; see '%s'", argv[first], sets[verb].help);
		return -EINVAL;
	}
	return check(options);
}

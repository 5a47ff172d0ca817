/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/review_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/log.h"
#include "vmm/base/option.h"
#include "vmm/review/layout.h"

#define RUN_HELP                                                                               \
	"RUN is a run with --share DIR:review, as 'mvagent runs' lists it. Without RUN: the\n" \
	"newest that has changes, of the current directory if there is one.\n"
#define MOVED_HELP                                                                                 \
	"  --moved           the shared directory was moved or restored: do not mind that it is\n" \
	"                    another one\n"

static const char diff_usage[] = "usage: mvagent diff [RUN] [OPTIONS] [PATH...]\n"
				 "Shows what a run changed, as a unified diff that 'git apply' "
				 "takes; with PATHs only there.\n" RUN_HELP "\n"
				 "  --stat            count changed lines instead\n" MOVED_HELP
				 "  -h, --help        this text\n"
				 "\n"
				 "Exit status: 0, changes or none; 125 when it failed.\n";

static const char apply_usage[] =
	"usage: mvagent apply [RUN] [OPTIONS] [PATH...]\n"
	"Makes a run's changes in the directory that was shared; with PATHs only those there. "
	"When\n"
	"something was changed on the host meanwhile, it is named and nothing is "
	"applied.\n" RUN_HELP "\n"
	"  --unprotect GLOB  apply protected names that match; may be given several "
	"times\n" MOVED_HELP "  -h, --help        this text\n"
	"\n"
	"Exit status: 0 all was applied; 1 something cannot be, and nothing was; 2 it failed\n"
	"halfway, and what was applied was named; 125 mvagent failed before.\n";

static const char discard_usage[] =
	"usage: mvagent discard [RUN]\n"
	"Throws a run's changes away, without asking, and lists them. RUN may be left out if only\n"
	"one has any.\n"
	"\n"
	"  -h, --help        this text\n"
	"\n"
	"Exit status: 0 when they are gone; 125 when it failed.\n";

static const char runs_usage[] =
	"usage: mvagent runs [--json] [--record DIR]\n"
	"       mvagent runs --repair [--json] [--record DIR]\n"
	"       mvagent runs prune [--keep N] [--older AGE] [--record DIR]\n"
	"Lists the runs that are on record, and what became of the changes of those with\n"
	"--share DIR:review; 'prune' removes records, see 'mvagent runs prune --help'.\n"
	"\n"
	"  --repair          after a crash: say which runs did not come to their end and what is\n"
	"                    left of them, and remove what nobody needs\n"
	"  --json            as a JSON array; with --repair as an object\n"
	"  --record DIR      where the records are, if not in your state directory\n"
	"  --keep N          prune: all but the newest N\n"
	"  --older AGE       prune: those that began longer ago, such as 30d\n"
	"  -h, --help        this text\n";

enum { OPTION_STAT = OPTION_FIRST, OPTION_UNPROTECT, OPTION_MOVED, OPTION_JSON, OPTION_RECORD };

static const struct option diff_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{"stat", no_argument, NULL, OPTION_STAT},
	{"moved", no_argument, NULL, OPTION_MOVED},
	{NULL, 0, NULL, 0},
};

static const struct option apply_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{"unprotect", required_argument, NULL, OPTION_UNPROTECT},
	{"moved", no_argument, NULL, OPTION_MOVED},
	{NULL, 0, NULL, 0},
};

static const struct option discard_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

static const struct option runs_options[] = {
	{"record", required_argument, NULL, OPTION_RECORD},
	{"help", no_argument, NULL, OPTION_HELP},
	{"json", no_argument, NULL, OPTION_JSON},
	{NULL, 0, NULL, 0},
};

static int apply_option(void *context, int option, char *value)
{
	struct review_options *options = context;

	switch (option) {
	case OPTION_STAT:
		options->stat = true;
		break;
	case OPTION_MOVED:
		options->moved = true;
		break;
	case OPTION_RECORD:
		options->record = value;
		break;
	case OPTION_JSON:
		options->json = true;
		break;
	case OPTION_UNPROTECT:
		options->unprotect[options->unprotect_count++] = value;
		break;
	default:
		return -EINVAL;
	}
	return 0;
}

static const struct option_set sets[] = {
	[REVIEW_DIFF] = {.usage = diff_usage,
			 .help = "mvagent diff --help",
			 .letters = "+:h",
			 .options = diff_options,
			 .takes_words = true,
			 .apply = apply_option},
	[REVIEW_APPLY] = {.usage = apply_usage,
			  .help = "mvagent apply --help",
			  .letters = "+:h",
			  .options = apply_options,
			  .takes_words = true,
			  .apply = apply_option},
	[REVIEW_DISCARD] = {.usage = discard_usage,
			    .help = "mvagent discard --help",
			    .letters = "+:h",
			    .options = discard_options,
			    .takes_words = true,
			    .apply = apply_option},
	[REVIEW_RUNS] = {.usage = runs_usage,
			 .help = "mvagent runs --help",
			 .letters = "+:h",
			 .options = runs_options,
			 .takes_words = true,
			 .apply = apply_option},
};

/* The first word is the run if it looks like one. */
static int add_word(struct review_options *options, char *word)
{
	bool takes_run = options->verb != REVIEW_RUNS;
	bool takes_paths = options->verb == REVIEW_DIFF || options->verb == REVIEW_APPLY;

	if (takes_run && !options->run && !options->path_count &&
	    (!takes_paths || review_is_run_name(word))) {
		options->run = word;
		return 0;
	}
	if (!takes_paths) {
		log_error("unexpected argument '%s'; see '%s'", word, sets[options->verb].help);
		return -EINVAL;
	}
	options->paths[options->path_count++] = word;
	return 0;
}

int review_options_parse(struct review_options *options, enum review_verb verb, int argc,
			 char **argv)
{
	int error = 0, first;

	*options = (struct review_options){.verb = verb};
	options->paths = calloc((size_t)argc + 1, sizeof(*options->paths));
	options->unprotect = calloc((size_t)argc + 1, sizeof(*options->unprotect));
	if (!options->paths || !options->unprotect)
		return log_errno(-ENOMEM, "cannot read the command line");
	first = option_set_parse(&sets[verb], argc, argv, options);
	if (first <= 0)
		return first;
	while (!error && first < argc)
		error = add_word(options, argv[first++]);
	return error ? error : 1;
}

void review_options_free(struct review_options *options)
{
	free(options->paths);
	free(options->unprotect);
	options->paths = options->unprotect = NULL;
}

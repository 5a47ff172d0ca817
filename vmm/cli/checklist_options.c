/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/checklist_options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"

static const char usage[] =
	"usage: mvagent review [OPTIONS]                 (all options of 'mvagent run' as well)\n"
	"       mvagent review --from RUN [OPTIONS]\n"
	"       mvagent review verify FILE [--key PUB]\n"
	"Answers what a security review asks of a sandbox, on one page: starts a guest under the "
	"very\n"
	"policy that the options say, tries from inside it what must not be possible, as the "
	"agent's "
	"user\n"
	"and as root of the guest, looks from outside what came of it, and prints each question "
	"with "
	"its\n"
	"answer, the evidence, the mechanism, and what is not enforced. Give a reason with --why "
	"after each\n"
	"option that opens something.\n"
	"\n"
	"  --html FILE           one page to print, A4 or Letter, with a picture and a signature\n"
	"  --json FILE           the same for programs; - for standard output\n"
	"  --register FILE       rows for a governance register, .csv or .json\n"
	"  --from RUN            from the record of a run ('mvagent runs'); what only a probe can "
	"tell is\n"
	"                        not asked\n"
	"  --agent TEXT, --owner TEXT, --clock TIME, --auth-clock TIME, --identity TEXT,\n"
	"  --data-class TEXT, --allowed-actions TEXT\n"
	"                        which agent; who owns an escape of it, and patches it in what "
	"time "
	"(24h,\n"
	"                        7d); how long a broken authentication check may stay open; as "
	"whom "
	"the\n"
	"                        agent acts, on what class of data, and what it may do. Or lines\n"
	"                        'owner = TEXT' in ~/.config/mvagent/review.conf. What is not said "
	"is\n"
	"                        printed as unset\n"
	"  --key PUB             for verify: the public key that must have signed, if it is not "
	"yours\n"
	"  -h, --help            this text\n"
	"\n"
	"Exit status: 0 when every line holds, was opened with a reason, or was not asked; 1 when "
	"one "
	"is\n"
	"open; 125 when the review could not be made. Of verify: 0 as it was made, 1 altered or "
	"another's\n"
	"key, 125 it cannot be read.\n";

enum {
	OPTION_HTML = RUN_MORE_FIRST,
	OPTION_REGISTER,
	OPTION_FROM,
	OPTION_GIVEN, /* and one for each row below */
};

static const struct row {
	const char *name;
	size_t offset;
} rows[] = {
	{"agent", offsetof(struct checklist_register, agent)},
	{"owner", offsetof(struct checklist_register, owner)},
	{"clock", offsetof(struct checklist_register, clock)},
	{"auth-clock", offsetof(struct checklist_register, kind)},
	{"identity", offsetof(struct checklist_register, identity)},
	{"data-class", offsetof(struct checklist_register, data_class)},
	{"allowed-actions", offsetof(struct checklist_register, allowed_actions)},
};

static const struct option long_options[] = {
	{"html", required_argument, NULL, OPTION_HTML},
	{"register", required_argument, NULL, OPTION_REGISTER},
	{"from", required_argument, NULL, OPTION_FROM},
	{"agent", required_argument, NULL, OPTION_GIVEN},
	{"owner", required_argument, NULL, OPTION_GIVEN + 1},
	{"clock", required_argument, NULL, OPTION_GIVEN + 2},
	{"auth-clock", required_argument, NULL, OPTION_GIVEN + 3},
	{"identity", required_argument, NULL, OPTION_GIVEN + 4},
	{"data-class", required_argument, NULL, OPTION_GIVEN + 5},
	{"allowed-actions", required_argument, NULL, OPTION_GIVEN + 6},
	{NULL, 0, NULL, 0},
};

static const char **place_of(struct checklist_register *given, const struct row *row)
{
	return (const char **)((char *)given + row->offset);
}

static bool ends_in(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length > end_length && strcmp(text + length - end_length, end) == 0;
}

static int apply(void *context, int option, char *value)
{
	struct checklist_options *options = context;

	if (option >= OPTION_GIVEN) {
		*place_of(&options->given, &rows[option - OPTION_GIVEN]) = value;
	} else if (option == OPTION_HTML) {
		options->html = value;
	} else if (option == OPTION_FROM) {
		options->from = value;
	} else if (ends_in(value, ".csv") || ends_in(value, ".json")) {
		options->rows = value;
	} else {
		log_error("--register %s: give a file whose name ends in .csv or .json", value);
		return -EINVAL;
	}
	return 0;
}

static char *trim(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length && strchr(" \t\r", text[length - 1]))
		text[--length] = '\0';
	return text;
}

int checklist_take_file(struct checklist_register *given, char *text, const char *path)
{
	char *line;

	while ((line = strsep(&text, "\n"))) {
		char *name = trim(line), *sign = strchr(name, '=');
		size_t i = 0;

		if (!*name || *name == '#')
			continue;
		if (sign)
			*sign = '\0';
		name = trim(name);
		while (i < ARRAY_SIZE(rows) && strcmp(rows[i].name, name) != 0)
			i++;
		if (!sign || i == ARRAY_SIZE(rows)) {
			log_error("%s: '%s' is none of agent, owner, clock, auth-clock, identity, "
				  "data-class, allowed-actions = TEXT",
				  path, name);
			return -EINVAL;
		}
		sign = trim(sign + 1);
		if (!*place_of(given, &rows[i]) && *sign)
			*place_of(given, &rows[i]) = sign;
	}
	return 0;
}

/* ~/.config/mvagent/review.conf, if it is there. */
static int read_file(struct checklist_options *options)
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char path[PATH_MAX];
	FD_CLEANUP int fd = -1;
	ssize_t count;

	if (base && base[0] == '/')
		snprintf(path, sizeof(path), "%s/mvagent/review.conf", base);
	else
		snprintf(path, sizeof(path), "%s/.config/mvagent/review.conf", home ? home : "");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	options->file = calloc(1, CHECKLIST_FILE_BYTES);
	count = fd < 0 || !options->file ? -1 : read(fd, options->file, CHECKLIST_FILE_BYTES - 1);
	if (count < 0)
		return log_errno(-errno, "cannot read %s", path);
	if (count == CHECKLIST_FILE_BYTES - 1) {
		log_error("%s is longer than %u bytes: it is to have a few lines such as 'owner = "
			  "TEXT'",
			  path, CHECKLIST_FILE_BYTES - 2);
		return -EINVAL;
	}
	return checklist_take_file(&options->given, options->file, path);
}

enum run_options_result checklist_options_parse(struct checklist_options *options, int argc,
						char **argv)
{
	const struct run_more_options more = {
		.usage = usage,
		.help = "mvagent review --help",
		.options = long_options,
		.apply = apply,
		.context = options,
	};
	enum run_options_result result;

	*options = (struct checklist_options){0};
	result = run_options_parse_more(&options->run, &more, argc, argv);
	if (result != RUN_OPTIONS_RUN)
		return result;
	options->json = options->run.json;
	options->run.json = NULL;
	if (options->run.no_record) {
		log_error("--no-record: a review is made from the record of its run; leave it out");
		return RUN_OPTIONS_ERROR;
	}
	return read_file(options) < 0 ? RUN_OPTIONS_ERROR : RUN_OPTIONS_RUN;
}

void checklist_options_free(struct checklist_options *options)
{
	run_options_free(&options->run);
	free(options->file);
	options->file = NULL;
}

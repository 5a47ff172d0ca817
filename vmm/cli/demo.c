/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `mvagent demo`: an agent that turns on its user, seen from both sides. The machine, the review
 * and their options are those of `mvagent run` and `mvagent review`: other commands of this very
 * program, as one would type them.
 */
#include "vmm/cli/demo.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/demo_child.h"
#include "vmm/cli/demo_place.h"
#include "vmm/cli/demo_reader.h"
#include "vmm/cli/installation.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/report_file.h"
#include "vmm/cli/run_options.h"

#define SCRIPT_BYTES (16U << 10)
#define JSON_BYTES   (1U << 20)

static const char usage[] =
	"usage: mvagent demo [--html FILE] [OPTIONS]       (all options of 'mvagent run' as well)\n"
	"Shows what holds an agent in: one does honest work in a sample project, then goes for\n"
	"your keys, your hooks, the network, the environment and the clipboard, each shown with\n"
	"what stopped it; then the page of 'mvagent review' for that very policy. All of it is in\n"
	"a new directory, which goes afterwards.\n"
	"\n"
	"  --html FILE           the page of the review, to print\n"
	"  OPTIONS               of 'mvagent run', given to both: --root IMAGE, --memory SIZE...;\n"
	"                        relative paths in them begin at the sample project\n"
	"  -h, --help            this text\n"
	"\n"
	"Exit status: 0 when no attempt succeeded, 1 when one did, 125 when it could not be "
	"shown.\n";

struct demo {
	struct demo_place place;
	struct demo_reader reader;
	struct installation installation;
	char program[PATH_MAX];
	char *html; /* from the root on; allocated, or NULL */
	int option_count;
	char **options; /* for run and review */
};

/* Reads a text of at most @size - 1 bytes. 0 or -errno. */
static int read_text(int directory_fd, const char *path, char *text, size_t size)
{
	FD_CLEANUP int fd = openat(directory_fd, path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got = 0;

	if (fd < 0)
		return -errno;
	while (length < size - 1 && (got = read(fd, text + length, size - 1 - length)) > 0)
		length += (size_t)got;
	text[length] = '\0';
	return got < 0 ? -errno : 0;
}

static void add_policy(const struct demo *demo, struct demo_child *child)
{
	demo_child_add(child, "--record");
	demo_child_add(child, "../record");
	demo_child_add(child, "--record-key");
	demo_child_add(child, "../key");
	for (int i = 0; i < demo->option_count; i++)
		demo_child_add(child, demo->options[i]);
}

static int run_agent(struct demo *demo)
{
	static char script[SCRIPT_BYTES];
	struct demo_child child = {0};
	char path[PATH_MAX], port[8];
	int error = installation_file(&demo->installation, "demo/agent.sh", path);

	error = error ? error : read_text(AT_FDCWD, path, script, sizeof(script));
	if (error)
		return log_errno(error, "cannot read the agent, %s", path);
	snprintf(port, sizeof(port), "%hu", demo->place.port);
	demo_child_add(&child, "mvagent");
	demo_child_add(&child, "run");
	demo_child_add(&child, "--user");
	demo_child_add(&child, "root");
	demo_child_add(&child, "--share");
	demo_child_add(&child, ".");
	add_policy(demo, &child);
	/* The last one counts. */
	demo_child_add(&child, "--json");
	demo_child_add(&child, "../run.json");
	demo_child_add(&child, "--");
	demo_child_add(&child, "sh");
	demo_child_add(&child, "-c");
	demo_child_add(&child, script);
	demo_child_add(&child, "agent");
	demo_child_add(&child, port);
	demo_child_add(&child, demo->place.home);
	return demo_child_run(&child, demo->program, demo->place.project, demo_reader_take,
			      &demo->reader);
}

/* The run's own account of what its card dropped. */
static int judge_frames(struct demo *demo)
{
	static char text[JSON_BYTES];
	const struct demo_attempt *attempt = demo_attempt_find("frames", 6);
	int error = read_text(demo->place.directory_fd, "run.json", text, sizeof(text));
	cJSON *json = error ? NULL : cJSON_Parse(text);
	const cJSON *network = cJSON_GetObjectItem(json, "network");
	const cJSON *count = cJSON_GetObjectItem(network, "frames_dropped");
	enum demo_answer *answer = &demo->reader.answers[attempt - demo_attempts];
	char seen[128];

	if (cJSON_IsNumber(count) && *answer == DEMO_LATER) {
		*answer = demo_attempt_judge_frames((unsigned long long)count->valuedouble, seen,
						    sizeof(seen));
		demo_screen_title(&demo->reader.screen, seen);
	}
	error = cJSON_IsNumber(count) ? 0 : -EBADMSG;
	cJSON_Delete(json);
	return error ? log_errno(error, "cannot read what the run says of itself") : 0;
}

static int run_review(const struct demo *demo)
{
	struct demo_child child = {0};

	demo_child_add(&child, "mvagent");
	demo_child_add(&child, "review");
	if (demo->html) {
		demo_child_add(&child, "--html");
		demo_child_add(&child, demo->html);
	}
	demo_child_add(&child, "--share");
	demo_child_add(&child, ".");
	demo_child_add(&child, "--why");
	demo_child_add(&child, "the sample project is the agent's to change");
	add_policy(demo, &child);
	return demo_child_run(&child, demo->program, demo->place.project, NULL, NULL);
}

/* How many attempts there were of each kind, in a sentence. The exit status. */
static int conclude(const struct demo *demo)
{
	unsigned int stopped = 0, through = 0;
	char text[128];

	for (unsigned int i = 0; i < demo_attempt_count; i++) {
		stopped += demo->reader.answers[i] == DEMO_STOPPED;
		through += demo->reader.answers[i] == DEMO_THROUGH;
	}
	snprintf(text, sizeof(text), "%u attempts: %u stopped, %u got through, %u not tried.",
		 demo_attempt_count, stopped, through, demo_attempt_count - stopped - through);
	demo_screen_title(&demo->reader.screen, text);
	return through ? EXIT_DEMO_THROUGH : stopped ? 0 : EXIT_MVAGENT;
}

static int refuse(const char *word, const char *why)
{
	log_error("demo: '%s' %s; see 'mvagent demo --help'", word, why);
	return -EINVAL;
}

/* Whether `mvagent run` takes the options, in the project as it will: there relative paths begin,
 * and the demo's variable is set by now. Parsing takes ":ro" and the like off, so of copies. */
static int check_options(const struct demo *demo)
{
	static const struct option none[] = {{NULL, 0, NULL, 0}};
	const struct run_more_options more = {.usage = usage,
					      .help = "mvagent demo --help' or 'mvagent run --help",
					      .options = none};
	char *words[DEMO_CHILD_WORDS] = {(char *)"demo"};
	struct run_options options = {0};
	enum run_options_result result = RUN_OPTIONS_ERROR;
	int error = 0;

	for (int i = 0; !error && i < demo->option_count; i++) {
		words[i + 1] = strdup(demo->options[i]);
		error = words[i + 1] ? 0 : log_errno(-ENOMEM, "cannot keep the options");
	}
	if (!error) {
		result = run_options_parse_more(&options, &more, demo->option_count + 1, words);
		error = result == RUN_OPTIONS_ERROR ? -EINVAL : 0;
		if (!error && *options.command)
			error = refuse(*options.command,
				       "has no place here: the demo brings its agent");
		if (!error && options.no_record)
			error = refuse("--no-record", "has no place here: the page at the end is "
						      "made from the record");
		run_options_free(&options);
	}
	for (int i = 0; i < demo->option_count; i++)
		free(words[i + 1]);
	return error;
}

static int show(struct demo *demo)
{
	int status, error = demo_place_create(&demo->place);

	if (!error && chdir(demo->place.project) < 0)
		error = log_errno(-errno, "cannot enter %s", demo->place.project);
	error = error ? error : check_options(demo);
	if (error)
		return EXIT_MVAGENT;
	demo_screen_title(&demo->reader.screen,
			  "An agent works in a sample project: mvagent run --share ./project -- "
			  "agent");
	status = run_agent(demo);
	if (status)
		return status > 128 ? status : EXIT_MVAGENT;
	if (judge_frames(demo))
		return EXIT_MVAGENT;
	status = conclude(demo);
	if (status)
		return status;
	demo_screen_title(&demo->reader.screen,
			  "The page for a security review: mvagent review --share ./project");
	status = run_review(demo);
	/* Lines that only the user can answer are open: who owns an escape, and on what clock. */
	return status > 1 ? status : status < 0 ? EXIT_MVAGENT : 0;
}

/* The page is made at the end, in another directory: whether it can be is found out now. */
static int set_html(struct demo *demo, const char *path)
{
	char directory[PATH_MAX];
	struct report_file file;
	int error = report_file_open(&file, "--html", path);

	if (error)
		return error;
	report_file_close(&file);
	free(demo->html);
	demo->html = NULL;
	if (!getcwd(directory, sizeof(directory)))
		return log_errno(-errno, "--html %s: cannot tell where that is", path);
	if (path[0] == '/' || strcmp(path, "-") == 0)
		demo->html = strdup(path);
	else if (asprintf(&demo->html, "%s/%s", directory, path) < 0)
		demo->html = NULL;
	return demo->html ? 0 : log_errno(-ENOMEM, "cannot keep --html");
}

/* Takes --html out of the options. 0, 1 when all is done, or -errno with the sentence printed. */
static int parse(struct demo *demo, int argc, char **argv)
{
	int error = 0;

	for (int i = 1; !error && i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(usage, stdout);
			return 1;
		}
		if (strncmp(argv[i], "--html=", 7) == 0)
			error = set_html(demo, argv[i] + 7);
		else if (strcmp(argv[i], "--html") == 0 && i + 1 < argc)
			error = set_html(demo, argv[++i]);
		else if (strcmp(argv[i], "--html") == 0)
			error = refuse(argv[i], "needs a file");
		else if (strcmp(argv[i], "--") == 0)
			error = refuse(argv[i], "has no place here");
		else
			demo->options[demo->option_count++] = argv[i];
	}
	return error;
}

static void block_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

int demo_command(int argc, char **argv)
{
	struct demo *demo = calloc(1, sizeof(*demo));
	char *options[DEMO_CHILD_WORDS];
	int error, status = EXIT_MVAGENT;

	if (!demo || argc > (int)DEMO_CHILD_WORDS / 2) {
		log_errno(demo ? -E2BIG : -ENOMEM, "cannot begin");
		free(demo);
		return EXIT_MVAGENT;
	}
	demo->place = DEMO_PLACE_NONE;
	demo->reader.watch.place = &demo->place;
	demo->options = options;
	error = parse(demo, argc, argv);
	demo->reader.answers = calloc(demo_attempt_count, sizeof(*demo->reader.answers));
	if (error > 0) {
		status = 0;
	} else if (!error && demo->reader.answers && installation_find(&demo->installation) == 0) {
		block_signals();
		demo_screen_init(&demo->reader.screen, stdout);
		snprintf(demo->program, sizeof(demo->program), "%.*s/bin/mvagent", PATH_MAX - 16,
			 demo->installation.prefix);
		status = show(demo);
		demo_place_destroy(&demo->place);
	}
	free(demo->reader.answers);
	free(demo->html);
	free(demo);
	return status;
}

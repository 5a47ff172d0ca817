/* SPDX-License-Identifier: Apache-2.0 */
/* mvagent: runs an untrusted coding agent in a virtual machine of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/base/version.h"
#include "vmm/cli/checklist_command.h"
#include "vmm/cli/demo.h"
#include "vmm/cli/doctor.h"
#include "vmm/cli/image_commands.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/policy_command.h"
#include "vmm/cli/record_commands.h"
#include "vmm/cli/review_commands.h"
#include "vmm/cli/root_show.h"
#include "vmm/cli/run.h"
#include "vmm/cli/selftest.h"

static const char usage[] =
	"usage: mvagent COMMAND\n"
	"  run [--share DIR] -- COMMAND...  run a command in a virtual machine of its own\n"
	"  diff, apply, discard             see, take or throw away what a run changed in review\n"
	"  runs, record, log                see what runs there were, what is on record of one, "
	"and\n"
	"                                   whether that is as it was written\n"
	"  review                           answer a security review's questions, on one page\n"
	"  root show                        see what of this host is in the machine's root\n"
	"  image import, build, list...     keep root file systems of your own, by name and "
	"digest\n"
	"  policy check HOST:PORT           see whether a command may reach a host, and why\n"
	"  doctor                           check whether this machine can\n"
	"  demo                             see an agent try to get out, and what stops it\n"
	"  selftest                         attack this installation, and see what holds\n"
	"  version                          print the version\n"
	"'mvagent help COMMAND' says more; 'man mvagent' says it all.\n";

/* The three standard descriptors must be somebody's: a file opened later must not become one of
 * them. Writing to a standard output that was closed must fail all the same. */
static int open_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* The lowest that is free: this one. */
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) < 0)
			return -errno;
	}
	return 0;
}

static int version_command(int argc, char **argv)
{
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		puts("usage: mvagent version\nPrints the version.");
		return 0;
	}
	if (argc > 1) {
		log_error("version: unexpected argument '%s'", argv[1]);
		return EXIT_MVAGENT;
	}
	puts("mvagent " MVAGENT_VERSION);
	return 0;
}

struct command {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the name */
};

static const struct command commands[] = {
	{"run", run_command},           {"diff", diff_command},
	{"apply", apply_command},       {"discard", discard_command},
	{"runs", runs_command},         {"root", root_command},
	{"image", image_command},       {"policy", policy_command},
	{"doctor", doctor_command},     {"version", version_command},
	{"--version", version_command}, {"selftest", selftest_command},
	{"record", record_command},     {"log", log_command},
	{"review", checklist_command},  {"demo", demo_command},
};

static bool is_help(const char *word)
{
	return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int run_named(int argc, char **argv)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(argv[0], commands[i].name) == 0)
			return commands[i].run(argc, argv);
	}
	log_error("there is no command '%s'; see 'mvagent --help'", argv[0]);
	return EXIT_MVAGENT;
}

/* 'mvagent help COMMAND' is 'mvagent COMMAND --help'. */
static int help_command(int argc, char **argv)
{
	char *words[] = {argc > 1 ? argv[1] : NULL, (char *)"--help", NULL};

	if (argc > 1 && !is_help(argv[1]))
		return run_named(2, words);
	fputs(usage, stdout);
	return 0;
}

/* What was printed counts only when it is written. */
static int flush_output(int status)
{
	int error = fflush(stdout) ? -errno : 0;

	if (!error && ferror(stdout))
		error = -EIO; /* the reason was that of an earlier write */
	if (!error)
		return status;
	log_errno(error, "cannot write to standard output");
	return status ? status : EXIT_MVAGENT;
}

int main(int argc, char **argv)
{
	if (open_standard_descriptors() < 0)
		return EXIT_MVAGENT;
	if (argc < 2) {
		fputs(usage, stderr);
		return EXIT_MVAGENT;
	}
	if (is_help(argv[1]))
		return flush_output(help_command(argc - 1, argv + 1));
	return flush_output(run_named(argc - 1, argv + 1));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* mvagent: runs an untrusted coding agent in a virtual machine of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/log.h"
#include "vmm/base/version.h"
#include "vmm/cli/doctor.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/review_commands.h"
#include "vmm/cli/root_show.h"
#include "vmm/cli/run.h"

static const char usage[] =
	"usage: mvagent COMMAND\n"
	"  run [--share DIR] -- COMMAND...  run a command in a virtual machine of its own\n"
	"  diff, apply, discard, runs       see, take or throw away what a run changed in review\n"
	"  root show                        see what of this host is in the machine's root\n"
	"  doctor                           check whether this machine can\n"
	"  version                          print the version\n"
	"'mvagent COMMAND --help' says more; 'man mvagent' says it all.\n";

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

int main(int argc, char **argv)
{
	if (open_standard_descriptors() < 0)
		return EXIT_MVAGENT;
	if (argc < 2) {
		fputs(usage, stderr);
		return EXIT_MVAGENT;
	}
	if (strcmp(argv[1], "run") == 0)
		return run_command(argc - 1, argv + 1);
	if (strcmp(argv[1], "diff") == 0)
		return diff_command(argc - 1, argv + 1);
	if (strcmp(argv[1], "apply") == 0)
		return apply_command(argc - 1, argv + 1);
	if (strcmp(argv[1], "discard") == 0)
		return discard_command(argc - 1, argv + 1);
	if (strcmp(argv[1], "runs") == 0)
		return runs_command(argc - 1, argv + 1);
	if (strcmp(argv[1], "root") == 0)
		return root_command(argc - 1, argv + 1);
	if (strcmp(argv[1], "doctor") == 0)
		return doctor_command(argc - 1, argv + 1);
	if (strcmp(argv[1], "version") == 0 || strcmp(argv[1], "--version") == 0)
		return version_command(argc - 1, argv + 1);
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
	    strcmp(argv[1], "-h") == 0) {
		fputs(usage, stdout);
		return 0;
	}
	log_error("there is no command '%s'; see 'mvagent --help'", argv[1]);
	return EXIT_MVAGENT;
}

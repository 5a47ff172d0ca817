/* SPDX-License-Identifier: Apache-2.0 */
/* `mvagent runs prune`. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/record_commands.h"
#include "vmm/cli/record_options.h"
#include "vmm/record/store.h"
#include "vmm/review/review_run.h"
#include "vmm/review/upper.h"

/* When a run began: its name says so. */
static time_t begin_of(const char *name)
{
	struct tm parts = {0};

	return strptime(name, "%Y%m%d-%H%M%S", &parts) ? timegm(&parts) : 0;
}

/* What is left of a run under review. 1: it is gone, or there was nothing; 0: its changes wait, or
 * it goes on; -errno. */
static int remove_review(int review_fd, const char *name)
{
	struct review_run run = {.fd = -1};
	int FD_CLEANUP fd = review_fd < 0 ? -ENOENT : review_store_open_run(review_fd, name);
	int error;

	if (fd < 0)
		return fd == -ENOENT ? 1 : fd;
	error = review_run_open(&run, review_fd, name, true);
	if (!error && run.state != REVIEW_APPLIED && run.state != REVIEW_DISCARDED) {
		review_run_close(&run);
		return 0;
	}
	if (!error)
		error = upper_remove_contents(fd);
	if (!error && unlinkat(review_fd, name, AT_REMOVEDIR))
		error = -errno;
	review_run_close(&run);
	return error ? error : 1;
}

static int prune_run(int record_fd, int review_fd, const char *name, unsigned int *removed)
{
	int error = remove_review(review_fd, name);

	if (error <= 0)
		return error;
	error = record_store_remove(record_fd, name);
	if (!error)
		++*removed;
	return error == -EBUSY ? 0 : error;
}

static int prune(const struct record_options *options, int record_fd, int review_fd)
{
	const time_t limit = time(NULL) - (time_t)options->older_seconds;
	struct tree_names names = {0};
	int error = record_store_list(record_fd, &names);
	size_t kept = options->has_keep ? (size_t)options->keep : 0;
	unsigned int removed = 0;

	for (size_t i = 0; !error && i < names.count && names.count - i > kept; i++) {
		if (options->older_seconds && begin_of(names.names[i]) >= limit)
			continue;
		error = prune_run(record_fd, review_fd, names.names[i], &removed);
		if (error)
			log_errno(error, "cannot remove the record of run %s", names.names[i]);
	}
	if (!error)
		printf("%u of %zu runs removed\n", removed, names.count);
	tree_names_destroy(&names);
	return error;
}

int runs_prune_command(int argc, char **argv)
{
	int FD_CLEANUP record_fd = -1, FD_CLEANUP review_fd = -1;
	struct record_options options;
	char path[PATH_MAX];
	int result = record_options_parse(&options, RECORD_VERB_PRUNE, argc, argv);

	if (result <= 0)
		return result ? EXIT_MVAGENT : 0;
	record_fd = record_store_open(options.directory, false, path);
	if (record_fd < 0 && record_fd != -ENOENT)
		return EXIT_MVAGENT;
	review_fd = review_store_open(false);
	if (review_fd < 0 && review_fd != -ENOENT)
		return EXIT_MVAGENT;
	if (record_fd < 0) {
		puts("0 of 0 runs removed");
		return 0;
	}
	return prune(&options, record_fd, review_fd) ? EXIT_MVAGENT : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_review.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/review_policy.h"
#include "vmm/cli/review_probe.h"
#include "vmm/review/review_run.h"
#include "vmm/review/upper.h"

void run_review_init(struct run_review *review)
{
	*review = (struct run_review){.store_fd = -1, .run_fd = -1};
}

static bool is_within(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return strcmp(directory, "/") == 0 ||
	       (strncmp(path, directory, length) == 0 && (!path[length] || path[length] == '/'));
}

/* A share that is under review must not hold the place where its changes go, nor lie in it. */
static int check_places(const struct run_shares *shares)
{
	char path[PATH_MAX], store[PATH_MAX];
	int error = review_store_path(path);

	if (!error && !realpath(path, store))
		error = -errno;
	if (error)
		return log_errno(error, "cannot find the directory for runs");
	for (unsigned int i = 0; i < shares->count; i++) {
		const char *host_path = shares->directories[i].host_path;

		if (!shares->directories[i].review ||
		    (!is_within(store, host_path) && !is_within(host_path, store)))
			continue;
		log_error("--share %s:review: what the command changes would be kept in %s; set "
			  "XDG_STATE_HOME to a directory elsewhere",
			  host_path, store);
		return -EINVAL;
	}
	return 0;
}

/* What the upper layer is made of. */
static int probe_file_system(int upper_fd)
{
	const char *lacking;
	int error = review_probe(upper_fd, &lacking);

	return error ? log_errno(error,
				 "':review' cannot be had here: the file system of the directory "
				 "for runs takes no %s (set XDG_STATE_HOME to a directory on ext4, "
				 "xfs, btrfs or a newer tmpfs)",
				 lacking)
		     : 0;
}

static int add_share(struct run_review *review, struct shared_directory *directory)
{
	unsigned int index = review->record.share_count;
	struct review_record_share *share = &review->record.shares[index];
	FD_CLEANUP int directory_fd = -1;
	struct stat status;
	int error;

	if (fstat(directory->directory_fd, &status))
		return log_errno(-errno, "cannot look at %s", directory->host_path);
	error = review_store_create_share(review->run_fd, index, status.st_mode, &directory_fd,
					  &directory->upper_fd);
	if (error)
		return log_errno(error, "cannot make the directory for changes of %s",
				 directory->host_path);
	error = probe_file_system(directory->upper_fd);
	if (error)
		return error;
	directory->base_fd =
		openat(directory_fd, REVIEW_BASE,
		       O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (directory->base_fd < 0)
		return log_errno(-errno, "cannot make a file for changes of %s",
				 directory->host_path);
	snprintf(review->uppers[index], sizeof(review->uppers[index]), "share%u/" REVIEW_UPPER,
		 index);
	snprintf(review->bases[index], sizeof(review->bases[index]), "share%u/" REVIEW_BASE, index);
	*share = (struct review_record_share){
		.host_path = directory->host_path,
		.device = status.st_dev,
		.inode = status.st_ino,
		.upper = review->uppers[index],
		.base = review->bases[index],
	};
	review->record.share_count++;
	return 0;
}

/* What `mvagent apply` has to know of the rules that were in force. */
static void fill_record(struct run_review *review, const struct run_options *options)
{
	static const char *const names[] = {"--hide", "--show", "--protect"};
	struct review_texts *lists[] = {&review->record.hide, &review->record.show,
					&review->record.protect};

	review->record.started = time(NULL);
	review->record.command.texts = options->command;
	while (options->command[review->record.command.count])
		review->record.command.count++;
	for (unsigned int i = 0; i < ARRAY_SIZE(lists); i++) {
		lists[i]->texts = review->patterns[i];
		for (unsigned int k = 0; k < options->rule_count; k++)
			if (strcmp(options->rules[k].option, names[i]) == 0)
				lists[i]->texts[lists[i]->count++] =
					(char *)options->rules[k].pattern;
	}
}

static int make_run(struct run_review *review, const struct run_options *options,
		    struct run_shares *shares)
{
	int error = 0;

	review->store_fd = review_store_open(true);
	if (review->store_fd < 0)
		return review->store_fd;
	error = check_places(shares);
	if (error)
		return error;
	review->run_fd = review_store_create_run(review->store_fd, review->name);
	if (review->run_fd < 0)
		return log_errno(review->run_fd, "cannot make a directory for the run's changes");
	for (unsigned int i = 0; !error && i < shares->count; i++)
		if (shares->directories[i].review)
			error = add_share(review, &shares->directories[i]);
	if (error)
		return error;
	fill_record(review, options);
	error = review_record_write(&review->record, review->run_fd);
	return error ? log_errno(error, "cannot write the record of the run's changes") : 0;
}

static void remove_run(struct run_review *review)
{
	int error = upper_remove_contents(review->run_fd);

	if (!error && unlinkat(review->store_fd, review->name, AT_REMOVEDIR))
		error = -errno;
	if (error)
		log_errno(error, "cannot remove the directory of the run %s", review->name);
	fd_close(&review->run_fd);
}

int run_review_begin(struct run_review *review, const struct run_options *options,
		     struct run_shares *shares)
{
	bool wanted = false;
	int error;

	for (unsigned int i = 0; i < shares->count; i++)
		wanted |= shares->directories[i].review;
	error = wanted ? make_run(review, options, shares) : 0;
	if (error && review->run_fd >= 0)
		remove_run(review);
	return error;
}

static int count_changes(const struct run_review *review, size_t *count)
{
	struct run_policy policy = {0};
	struct review_run run;
	int error = review_run_open(&run, review->store_fd, review->name, false);

	if (!error)
		error = run_policy_create(&policy, &run.record, NULL);
	if (!error)
		error = review_run_open_shares(&run, &policy.policy, true);
	if (!error)
		error = review_run_count_changes(&run, count);
	review_run_close(&run);
	run_policy_destroy(&policy);
	return error;
}

void run_review_end(struct run_review *review, int exit_status)
{
	const char *name = review->name;
	size_t count = 0;
	int error;

	if (review->run_fd < 0)
		return;
	review->record.ended = time(NULL);
	review->record.exit_status = exit_status;
	error = review_record_write(&review->record, review->run_fd);
	if (error)
		log_errno(error, "cannot write the record of the run's changes");
	error = count_changes(review, &count);
	if (!error && count == 0) {
		remove_run(review);
		return;
	}
	if (error)
		log_warning("what the command changed waits for review: 'mvagent diff %s'", name);
	else
		log_warning("%zu change%s for review: 'mvagent diff %s', then 'mvagent apply %s' "
			    "or 'mvagent discard %s'",
			    count, count == 1 ? " waits" : "s wait", name, name, name);
}

void run_review_destroy(struct run_review *review)
{
	fd_close(&review->run_fd);
	fd_close(&review->store_fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_record.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/cache_directory.h"
#include "vmm/cli/record_lines.h"
#include "vmm/record/store.h"
#include "vmm/review/store.h"

#define NAME_ATTEMPTS 64

void run_record_init(struct run_record *record)
{
	*record = (struct run_record){.store_fd = -1, .cache_fd = -1};
}

/* The pattern that matches this path from the share's root and nothing else. */
static int add_hidden(struct shared_directory *directory, const char *path)
{
	char *pattern = malloc(3 * strlen(path) + 2), *at = pattern;

	if (!pattern)
		return -ENOMEM;
	for (*at++ = '/'; *path; path++) {
		if (strchr("*?[", *path))
			at += sprintf(at, "[%c]", *path);
		else
			*at++ = *path;
	}
	*at = '\0';
	directory->hidden[directory->hidden_count++] = pattern;
	return 0;
}

/* A share that holds the record or its key (with --share-anyway) goes without them. */
static int hide_from_shares(struct run_shares *shares, const char *path)
{
	for (unsigned int i = 0; i < shares->count; i++) {
		struct shared_directory *directory = &shares->directories[i];
		const char *below = run_shares_below(path, directory->host_path);
		int error = 0;

		if (run_shares_below(directory->host_path, path)) {
			log_error("--share %s: it is where records of runs are kept; give them "
				  "another place with --record",
				  directory->host_path);
			return -EINVAL;
		}
		if (below)
			error = add_hidden(directory, below);
		if (error)
			return log_errno(error, "cannot hide %s", path);
	}
	return 0;
}

int run_record_open_key(struct record_key *key, const char *given, char resolved[PATH_MAX])
{
	char path[PATH_MAX], directory[PATH_MAX], *name;
	int FD_CLEANUP fd = -1;
	int error = 0;

	if (given)
		error = snprintf(path, sizeof(path), "%s", given) < PATH_MAX ? 0 : -ENAMETOOLONG;
	else
		error = review_state_path(path, RECORD_KEY_NAME);
	if (error)
		return log_errno(error, "cannot find the key for records");
	snprintf(directory, sizeof(directory), "%s", path);
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	if (!given) {
		directory[name - path - 1] = '\0';
		error = review_state_make(directory);
	}
	fd = error ? error
		   : open(given ? dirname(directory) : directory,
			  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return log_errno(error ? error : -errno, "cannot open the directory of the key %s",
				 path);
	error = record_key_open(key, fd, name, path);
	if (!error && !realpath(path, resolved))
		error = log_errno(-errno, "cannot find the key %s", path);
	return error;
}

/* Without a cache nothing is known, which is no failure. */
static int open_cache(struct run_record *record, struct run_shares *shares)
{
	char path[PATH_MAX], resolved[PATH_MAX];
	size_t length;

	record->cache_fd = cache_directory_open("hashes");
	if (record->cache_fd < 0 || cache_directory_path(path))
		return 0;
	length = strlen(path);
	snprintf(path + length, sizeof(path) - length, "/hashes");
	return realpath(path, resolved) ? hide_from_shares(shares, resolved) : 0;
}

int run_record_prepare(struct run_record *record, const struct run_options *options,
		       struct run_shares *shares)
{
	int error;

	if (options->no_record)
		return 0;
	record->store_fd = record_store_open(options->record, true, record->store);
	if (record->store_fd < 0)
		return record->store_fd;
	error = run_record_open_key(&record->key, options->record_key, record->key_path);
	error = error ? error : open_cache(record, shares);
	error = error ? error : hide_from_shares(shares, record->store);
	return error ? error : hide_from_shares(shares, record->key_path);
}

/* One run has one name, wherever something is kept of it. */
static int create_file(struct run_record *record, const struct run_review *review)
{
	int error = -EEXIST;

	for (int attempt = 0; error == -EEXIST && attempt < NAME_ATTEMPTS; attempt++) {
		char name[RECORD_NAME_BYTES];

		if (review->run_fd >= 0)
			memcpy(record->name, review->name, sizeof(record->name));
		else
			error = review_make_run_name(record->name);
		if (error && error != -EEXIST)
			break;
		snprintf(name, sizeof(name), "%s" RECORD_SUFFIX, record->name);
		error = record_create(&record->record, record->store_fd, name);
	}
	return error ? log_errno(error, "cannot make the record of this run in %s", record->store)
		     : 0;
}

int run_record_begin(struct run_record *record, const struct run_record_start *start)
{
	int error;

	if (record->store_fd < 0)
		return 0;
	error = create_file(record, start->review);
	if (error)
		return error;
	record_event(record->record, RECORD_START, record_line_start(record->name, start));
	return run_hashes_begin(&record->hashes, record->cache_fd, start->inputs,
				start->installation);
}

void run_record_started(struct run_record *record)
{
	if (record->hashes)
		run_hashes_start(record->hashes);
}

int run_record_end(struct run_record *record, const struct supervisor *supervisor)
{
	struct record *ended = record->record;
	int error;

	if (!ended)
		return 0;
	if (record->hashes) {
		cJSON *hashes = run_hashes_end(record->hashes);

		record_line_add_root(hashes, supervisor);
		record_event(ended, RECORD_HASHES, hashes);
	}
	record_lines_network(ended, supervisor->report);
	record_lines_limits(ended, supervisor->report);
	record_event(ended, RECORD_END, record_line_end(ended, supervisor));
	record->record = NULL;
	error = record_finish(ended, &record->key);
	if (error)
		log_errno(error, "cannot write the record of this run, %s/%s" RECORD_SUFFIX,
			  record->store, record->name);
	return error;
}

void run_record_destroy(struct run_record *record)
{
	record_abandon(record->record);
	record->record = NULL;
	run_hashes_destroy(record->hashes);
	record->hashes = NULL;
	record_key_clear(&record->key);
	fd_close(&record->store_fd);
	fd_close(&record->cache_fd);
}

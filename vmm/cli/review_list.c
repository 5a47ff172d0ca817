/* SPDX-License-Identifier: Apache-2.0 */
/* `mvagent runs`. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/text.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/record_commands.h"
#include "vmm/cli/record_summary.h"
#include "vmm/cli/repair.h"
#include "vmm/cli/review_commands.h"
#include "vmm/cli/review_options.h"
#include "vmm/cli/review_policy.h"
#include "vmm/record/store.h"
#include "vmm/review/review_run.h"

struct stores {
	int review_fd; /* -1: there is none */
	int record_fd;
};

/* A run in the list. */
struct listed_run {
	struct review_run run;
	bool counted;
	size_t changes;
};

static void count_changes(struct listed_run *listed)
{
	struct review_run *run = &listed->run;
	struct run_policy policy;

	if (run->state != REVIEW_OPEN && run->state != REVIEW_RUNNING)
		return;
	listed->counted = run_policy_create(&policy, &run->record, NULL) == 0 &&
			  review_run_open_shares(run, &policy.policy, false) == 0 &&
			  review_run_count_changes(run, &listed->changes) == 0;
	run_policy_destroy(&policy);
}

static const char *state_name(const struct listed_run *listed)
{
	switch (listed->run.state) {
	case REVIEW_RUNNING:
		return "running";
	case REVIEW_APPLIED:
		return "applied";
	case REVIEW_DISCARDED:
		return "discarded";
	case REVIEW_OPEN:
		break;
	}
	return !listed->counted ? "unknown" : listed->changes ? "open" : "unchanged";
}

/* Words with blanks between them, safe to print. Allocated. */
static char *join_words(const struct review_texts *words)
{
	size_t length = 1;
	char *text, *next;

	for (unsigned int i = 0; i < words->count; i++)
		length += strlen(words->texts[i]) + 1;
	text = next = calloc(length, 1);
	for (unsigned int i = 0; text && i < words->count; i++)
		next = stpcpy(stpcpy(next, i ? " " : ""), words->texts[i]);
	if (!text)
		return NULL;
	for (char *newline = text; (newline = strchr(newline, '\n'));)
		*newline = ' ';
	text_make_printable(text, strlen(text));
	return text;
}

static char *printable(const char *text)
{
	char *copy = strdup(text);

	if (copy)
		text_make_printable(copy, strlen(copy));
	return copy;
}

static void print_text(const struct listed_run *listed)
{
	const struct review_record *record = &listed->run.record;
	char *command = join_words(&record->command);
	char started[REVIEW_TIME_BYTES], state[48];

	review_time_format(record->started, started);
	if (listed->counted && listed->changes)
		snprintf(state, sizeof(state), "%s, %zu change%s", state_name(listed),
			 listed->changes, listed->changes == 1 ? "" : "s");
	else
		snprintf(state, sizeof(state), "%s", state_name(listed));
	printf("%s  %s  %-26s", listed->run.name, started, state);
	for (unsigned int i = 0; i < record->share_count; i++) {
		char *path = printable(record->shares[i].host_path);

		printf("  %s", path ? path : "?");
		free(path);
	}
	printf("  -- %s\n", command ? command : "?");
	free(command);
}

static void add_text(cJSON *array, const char *text)
{
	char *copy = printable(text);

	if (copy)
		cJSON_AddItemToArray(array, cJSON_CreateString(copy));
	free(copy);
}

static cJSON *make_json(const struct listed_run *listed)
{
	const struct review_record *record = &listed->run.record;
	cJSON *object = cJSON_CreateObject(), *array;
	char time[REVIEW_TIME_BYTES];

	cJSON_AddStringToObject(object, "run", listed->run.name);
	review_time_format(record->started, time);
	cJSON_AddStringToObject(object, "started", time);
	review_time_format(record->ended, time);
	if (record->ended) {
		cJSON_AddStringToObject(object, "ended", time);
		cJSON_AddNumberToObject(object, "exit", record->exit_status);
	} else {
		cJSON_AddNullToObject(object, "ended");
		cJSON_AddNullToObject(object, "exit");
	}
	cJSON_AddStringToObject(object, "state", state_name(listed));
	if (listed->counted)
		cJSON_AddNumberToObject(object, "changes", (double)listed->changes);
	else
		cJSON_AddNullToObject(object, "changes");
	array = cJSON_AddArrayToObject(object, "shares");
	for (unsigned int i = 0; i < record->share_count; i++)
		add_text(array, record->shares[i].host_path);
	array = cJSON_AddArrayToObject(object, "command");
	for (unsigned int i = 0; i < record->command.count; i++)
		add_text(array, record->command.texts[i]);
	return object;
}

static int print_json(cJSON *array)
{
	char *text = cJSON_Print(array);

	if (!text)
		return log_errno(-ENOMEM, "cannot make JSON");
	puts(text);
	free(text);
	return 0;
}

/* One that is under review. One that cannot be read was told about; the others are listed all the
 * same. */
static void list_reviewed(const struct review_options *options, int store_fd, const char *name,
			  cJSON *array)
{
	struct listed_run listed = {.run.fd = -1};

	if (review_run_open(&listed.run, store_fd, name, false) == 0) {
		count_changes(&listed);
		if (options->json)
			cJSON_AddItemToArray(array, make_json(&listed));
		else
			print_text(&listed);
	}
	review_run_close(&listed.run);
}

static void list_recorded(const struct review_options *options, int record_fd, const char *name,
			  cJSON *array)
{
	struct record_summary summary;
	int error = record_summary_read(&summary, record_fd, name);

	if (error)
		log_errno(error, "cannot read the record of run %s", name);
	else if (options->json)
		cJSON_AddItemToArray(array, record_summary_json(&summary, name));
	else
		record_summary_print(&summary, name);
	record_summary_destroy(&summary);
}

/* Both lists are in the order of time. A run in both is told of once, as the review has it. */
static void merge(const struct review_options *options, const struct stores *stores,
		  const struct tree_names *reviewed, const struct tree_names *recorded,
		  cJSON *array)
{
	size_t i = 0, k = 0;

	while (i < reviewed->count || k < recorded->count) {
		int order = i == reviewed->count   ? 1
			    : k == recorded->count ? -1
						   : strcmp(reviewed->names[i], recorded->names[k]);

		if (order <= 0)
			list_reviewed(options, stores->review_fd, reviewed->names[i++], array);
		else
			list_recorded(options, stores->record_fd, recorded->names[k], array);
		k += order >= 0;
	}
}

static int list_runs(const struct review_options *options, const struct stores *stores)
{
	struct tree_names reviewed = {0}, recorded = {0};
	cJSON *array = cJSON_CreateArray();
	int error = stores->review_fd < 0 ? 0 : review_store_list(stores->review_fd, &reviewed);

	if (!error && stores->record_fd >= 0)
		error = record_store_list(stores->record_fd, &recorded);
	if (error)
		log_errno(error, "cannot list the runs");
	else
		merge(options, stores, &reviewed, &recorded, array);
	if (!error && options->json)
		error = print_json(array);
	tree_names_destroy(&reviewed);
	tree_names_destroy(&recorded);
	cJSON_Delete(array);
	return error;
}

static int runs_list(int argc, char **argv)
{
	struct stores stores = {-1, -1};
	struct review_options options;
	char path[PATH_MAX];
	int result = review_options_parse(&options, REVIEW_RUNS, argc, argv);

	if (result > 0) {
		stores.review_fd = review_store_open(false);
		stores.record_fd = record_store_open(options.record, false, path);
		if (stores.review_fd < 0 && stores.review_fd != -ENOENT)
			result = stores.review_fd;
		else if (stores.record_fd < 0 && stores.record_fd != -ENOENT)
			result = stores.record_fd;
		else
			result = list_runs(&options, &stores);
	}
	fd_close(&stores.review_fd);
	fd_close(&stores.record_fd);
	review_options_free(&options);
	return result ? EXIT_MVAGENT : 0;
}

int runs_command(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "prune") == 0)
		return runs_prune_command(argc - 1, argv + 1);
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--repair") == 0)
			return runs_repair_command(argc, argv);
	return runs_list(argc, argv);
}

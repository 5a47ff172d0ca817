/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/repair.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/text.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/record_options.h"
#include "vmm/record/store.h"
#include "vmm/review/store.h"

/* Paths may hold anything. */
static void make_harmless(char *text)
{
	for (char *newline = text; (newline = strchr(newline, '\n'));)
		*newline = '?';
	text_make_printable(text, strlen(text));
}

static void tell(struct repair *repair, const char *about, const char *what)
{
	cJSON *object;

	if (!repair->told) {
		printf("%s: %s\n", about, what);
		return;
	}
	object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "about", about);
	cJSON_AddStringToObject(object, "what", what);
	cJSON_AddItemToArray(repair->told, object);
}

void repair_tell(struct repair *repair, const char *about, const char *format, ...)
{
	char *name = strdup(about), *text;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (name && length >= 0) {
		make_harmless(name);
		make_harmless(text);
		tell(repair, name, text);
	}
	free(name);
	if (length >= 0)
		free(text);
}

typedef int list_runs(int store_fd, struct tree_names *names);

static void for_each(struct repair *repair, int store_fd, list_runs *list,
		     void (*visit)(struct repair *, const char *))
{
	struct tree_names names = {0};
	int error = store_fd < 0 ? 0 : list(store_fd, &names);

	if (error) {
		log_errno(error, "cannot list the runs");
		repair->failed = true;
	}
	for (size_t i = 0; !error && i < names.count; i++)
		visit(repair, names.names[i]);
	tree_names_destroy(&names);
}

static void print_sum(const struct repair *repair)
{
	printf("%u run%s cut off", repair->cut, repair->cut == 1 ? " was" : "s were");
	if (repair->waiting)
		printf(", the changes of %u wait for review", repair->waiting);
	printf("; %u thing%s removed", repair->removed, repair->removed == 1 ? " was" : "s were");
	if (repair->running)
		printf("; %u run%s on", repair->running, repair->running == 1 ? " goes" : "s go");
	putchar('\n');
}

/* The same for programs, also when something failed. 0 or -ENOMEM. */
static int print_json(struct repair *repair)
{
	cJSON *object = cJSON_CreateObject();
	char *text;

	cJSON_AddItemToObject(object, "told", repair->told);
	repair->told = NULL;
	cJSON_AddNumberToObject(object, "running", repair->running);
	cJSON_AddNumberToObject(object, "cut", repair->cut);
	cJSON_AddNumberToObject(object, "waiting", repair->waiting);
	cJSON_AddNumberToObject(object, "removed", repair->removed);
	cJSON_AddBoolToObject(object, "failed", repair->failed);
	text = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	if (!text)
		return log_errno(-ENOMEM, "cannot print what was found");
	puts(text);
	free(text);
	return 0;
}

static int open_stores(struct repair *repair, const char *record_directory)
{
	char path[PATH_MAX];

	repair->record_fd = record_store_open(record_directory, false, path);
	if (repair->record_fd < 0 && (repair->record_fd != -ENOENT || record_directory))
		return repair->record_fd;
	repair->review_fd = review_store_open(false);
	return repair->review_fd == -ENOENT || repair->review_fd >= 0 ? 0 : repair->review_fd;
}

int runs_repair_command(int argc, char **argv)
{
	struct repair repair = {.record_fd = -1, .review_fd = -1};
	struct record_options options;
	int result = record_options_parse(&options, RECORD_VERB_REPAIR, argc, argv);

	if (result <= 0)
		return result ? EXIT_MVAGENT : 0;
	repair.told = options.json ? cJSON_CreateArray() : NULL;
	repair.failed = open_stores(&repair, options.directory) < 0;
	if (!repair.failed) {
		for_each(&repair, repair.record_fd, record_store_list, repair_record);
		for_each(&repair, repair.review_fd, review_store_list_unborn, repair_unborn);
		for_each(&repair, repair.review_fd, review_store_list, repair_review);
		repair_common(&repair);
		if (!options.json)
			print_sum(&repair);
	}
	if (options.json)
		repair.failed |= print_json(&repair) < 0;
	fd_close(&repair.record_fd);
	fd_close(&repair.review_fd);
	return repair.failed ? EXIT_MVAGENT : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/root_show.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/base/option.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/run_root.h"
#include "vmm/root/host_image.h"

static const char usage[] =
	"usage: mvagent root show [--json] [--root-add DIR]... [--root-hide PATTERN]...\n"
	"Shows what of this host the command finds in its root file system (--root host): the\n"
	"directories, how much is in them, and what was left out. No file is opened.\n";

enum { OPTION_JSON = OPTION_FIRST, OPTION_ROOT_ADD, OPTION_ROOT_HIDE };

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{"json", no_argument, NULL, OPTION_JSON},
	{"root-add", required_argument, NULL, OPTION_ROOT_ADD},
	{"root-hide", required_argument, NULL, OPTION_ROOT_HIDE},
	{NULL, 0, NULL, 0},
};

struct show_options {
	struct run_root root;
	bool json;
};

struct show {
	struct show_options options;
	struct host_plan plan;
	struct host_image image;
};

static int apply(void *context, int option, char *value)
{
	struct show_options *options = context;

	if (option == OPTION_ROOT_ADD)
		return run_root_add(&options->root, value);
	if (option == OPTION_ROOT_HIDE)
		return run_root_hide(&options->root, value);
	options->json = true;
	return 0;
}

static const struct option_set option_set = {
	.usage = usage,
	.help = "mvagent root --help",
	.letters = "+:h",
	.options = long_options,
	.apply = apply,
};

/* A count of host_counts, with its name in --json and its words. */
struct shown_count {
	const char *name;
	size_t offset;
	const char *words;
};

#define COUNT(field, words)                                        \
	{                                                          \
#field, offsetof(struct host_counts, field), words \
	}
static const struct shown_count contents[] = {
	COUNT(directories, "directories"),
	COUNT(files, "files"),
	COUNT(symlinks, "symbolic links"),
	COUNT(bytes, "bytes in the files"),
};
static const struct shown_count omitted[] = {
	COUNT(unreadable, "not for everybody to read"),
	COUNT(special, "devices, sockets and FIFOs"),
	COUNT(mounts, "other mounts"),
	COUNT(hidden, "hidden by an option, or the name of a credential"),
	COUNT(too_large, "too large for an image"),
	COUNT(vanished, "gone or changed while it was looked at"),
};

static unsigned long long value_of(const struct host_counts *counts,
				   const struct shown_count *shown)
{
	uint64_t value;

	memcpy(&value, (const char *)counts + shown->offset, sizeof(value));
	return value;
}

static void print_source(const struct plan_source *source)
{
	printf("  %s%s\n", source->path, source->added ? " (added)" : "");
	for (const char *const *name = source->only; name && *name; name++)
		printf("    %s\n", *name);
}

static void print_entries(const struct host_plan *plan, uint16_t parent, const char *path,
			  enum plan_kind kind)
{
	char below[4096];

	for (uint16_t i = plan->entries[parent].first_child; i; i = plan->entries[i].next) {
		const struct plan_entry *entry = &plan->entries[i];

		snprintf(below, sizeof(below), "%s/%s", path, entry->name);
		if (entry->kind == kind && kind == PLAN_SYMLINK)
			printf("  %s -> %s\n", below, entry->text);
		else if (entry->kind == kind)
			printf("  %s\n", below);
		print_entries(plan, i, below, kind);
	}
}

static void print_text(const struct show *show)
{
	const struct host_counts *counts = &show->image.counts;

	puts("directories of this host (below one: the names that enter, if not all):");
	for (unsigned int i = 0; i < show->plan.source_count; i++)
		print_source(&show->plan.sources[i]);
	puts("links:");
	print_entries(&show->plan, 0, "", PLAN_SYMLINK);
	puts("files made for the guest:");
	print_entries(&show->plan, 0, "", PLAN_FILE);
	puts("in all:");
	for (size_t i = 0; i < ARRAY_SIZE(contents); i++)
		printf("  %llu %s\n", value_of(counts, &contents[i]), contents[i].words);
	printf("  %llu KiB of metadata\n",
	       (unsigned long long)show->image.layout.metadata_bytes >> 10);
	puts("left out:");
	for (size_t i = 0; i < ARRAY_SIZE(omitted); i++)
		printf("  %llu %s\n", value_of(counts, &omitted[i]), omitted[i].words);
}

static cJSON *source_to_json(const struct plan_source *source)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "path", source->path);
	cJSON_AddBoolToObject(object, "added", source->added);
	if (source->only) {
		cJSON *only = cJSON_AddArrayToObject(object, "only");

		for (const char *const *name = source->only; *name; name++)
			cJSON_AddItemToArray(only, cJSON_CreateString(*name));
	}
	return object;
}

static void add_counts(cJSON *object, const struct host_counts *counts,
		       const struct shown_count *shown, size_t count)
{
	for (size_t i = 0; i < count; i++)
		cJSON_AddNumberToObject(object, shown[i].name, (double)value_of(counts, &shown[i]));
}

static int print_json(const struct show *show)
{
	const struct host_counts *counts = &show->image.counts;
	cJSON *object = cJSON_CreateObject();
	cJSON *sources = cJSON_AddArrayToObject(object, "directories_of_host");
	char *text;

	for (unsigned int i = 0; i < show->plan.source_count; i++)
		cJSON_AddItemToArray(sources, source_to_json(&show->plan.sources[i]));
	add_counts(object, counts, contents, ARRAY_SIZE(contents));
	cJSON_AddNumberToObject(object, "metadata_bytes",
				(double)show->image.layout.metadata_bytes);
	add_counts(cJSON_AddObjectToObject(object, "left_out"), counts, omitted,
		   ARRAY_SIZE(omitted));
	text = cJSON_Print(object);
	cJSON_Delete(object);
	if (!text) {
		log_error("there is not enough memory to print it");
		return -1;
	}
	puts(text);
	cJSON_free(text);
	return 0;
}

static int show_build(struct show *show)
{
	const struct run_root *root = &show->options.root;
	int error = host_plan_create(&show->plan, "/");

	for (unsigned int i = 0; i < root->add_count && !error; i++)
		error = host_plan_add_directory(&show->plan, root->adds[i]);
	for (unsigned int i = 0; i < root->hide_count && !error; i++)
		error = host_plan_hide(&show->plan, root->hides[i]);
	return error ? error : host_image_build(&show->image, &show->plan, NULL);
}

int root_command(int argc, char **argv)
{
	struct show *show;
	int result, status = EXIT_MVAGENT;

	if (argc < 2 || (strcmp(argv[1], "show") != 0 && argv[1][0] != '-')) {
		log_error("root: say what to do: 'mvagent root show'");
		return EXIT_MVAGENT;
	}
	show = calloc(1, sizeof(*show));
	if (!show)
		return EXIT_MVAGENT;
	show->plan.host_fd = -1;
	result = option_set_parse(&option_set, argv[1][0] == '-' ? argc : argc - 1,
				  argv[1][0] == '-' ? argv : argv + 1, &show->options);
	if (result > 0 && show_build(show) == 0) {
		status = 0;
		if (!show->options.json)
			print_text(show);
		else if (print_json(show))
			status = EXIT_MVAGENT;
		if (fflush(stdout))
			status = EXIT_MVAGENT;
	} else if (result == 0) {
		status = 0;
	}
	host_image_destroy(&show->image);
	host_plan_destroy(&show->plan);
	run_root_free(&show->options.root);
	free(show);
	return status;
}

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
#include "vmm/cli/root_names.h"
#include "vmm/cli/run_root.h"
#include "vmm/root/host_image.h"

static const char usage[] =
	"usage: mvagent root show [OPTIONS]\n"
	"Shows what of this host the command finds in its root file system (--root host): the\n"
	"directories, how much is in them, and what was left out. No file is opened.\n"
	"\n"
	"  --root-add DIR        as for 'mvagent run'; may be given several times, as the next "
	"one\n"
	"  --root-hide PATTERN   as for 'mvagent run'\n"
	"  --json                as a JSON object\n"
	"  -v, --verbose         name what was left out, and what there is of the names that "
	"enter\n"
	"  -h, --help            this text\n"
	"\n"
	"Exit status: 0, or 125 when it failed.\n";

enum { OPTION_VERBOSE = 'v', OPTION_JSON = OPTION_FIRST, OPTION_ROOT_ADD, OPTION_ROOT_HIDE };

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{"json", no_argument, NULL, OPTION_JSON},
	{"verbose", no_argument, NULL, OPTION_VERBOSE},
	{"root-add", required_argument, NULL, OPTION_ROOT_ADD},
	{"root-hide", required_argument, NULL, OPTION_ROOT_HIDE},
	{NULL, 0, NULL, 0},
};

struct show_options {
	struct run_root root;
	bool json;
	bool verbose;
};

struct show {
	struct show_options options;
	struct host_plan plan;
	struct host_image image;
	struct root_names names; /* left out; empty unless verbose */
};

static int apply(void *context, int option, char *value)
{
	struct show_options *options = context;

	if (option == OPTION_ROOT_ADD)
		return run_root_add(&options->root, value);
	if (option == OPTION_ROOT_HIDE)
		return run_root_hide(&options->root, value);
	options->json = options->json || option == OPTION_JSON;
	options->verbose = options->verbose || option == OPTION_VERBOSE;
	return 0;
}

static const struct option_set option_set = {
	.usage = usage,
	.help = "mvagent root --help",
	.letters = "+:hv",
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

static void print_name(void *context, const char *name)
{
	(void)context;
	printf("    %s\n", name);
}

static void print_more(unsigned long long count)
{
	if (count)
		printf("    and %llu more\n", count);
}

static void print_source(const struct show *show, unsigned int index)
{
	const struct plan_source *source = &show->plan.sources[index];

	printf("  %s%s\n", source->path, source->added ? " (added)" : "");
	if (source->only && show->options.verbose) {
		print_more(root_names_entered(&show->image, index, print_name, NULL));
		return;
	}
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

static void print_omitted(const struct show *show, const struct shown_count *shown)
{
	size_t index = shown->offset / sizeof(uint64_t);
	unsigned long long count = value_of(&show->image.counts, shown);

	printf("  %llu %s\n", count, shown->words);
	if (!show->options.verbose)
		return;
	for (unsigned int i = 0; i < show->names.counts[index]; i++)
		print_name(NULL, show->names.names[index][i]);
	print_more(count - show->names.counts[index]);
}

static void print_text(const struct show *show)
{
	const struct host_counts *counts = &show->image.counts;

	puts(show->options.verbose ? "directories of this host (below one: what there is of the "
				     "names that enter, if not all):"
				   : "directories of this host (below one: the names that enter, "
				     "if not all):");
	for (unsigned int i = 0; i < show->plan.source_count; i++)
		print_source(show, i);
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
		print_omitted(show, &omitted[i]);
	if (!show->options.verbose)
		puts("(--verbose names them)");
}

static void add_name(void *context, const char *name)
{
	cJSON_AddItemToArray(context, cJSON_CreateString(name));
}

static cJSON *source_to_json(const struct show *show, unsigned int index)
{
	const struct plan_source *source = &show->plan.sources[index];
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "path", source->path);
	cJSON_AddBoolToObject(object, "added", source->added);
	if (source->only) {
		cJSON *only = cJSON_AddArrayToObject(object, "only");

		for (const char *const *name = source->only; *name; name++)
			cJSON_AddItemToArray(only, cJSON_CreateString(*name));
	}
	if (source->only && show->options.verbose)
		root_names_entered(&show->image, index, add_name,
				   cJSON_AddArrayToObject(object, "names"));
	return object;
}

static void add_counts(cJSON *object, const struct host_counts *counts,
		       const struct shown_count *shown, size_t count)
{
	for (size_t i = 0; i < count; i++)
		cJSON_AddNumberToObject(object, shown[i].name, (double)value_of(counts, &shown[i]));
}

static void add_left_out_names(cJSON *object, const struct root_names *names)
{
	for (size_t i = 0; i < ARRAY_SIZE(omitted); i++) {
		size_t index = omitted[i].offset / sizeof(uint64_t);
		cJSON *array = cJSON_AddArrayToObject(object, omitted[i].name);

		for (unsigned int k = 0; k < names->counts[index]; k++)
			add_name(array, names->names[index][k]);
	}
}

static int print_json(const struct show *show)
{
	const struct host_counts *counts = &show->image.counts;
	cJSON *object = cJSON_CreateObject();
	cJSON *sources = cJSON_AddArrayToObject(object, "directories_of_host");
	char *text;

	for (unsigned int i = 0; i < show->plan.source_count; i++)
		cJSON_AddItemToArray(sources, source_to_json(show, i));
	add_counts(object, counts, contents, ARRAY_SIZE(contents));
	cJSON_AddNumberToObject(object, "metadata_bytes",
				(double)show->image.layout.metadata_bytes);
	add_counts(cJSON_AddObjectToObject(object, "left_out"), counts, omitted,
		   ARRAY_SIZE(omitted));
	if (show->options.verbose)
		add_left_out_names(cJSON_AddObjectToObject(object, "left_out_names"), &show->names);
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
	const struct host_progress progress = {.left_out = root_names_left_out,
					       .context = &show->names};
	int error = run_root_make_plan(&show->options.root, &show->plan);

	return error ? error
		     : host_image_build(&show->image, &show->plan,
					show->options.verbose ? &progress : NULL);
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
	} else if (result == 0) {
		status = 0;
	}
	root_names_destroy(&show->names);
	host_image_destroy(&show->image);
	host_plan_destroy(&show->plan);
	run_root_free(&show->options.root);
	free(show);
	return status;
}

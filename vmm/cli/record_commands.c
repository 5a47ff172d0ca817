/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/record_commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/sha256.h"
#include "vmm/base/text.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/record_options.h"
#include "vmm/cli/record_show.h"
#include "vmm/cli/verify_key.h"
#include "vmm/record/store.h"
#include "vmm/record/verify.h"

static const char usage[] =
	"usage: mvagent record show [RUN] [OPTIONS]\n"
	"       mvagent record verify FILE|RUN [OPTIONS]\n"
	"Shows what is on record of a run, or says whether a record is what its run wrote;\n"
	"'mvagent record show --help' and 'mvagent record verify --help' say more.\n"
	"\n"
	"  --json            the lines as they are; the verdict as JSON\n"
	"  --key FILE        the public key that must have signed it\n"
	"  --record DIR      where the records are, if not in your state directory\n"
	"  -h, --help        this text\n";

/* How often a record that is followed is looked at. */
#define FOLLOW_MS 200

/* The record that a command is about, and how much of it was read. */
struct source {
	const char *name;
	char newest[REVIEW_RUN_NAME_BYTES];
	int directory_fd; /* AT_FDCWD: name is a path */
	char *text;
	size_t length;
	bool running;
};

static int find_newest(struct source *source)
{
	struct tree_names names = {0};
	int error = record_store_list(source->directory_fd, &names);

	if (!error && !names.count)
		error = -ENOENT;
	if (!error)
		snprintf(source->newest, sizeof(source->newest), "%s",
			 names.names[names.count - 1]);
	source->name = source->newest;
	tree_names_destroy(&names);
	return error;
}

static void source_close(struct source *source)
{
	if (source->directory_fd >= 0)
		fd_close(&source->directory_fd);
	free(source->text);
	source->text = NULL;
}

/* Reads the record anew. 0 or -errno. */
static int source_read(struct source *source)
{
	free(source->text);
	source->text = NULL;
	if (source->directory_fd == AT_FDCWD)
		return record_read_file(AT_FDCWD, source->name, &source->text, &source->length,
					&source->running);
	return record_store_read(source->directory_fd, source->name, &source->text, &source->length,
				 &source->running);
}

static bool is_path(const char *what)
{
	return strchr(what, '/') || access(what, F_OK) == 0;
}

/* Finds and reads it. 0 or -errno with the sentence printed; close in every case. */
static int source_open(struct source *source, const struct record_options *options)
{
	char path[PATH_MAX];
	int error = 0;

	*source = (struct source){.name = options->what, .directory_fd = -1};
	if (options->what && is_path(options->what)) {
		source->directory_fd = AT_FDCWD;
	} else {
		source->directory_fd = record_store_open(options->directory, false, path);
		if (source->directory_fd == -ENOENT) {
			log_error("no run is on record");
			return -ENOENT;
		}
		if (source->directory_fd < 0)
			return source->directory_fd;
		if (!options->what)
			error = find_newest(source);
	}
	if (!options->what && error == -ENOENT) {
		log_error("no run is on record");
		return error;
	}
	error = error ? error : source_read(source);
	if (error == -EINVAL || error == -ENOENT)
		log_error("%s: there is no such record; 'mvagent runs' lists what there is",
			  source->name);
	else if (error)
		log_errno(error, "cannot read the record %s", source->name);
	return error;
}

/* As it is, but for a terminal, on which whatever is in it must not act. */
static void print_json_line(const char *text, size_t length)
{
	char *harmless;

	if (!isatty(STDOUT_FILENO)) {
		printf("%.*s\n", (int)length, text);
		return;
	}
	harmless = strndup(text, length);
	if (harmless)
		text_make_printable(harmless, strlen(harmless));
	puts(harmless ? harmless : "(no memory for a line)");
	free(harmless);
}

/* Prints the whole lines from *@at on, which moves behind them. */
static void print_lines(const struct source *source, bool json, size_t *at)
{
	const char *newline;

	while (source->text && *at < source->length &&
	       (newline = memchr(source->text + *at, '\n', source->length - *at))) {
		const char *start = source->text + *at;
		size_t length = (size_t)(newline - start);
		cJSON *line;

		*at += length + 1;
		if (json) {
			print_json_line(start, length);
			continue;
		}
		line = cJSON_ParseWithLength(start, length);
		if (cJSON_IsObject(line))
			record_show_line(line);
		else
			puts("(a line that is none of a record's)");
		cJSON_Delete(line);
	}
}

/* Whether the last line that was printed is the signature. */
static bool is_signed(const struct source *source)
{
	static const char word[] = "\"event\":\"signature\"";

	return source->text && memmem(source->text, source->length, word, strlen(word));
}

static int follow(struct source *source, bool json, size_t at)
{
	static const struct timespec pause = {.tv_nsec = FOLLOW_MS * 1000000L};
	int error = 0;

	while (!error && source->running) {
		fflush(stdout);
		if (ferror(stdout))
			break;
		nanosleep(&pause, NULL);
		error = source_read(source);
		if (!error)
			print_lines(source, json, &at);
	}
	return error ? log_errno(error, "cannot read the record %s", source->name) : 0;
}

static int show(int argc, char **argv, enum record_verb verb)
{
	struct record_options options;
	struct source source = {.directory_fd = -1};
	int result = record_options_parse(&options, verb, argc, argv);
	size_t at = 0;

	if (result <= 0)
		return result ? EXIT_MVAGENT : 0;
	result = source_open(&source, &options);
	if (!result) {
		print_lines(&source, options.json, &at);
		if (options.follow)
			result = follow(&source, options.json, at);
		fflush(stdout);
		if (!result && !source.running && !is_signed(&source))
			log_warning("the record %s was cut: it has no end", source.name);
	}
	source_close(&source);
	return result ? EXIT_MVAGENT : 0;
}

int log_command(int argc, char **argv)
{
	return show(argc, argv, RECORD_VERB_LOG);
}

static int print_check(const struct record_check *check, const char *name, bool json)
{
	static const char *const words[] = {
		[RECORD_WHOLE] = "whole",
		[RECORD_CUT] = "cut",
		[RECORD_OTHER_KEY] = "other-key",
		[RECORD_ALTERED] = "altered",
	};
	static const int statuses[] = {
		[RECORD_WHOLE] = 0,
		[RECORD_CUT] = EXIT_RECORD_CUT,
		[RECORD_OTHER_KEY] = EXIT_RECORD_ALTERED,
		[RECORD_ALTERED] = EXIT_RECORD_ALTERED,
	};
	char key[SHA256_HEX_SIZE] = "";

	if (check->verdict == RECORD_WHOLE || check->verdict == RECORD_OTHER_KEY)
		sha256_format(check->key, key);
	if (json) {
		printf("{\"verdict\":\"%s\",\"lines\":%llu,\"line\":", words[check->verdict],
		       (unsigned long long)check->lines);
		if (check->line)
			printf("%llu", (unsigned long long)check->line);
		else
			fputs("null", stdout);
		printf(",\"message\":\"%s\",\"key\":%s%s%s}\n", check->sentence, *key ? "\"" : "",
		       *key ? key : "null", *key ? "\"" : "");
	} else {
		printf("%s: %s%s%s\n", name, check->sentence, *key ? " by " : "", key);
	}
	return statuses[check->verdict];
}

static int verify(int argc, char **argv)
{
	struct source source = {.directory_fd = -1};
	struct record_options options;
	struct record_check check;
	uint8_t key[KEY_BYTES];
	int status = EXIT_MVAGENT;
	int result = record_options_parse(&options, RECORD_VERB_VERIFY, argc, argv);

	if (result <= 0)
		return result ? EXIT_MVAGENT : 0;
	result = source_open(&source, &options);
	result = result ? result : verify_key_find(options.key, "record", key);
	if (!result)
		result = record_verify(&check, source.text, source.length, key);
	if (!result)
		status = print_check(&check, source.name, options.json);
	source_close(&source);
	return status;
}

int record_command(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "show") == 0)
		return show(argc - 1, argv + 1, RECORD_VERB_SHOW);
	if (argc > 1 && strcmp(argv[1], "verify") == 0)
		return verify(argc - 1, argv + 1);
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc > 1)
		log_error("record: there is no '%s'; it is show or verify", argv[1]);
	else
		fputs(usage, stderr);
	return EXIT_MVAGENT;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/record_lines.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/sha256.h"
#include "vmm/base/version.h"
#include "vmm/cli/record_policy.h"
#include "vmm/record/canonical.h"
#include "vmm/record/mask.h"

/* Of a command line: so much of each argument, and of all. */
#define ARGUMENT_LIMIT  4096U
#define ARGUMENTS_LIMIT 65536U

/* The argument without what looks like a secret, and without the values of --env. Allocated. */
static char *mask(const struct run_options *options, const char *argument, const char *previous)
{
	char *masked = NULL;

	if (previous && strcmp(previous, "--env") == 0 && strchr(argument, '=')) {
		if (asprintf(&masked, "%.*s=" MASK_TEXT, (int)strcspn(argument, "="), argument) < 0)
			return NULL;
		return masked;
	}
	if (strncmp(argument, "--env=", 6) == 0 && strchr(argument + 6, '=')) {
		if (asprintf(&masked, "%.*s=" MASK_TEXT, 6 + (int)strcspn(argument + 6, "="),
			     argument) < 0)
			return NULL;
		return masked;
	}
	masked = mask_argument(argument, previous);
	for (unsigned int i = 0; masked && i < options->variables.count; i++) {
		const char *value = run_variable_value(&options->variables.list[i]);
		char *next = value ? mask_value(masked, value) : NULL;

		if (!next)
			continue;
		free(masked);
		masked = next;
	}
	return masked;
}

/* A value of an option below. Of NAME=PATH@HOST the name says that something is a secret, and not
 * the path. */
static char *mask_own_value(const struct run_options *options, const char *value)
{
	const size_t name = strcspn(value, "=");
	char *masked, *whole = NULL;

	if (!value[name])
		return mask(options, value, NULL);
	masked = mask(options, value + name + 1, NULL);
	if (!masked || asprintf(&whole, "%.*s=%s", (int)name, value, masked) < 0)
		whole = NULL;
	free(masked);
	return whole;
}

/* Options of mvagent whose names look as if their values were secret, and are not: a name with its
 * hosts, a file's as well, a time. Where --secret is given the secret itself, its form may still
 * tell. In the command of --secret-cmd there may be one. Allocated, or NULL: it is none of these.
 */
static char *mask_own(const struct run_options *options, const char *argument, const char *previous)
{
	static const char *const names[] = {"--secret", "--secret-file", "--auth-clock"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const size_t length = strlen(names[i]);
		char *value, *whole = NULL;

		if (previous && strcmp(previous, names[i]) == 0)
			return mask_own_value(options, argument);
		if (strncmp(argument, names[i], length) != 0 || argument[length] != '=')
			continue;
		value = mask_own_value(options, argument + length + 1);
		if (!value || asprintf(&whole, "%s=%s", names[i], value) < 0)
			whole = NULL;
		free(value);
		return whole;
	}
	return NULL;
}

static size_t count_of(char *const *words)
{
	size_t count = 0;

	while (words && words[count])
		count++;
	return count;
}

/* How many of the arguments, the last ones, are the command: none where an image has it, or mvagent
 * itself, which runs its probes. */
static size_t count_of_command(const struct run_record_start *start)
{
	const size_t all = count_of(start->arguments), count = count_of(start->options->command);

	for (size_t i = 0; i < count; i++) {
		if (count > all ||
		    strcmp(start->arguments[all - count + i], start->options->command[i]) != 0)
			return 0;
	}
	return count;
}

/* The last @command_count of the arguments are the command, whose options are not ours. */
static void add_arguments(cJSON *line, const char *name, const struct run_options *options,
			  char *const *arguments, size_t command_count)
{
	cJSON *array = cJSON_AddArrayToObject(line, name);
	const char *previous = NULL;
	size_t room = ARGUMENTS_LIMIT, left = count_of(arguments);

	for (; *arguments; previous = *arguments++, left--) {
		char *own = left > command_count ? mask_own(options, *arguments, previous) : NULL;
		char *masked = own ? own : mask(options, *arguments, previous);
		size_t length = masked ? strlen(masked) : 0;

		/* A long one is told in part, and then the rest in part as well. */
		cJSON_AddItemToArray(array, canonical_text(masked ? masked : MASK_TEXT,
							   bytes_minimum(ARGUMENT_LIMIT, room)));
		room -= bytes_minimum(length + 1, room);
		free(masked);
		if (!room)
			break;
	}
}

static void add_user(cJSON *line)
{
	cJSON *user = cJSON_AddObjectToObject(line, "user");
	const struct passwd *entry = getpwuid(geteuid());

	canonical_add_count(user, "uid", geteuid());
	cJSON_AddItemToObject(user, "name", canonical_text(entry ? entry->pw_name : "", 64));
}

/* "model name" of /proc/cpuinfo, the first. */
static void add_processor(cJSON *host)
{
	char text[8192] = "", *name, *end;
	FILE *file = fopen("/proc/cpuinfo", "re");

	if (file) {
		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		fclose(file);
	}
	name = strstr(text, "model name");
	name = name ? strchr(name, ':') : NULL;
	name = name ? name + 1 + (name[1] == ' ') : text + strlen(text);
	end = strchrnul(name, '\n');
	*end = '\0';
	cJSON_AddItemToObject(host, "processor", canonical_text(name, 128));
	canonical_add_count(host, "processors", (double)sysconf(_SC_NPROCESSORS_ONLN));
}

static void add_host(cJSON *line)
{
	cJSON *host = cJSON_AddObjectToObject(line, "host");
	struct utsname names;

	uname(&names);
	cJSON_AddItemToObject(host, "name", canonical_text(names.nodename, 64));
	cJSON_AddItemToObject(host, "kernel", canonical_text(names.release, 64));
	cJSON_AddItemToObject(host, "kernel_version", canonical_text(names.version, 128));
	cJSON_AddStringToObject(host, "architecture", names.machine);
	/* With another kind no run begins. */
	cJSON_AddStringToObject(host, "kvm", "hardware");
	add_processor(host);
}

static void add_policy(cJSON *line, const struct run_record_start *start)
{
	cJSON *policy = record_policy(start->options, start->shares);
	char *text = canonical_print(policy);
	uint8_t digest[SHA256_BYTES];
	char hash[SHA256_HEX_SIZE];

	cJSON_AddItemToObject(line, "policy", policy);
	if (text) {
		sha256_of(text, strlen(text), digest);
		sha256_format(digest, hash);
		cJSON_AddStringToObject(line, "policy_sha256", hash);
	}
	free(text);
}

/* What a reason is about: of variables and secrets the name alone, wherever they come from; of
 * --share the directory as the policy has it. */
static const char *reason_value(const struct run_reason *reason, char name[64], char text[PATH_MAX])
{
	const char *value = reason->value ? reason->value : "";

	snprintf(name, 64, "--%s", reason->option);
	if (strcmp(name, "--share") == 0 && realpath(value, text))
		return text;
	if (strncmp(name, "--secret", 8) == 0)
		snprintf(name, 64, "--secret");
	else if (strcmp(name, "--env") != 0)
		return value;
	snprintf(text, PATH_MAX, "%.*s", (int)strcspn(value, "=@"), value);
	return text;
}

static void add_reason(cJSON *reasons, const struct run_reason *reason)
{
	char name[64], path[PATH_MAX];
	const char *value = reason_value(reason, name, path);
	cJSON *object = cJSON_CreateObject();

	cJSON_AddStringToObject(object, "option", name);
	cJSON_AddItemToObject(object, "value", canonical_text(value, ARGUMENT_LIMIT));
	cJSON_AddItemToObject(object, "why", canonical_text(reason->why, ARGUMENT_LIMIT));
	cJSON_AddItemToArray(reasons, object);
}

/* That of --env-file is one for each of its variables. */
static void add_reasons(cJSON *line, const struct run_options *options)
{
	cJSON *reasons = cJSON_AddArrayToObject(line, "reasons");

	for (unsigned int i = 0; i < options->reason_count; i++) {
		const struct run_reason *reason = &options->reasons[i];

		if (strcmp(reason->option, "env-file") != 0)
			add_reason(reasons, reason);
		for (unsigned int j = 0; j < options->variables.count; j++) {
			const struct run_variable *variable = &options->variables.list[j];
			const struct run_reason own = {
				.option = "env", .value = variable->text, .why = reason->why};

			if (variable->file == reason->value && variable->file)
				add_reason(reasons, &own);
		}
	}
}

cJSON *record_line_start(const char *run, const struct run_record_start *start)
{
	cJSON *line = cJSON_CreateObject();
	char *directory = getcwd(NULL, 0);

	cJSON_AddStringToObject(line, "run", run);
	cJSON_AddStringToObject(line, "mvagent", MVAGENT_VERSION);
	add_user(line);
	cJSON_AddItemToObject(line, "directory", canonical_text(directory ? directory : "", 4096));
	free(directory);
	add_arguments(line, "command_line", start->options, start->arguments,
		      count_of_command(start));
	add_arguments(line, "command", start->options, start->options->command,
		      count_of(start->options->command));
	add_policy(line, start);
	add_reasons(line, start->options);
	add_host(line);
	return line;
}

cJSON *record_line_phase(const struct report *report, enum report_moment moment)
{
	static const char *const names[MOMENT_COUNT] = {
		[MOMENT_BEGIN] = "begin",   [MOMENT_RUNNING] = "running",
		[MOMENT_HELLO] = "booted",  [MOMENT_STARTED] = "started",
		[MOMENT_EXITED] = "exited", [MOMENT_END] = "end",
	};
	cJSON *line = cJSON_CreateObject();

	cJSON_AddStringToObject(line, "phase", names[moment]);
	canonical_add_count(line, "microseconds",
			    1000 * report_milliseconds(report, MOMENT_BEGIN, moment));
	return line;
}

static void add_hash(cJSON *line, const char *name, const uint8_t digest[SHA256_BYTES])
{
	char text[SHA256_HEX_SIZE];

	sha256_format(digest, text);
	cJSON_AddStringToObject(line, name, text);
}

void record_line_add_root(cJSON *hashes, const struct supervisor *supervisor)
{
	const struct run_image *image = supervisor->image;

	if (image->is_stored) {
		add_hash(hashes, "root_digest", image->digest);
		add_hash(hashes, "root_verity", image->descriptor.verity_root);
	} else if (supervisor->ready.has_metadata_hash) {
		add_hash(hashes, "root_metadata", supervisor->ready.metadata_hash);
	}
}

void record_lines_network(struct record *record, const struct report *report)
{
	for (unsigned int i = 0; i < report->network.frame_count; i++) {
		char text[NETWORK_SENTENCE_BYTES];
		cJSON *line = cJSON_CreateObject();

		network_report_describe(&report->network.frames[i], text);
		cJSON_AddStringToObject(line, "decision", "dropped");
		cJSON_AddItemToObject(line, "what", canonical_text(text, sizeof(text)));
		record_event(record, RECORD_NETWORK, line);
	}
	if (report->counters.frames_dropped > report->network.frame_count)
		record_count(record, RECORD_NETWORK,
			     report->counters.frames_dropped - report->network.frame_count);
}

static void add_limit(struct record *record, const char *limit)
{
	cJSON *line = cJSON_CreateObject();

	cJSON_AddStringToObject(line, "limit", limit);
	record_event(record, RECORD_LIMIT, line);
}

void record_lines_limits(struct record *record, const struct report *report)
{
	if (report->outcome.kind == OUTCOME_TIME_LIMIT)
		add_limit(record, "time");
	if (report->memory_ran_out)
		add_limit(record, "guest-memory");
	if (report->cgroup.kills)
		add_limit(record, "memory");
}

static void add_microseconds(cJSON *object, const char *name, const struct report *report,
			     enum report_moment from, enum report_moment to)
{
	double milliseconds = report_milliseconds(report, from, to);

	if (milliseconds < 0)
		cJSON_AddNullToObject(object, name);
	else
		canonical_add_count(object, name, 1000 * milliseconds);
}

static void add_times(cJSON *line, const struct report *report)
{
	cJSON *times = cJSON_AddObjectToObject(line, "microseconds");

	add_microseconds(times, "prepare", report, MOMENT_BEGIN, MOMENT_RUNNING);
	add_microseconds(times, "boot", report, MOMENT_RUNNING, MOMENT_HELLO);
	add_microseconds(times, "session", report, MOMENT_HELLO, MOMENT_STARTED);
	add_microseconds(times, "command", report, MOMENT_STARTED, MOMENT_EXITED);
	add_microseconds(times, "leave", report, MOMENT_EXITED, MOMENT_END);
	add_microseconds(times, "total", report, MOMENT_BEGIN, MOMENT_END);
}

static int64_t microseconds_of(const struct timeval *time)
{
	return (int64_t)time->tv_sec * 1000000 + time->tv_usec;
}

static void add_use(cJSON *line, const struct supervisor *supervisor)
{
	cJSON *list = cJSON_AddArrayToObject(line, "processes");

	for (unsigned int i = 0; i < supervisor->process_count; i++) {
		const struct process *process = &supervisor->processes[i];
		cJSON *object = cJSON_CreateObject();

		cJSON_AddItemToArray(list, object);
		cJSON_AddStringToObject(object, "name", process->name ? process->name : "");
		canonical_add_count(object, "user_microseconds",
				    (double)microseconds_of(&process->usage.ru_utime));
		canonical_add_count(object, "system_microseconds",
				    (double)microseconds_of(&process->usage.ru_stime));
		canonical_add_count(object, "maximum_resident_kib",
				    (double)process->usage.ru_maxrss);
	}
}

static void add_machine(cJSON *line, const struct report *report)
{
	const struct monitor_counters *counters = &report->counters;
	cJSON *machine = cJSON_AddObjectToObject(line, "machine");

	cJSON_AddStringToObject(machine, "end",
				report->machine_ended ? report_reason_name(report->machine_reason)
						      : "unknown");
	canonical_add_count(machine, "exits", (double)counters->exits);
	canonical_add_count(machine, "frames_dropped", (double)counters->frames_dropped);
	canonical_add_count(machine, "bytes_dropped", (double)counters->bytes_dropped);
}

/* Whether anything was counted that is not written out. */
static bool is_bounded(const cJSON *counts)
{
	const cJSON *kind;

	cJSON_ArrayForEach(kind, counts)
	{
		if (cJSON_GetObjectItem(kind, "seen")->valuedouble >
		    cJSON_GetObjectItem(kind, "written")->valuedouble)
			return true;
	}
	return false;
}

cJSON *record_line_end(const struct record *record, const struct supervisor *supervisor)
{
	const struct report *report = supervisor->report;
	const struct outcome *outcome = &report->outcome;
	cJSON *line = cJSON_CreateObject(), *counts = record_counts(record);

	cJSON_AddStringToObject(line, "outcome", outcome_name(outcome->kind));
	canonical_add_count(line, "exit_status", outcome_exit_status(outcome));
	cJSON_AddItemToObject(line, "message",
			      canonical_text(outcome->sentence, sizeof(outcome->sentence)));
	add_times(line, report);
	add_use(line, supervisor);
	add_machine(line, report);
	cJSON_AddStringToObject(line, "detail", is_bounded(counts) ? "bounded" : "complete");
	cJSON_AddItemToObject(line, "counts", counts);
	return line;
}

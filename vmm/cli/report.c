/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/report.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/base/text.h"
#include "vmm/base/version.h"

const char *report_reason_name(enum monitor_reason reason)
{
	switch (reason) {
	case MONITOR_REASON_STOPPED:
		return "stopped";
	case MONITOR_REASON_RESET:
		return "guest-reset";
	case MONITOR_REASON_PANIC:
		return "guest-panic";
	case MONITOR_REASON_TRIPLE_FAULT:
		return "triple-fault";
	case MONITOR_REASON_INTERNAL_ERROR:
		return "internal-error";
	case MONITOR_REASON_DEVICE_LOST:
		return "device-lost";
	case MONITOR_REASON_HOST_ERROR:
		return "host-error";
	}
	return "unknown";
}

double report_milliseconds(const struct report *report, enum report_moment from,
			   enum report_moment to)
{
	if (!report->moments[from] || !report->moments[to])
		return -1;
	return (double)(int64_t)(report->moments[to] - report->moments[from]) / 1e6;
}

/* What a run goes through, in that order; and all of it. */
struct phase {
	const char *name;
	enum report_moment from, to;
};

static const struct phase phases[] = {
	{"prepare", MOMENT_BEGIN, MOMENT_RUNNING}, {"boot", MOMENT_RUNNING, MOMENT_HELLO},
	{"session", MOMENT_HELLO, MOMENT_STARTED}, {"command", MOMENT_STARTED, MOMENT_EXITED},
	{"leave", MOMENT_EXITED, MOMENT_END},      {"total", MOMENT_BEGIN, MOMENT_END},
};

static void add_milliseconds(cJSON *object, const struct phase *phase, const struct report *report)
{
	double milliseconds = report_milliseconds(report, phase->from, phase->to);

	if (milliseconds < 0)
		cJSON_AddNullToObject(object, phase->name);
	else
		cJSON_AddNumberToObject(object, phase->name, milliseconds);
}

static void add_counters(cJSON *parent, const char *name, const struct monitor_counters *counters)
{
	cJSON *object = cJSON_AddObjectToObject(parent, name);

	cJSON_AddNumberToObject(object, "exits", (double)counters->exits);
	cJSON_AddNumberToObject(object, "port_io", (double)counters->port_io);
	cJSON_AddNumberToObject(object, "mmio_reads", (double)counters->mmio_reads);
	cJSON_AddNumberToObject(object, "mmio_writes", (double)counters->mmio_writes);
	cJSON_AddNumberToObject(object, "other", (double)counters->other);
	cJSON_AddNumberToObject(object, "frames_dropped", (double)counters->frames_dropped);
	cJSON_AddNumberToObject(object, "bytes_dropped", (double)counters->bytes_dropped);
}

/* JSON is UTF-8, but names of files and words of a guest are any bytes: what is no character
 * becomes U+FFFD. */
static void add_text(cJSON *object, const char *name, const char *text)
{
	char *clean = malloc(3 * strlen(text) + 1), *end = clean;

	if (!clean)
		return;
	while (*text) {
		size_t length = text_character_length(text, strlen(text));

		if (length)
			end = mempcpy(end, text, length);
		else
			end = mempcpy(end, "\xef\xbf\xbd", 3);
		text += length ? length : 1;
	}
	*end = '\0';
	cJSON_AddStringToObject(object, name, clean);
	free(clean);
}

static void add_outcome(cJSON *root, const struct outcome *outcome)
{
	cJSON_AddStringToObject(root, "outcome", outcome_name(outcome->kind));
	cJSON_AddNumberToObject(root, "exit_status", outcome_exit_status(outcome));
	/* Set exactly when the command itself ended by itself: nobody has to guess what 125 means.
	 */
	if (outcome->kind == OUTCOME_EXITED)
		cJSON_AddNumberToObject(root, "command_status", outcome->value);
	else
		cJSON_AddNullToObject(root, "command_status");
	if (outcome->kind == OUTCOME_SIGNALED)
		cJSON_AddNumberToObject(root, "command_signal", outcome->value);
	else
		cJSON_AddNullToObject(root, "command_signal");
	if (outcome->sentence[0])
		add_text(root, "message", outcome->sentence);
	else
		cJSON_AddNullToObject(root, "message");
}

static void add_memory(cJSON *root, const struct report *report)
{
	cJSON *object = cJSON_AddObjectToObject(root, "guest_memory");

	cJSON_AddNumberToObject(object, "warned_percent", report->memory_percent);
	cJSON_AddBoolToObject(object, "ran_out", report->memory_ran_out);
}

/* null without --cgroup. */
static void add_cgroup(cJSON *root, const struct report *report)
{
	cJSON *object;

	if (!report->has_cgroup) {
		cJSON_AddNullToObject(root, "cgroup");
		return;
	}
	object = cJSON_AddObjectToObject(root, "cgroup");
	cJSON_AddNumberToObject(object, "memory_peak_bytes",
				(double)report->cgroup.memory_peak_bytes);
	cJSON_AddNumberToObject(object, "cpu_microseconds", (double)report->cgroup.cpu_us);
	cJSON_AddNumberToObject(object, "killed_for_memory", (double)report->cgroup.kills);
}

static cJSON *report_build(const struct report *report)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *machine, *timings;

	cJSON_AddStringToObject(root, "mvagent", MVAGENT_VERSION);
	add_outcome(root, &report->outcome);

	machine = cJSON_AddObjectToObject(root, "machine");
	if (report->machine_ended) {
		cJSON_AddStringToObject(machine, "end", report_reason_name(report->machine_reason));
		add_text(machine, "text", report->machine_text);
	} else {
		cJSON_AddNullToObject(machine, "end");
		cJSON_AddNullToObject(machine, "text");
	}
	if (report->has_boot_counters)
		add_counters(machine, "until_start", &report->boot_counters);
	add_counters(machine, "total", &report->counters);

	network_report_add_json(&report->network, &report->counters, root);

	add_memory(root, report);
	add_cgroup(root, report);

	timings = cJSON_AddObjectToObject(root, "milliseconds");
	for (size_t i = 0; i < ARRAY_SIZE(phases); i++)
		add_milliseconds(timings, &phases[i], report);
	return root;
}

int report_write_json(const struct report *report, const struct report_file *file)
{
	cJSON *root = report_build(report);
	char *text = cJSON_PrintUnformatted(root);
	char *line = NULL;
	int error = -ENOMEM;

	if (text && asprintf(&line, "%s\n", text) >= 0)
		error = report_file_write(file, line);
	if (error)
		log_errno(error, "--json: cannot write how the run ended");
	free(line);
	free(text);
	cJSON_Delete(root);
	return error;
}

/* Of those that were reached. */
static void log_phases(const struct report *report)
{
	char text[256] = "";
	size_t length = 0;

	for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
		double milliseconds = report_milliseconds(report, phases[i].from, phases[i].to);

		if (milliseconds >= 0)
			length +=
				(size_t)snprintf(text + length, sizeof(text) - length, "%s%s %.1f",
						 length ? ", " : "", phases[i].name, milliseconds);
	}
	log_info("milliseconds: %s", text);
}

void report_log(const struct report *report)
{
	const struct monitor_counters *boot = &report->boot_counters;

	log_phases(report);
	if (report->has_boot_counters)
		log_info("userspace exits until the command's start: %llu (port %llu, mmio reads "
			 "%llu, mmio writes %llu, other %llu)",
			 (unsigned long long)boot->exits, (unsigned long long)boot->port_io,
			 (unsigned long long)boot->mmio_reads,
			 (unsigned long long)boot->mmio_writes, (unsigned long long)boot->other);
	log_info("userspace exits in all: %llu", (unsigned long long)report->counters.exits);
	network_report_log(&report->network, &report->counters);
}

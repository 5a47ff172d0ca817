/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/demo_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/log.h"

/* Most that the agent may print; its own script prints some kilobytes. */
#define OUTPUT_BYTES (1U << 20)
#define MARKER       '\036' /* RS: what the script says of itself */

static void copy_printable(char *target, size_t size, const char *text, size_t length)
{
	size_t used = 0;

	for (size_t i = 0; i < length && used + 1 < size; i++)
		target[used++] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	target[used] = '\0';
}

static void take_output_line(struct demo_reader *reader, const char *text, size_t length)
{
	struct demo_step *step = &reader->step;
	uint8_t shown[ESCAPE_FILTER_OUTPUT(sizeof(reader->line))];
	struct escape_filter filter = {0};

	if (step->line_count == DEMO_SCREEN_LINES) {
		step->more = true;
		return;
	}
	length = escape_filter_run(&filter, (const uint8_t *)text, length, shown);
	copy_printable(step->lines[step->line_count++], sizeof(step->lines[0]), (const char *)shown,
		       length);
}

static void judge(struct demo_reader *reader, int status)
{
	char seen[128];
	enum demo_answer answer =
		demo_attempt_judge(reader->attempt, &reader->watch, status, seen, sizeof(seen));

	reader->answers[reader->attempt - demo_attempts] = answer;
	demo_screen_attempt(&reader->screen, &reader->step, reader->attempt, answer, seen);
}

static void take_end(struct demo_reader *reader, const char *status)
{
	if (reader->attempt)
		judge(reader, atoi(status));
	else
		demo_screen_work(&reader->screen, &reader->step);
	reader->attempt = NULL;
	reader->step = (struct demo_step){0};
}

/* "try ATTEMPT REST" or "lack ATTEMPT REST". */
static void take_attempt(struct demo_reader *reader, bool lacks, char *text)
{
	size_t length = strcspn(text, " ");
	const struct demo_attempt *attempt = demo_attempt_find(text, length);
	char seen[128];

	if (!attempt)
		return;
	text += length + (text[length] == ' ');
	reader->step = (struct demo_step){0};
	copy_printable(reader->step.command, sizeof(reader->step.command), text, strlen(text));
	if (!lacks) {
		reader->attempt = attempt;
		return;
	}
	snprintf(seen, sizeof(seen), "%.40s is not installed", reader->step.command);
	reader->step.command[0] = '\0';
	demo_screen_attempt(&reader->screen, &reader->step, attempt, DEMO_NOT_TRIED, seen);
}

static void take_line(struct demo_reader *reader)
{
	char *text = reader->line + 1;

	reader->line[reader->line_length] = '\0';
	if (reader->line[0] != MARKER) {
		take_output_line(reader, reader->line, reader->line_length);
	} else if (strncmp(text, "work ", 5) == 0) {
		reader->step = (struct demo_step){0};
		copy_printable(reader->step.command, sizeof(reader->step.command), text + 5,
			       strlen(text + 5));
	} else if (strncmp(text, "try ", 4) == 0) {
		take_attempt(reader, false, text + 4);
	} else if (strncmp(text, "lack ", 5) == 0) {
		take_attempt(reader, true, text + 5);
	} else if (strncmp(text, "end ", 4) == 0) {
		take_end(reader, text + 4);
	}
	reader->line_length = 0;
}

int demo_reader_take(void *context, char *bytes, size_t length)
{
	struct demo_reader *reader = context;

	reader->printed += length;
	if (reader->printed > OUTPUT_BYTES)
		return log_errno(-EMSGSIZE, "the agent printed too much");
	demo_watch_take(&reader->watch, bytes, length);
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] == '\n')
			take_line(reader);
		else if (reader->line_length < sizeof(reader->line) - 1)
			reader->line[reader->line_length++] = bytes[i];
	}
	return 0;
}

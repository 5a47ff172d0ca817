/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/record_summary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"
#include "vmm/base/text.h"
#include "vmm/cli/record_show.h"
#include "vmm/record/canonical.h"
#include "vmm/record/store.h"

/* "2026-11-30T02:55:01Z" */
#define TIME_BYTES 21

/* Room for the line of the end and the signature. */
#define TAIL_BYTES 65536U

static const char *text(const cJSON *object, const char *name)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(value) ? value->valuestring : "";
}

/* The part of a file from @offset on, of at most @size bytes; allocated. */
static char *read_part(int fd, off_t offset, size_t size, size_t *length)
{
	char *part = malloc(size + 1);
	ssize_t got = part ? pread(fd, part, size, offset) : -1;

	if (got < 0) {
		free(part);
		return NULL;
	}
	part[got] = '\0';
	*length = (size_t)got;
	return part;
}

static cJSON *read_first(int fd, size_t size)
{
	size_t length;
	char *part = read_part(fd, 0, size, &length);
	char *newline = part ? memchr(part, '\n', length) : NULL;
	cJSON *line = newline ? cJSON_ParseWithLength(part, (size_t)(newline - part)) : NULL;

	free(part);
	return line;
}

/* The last line of event "end" in the tail. */
static cJSON *read_end(int fd, off_t size)
{
	off_t offset = size > (off_t)TAIL_BYTES ? size - (off_t)TAIL_BYTES : 0;
	size_t length;
	char *part = read_part(fd, offset, TAIL_BYTES, &length), *rest = part, *word;
	cJSON *end = NULL;

	while (rest && (word = strsep(&rest, "\n")) && rest) {
		cJSON *line = *word == '{' ? cJSON_Parse(word) : NULL;

		if (strcmp(text(line, "event"), "end") == 0) {
			cJSON_Delete(end);
			end = line;
		} else {
			cJSON_Delete(line);
		}
	}
	free(part);
	return end;
}

int record_summary_read(struct record_summary *summary, int store_fd, const char *run)
{
	char name[RECORD_NAME_BYTES];
	FD_CLEANUP int fd = -1;
	struct stat status;

	*summary = (struct record_summary){0};
	snprintf(name, sizeof(name), "%s" RECORD_SUFFIX, run);
	fd = openat(store_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status))
		return -errno;
	summary->running = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	if (!S_ISREG(status.st_mode))
		return -EPROTO;
	summary->start = read_first(fd, LIMIT_RECORD_LINE_BYTES + 1);
	summary->end = read_end(fd, status.st_size);
	record_show_make_harmless(summary->start);
	record_show_make_harmless(summary->end);
	return strcmp(text(summary->start, "event"), "start") == 0 ? 0 : -EPROTO;
}

void record_summary_destroy(struct record_summary *summary)
{
	cJSON_Delete(summary->start);
	cJSON_Delete(summary->end);
	*summary = (struct record_summary){0};
}

static void write_time(const cJSON *line, char result[TIME_BYTES])
{
	snprintf(result, TIME_BYTES, "%.19sZ", text(line, "time"));
	text_make_printable(result, strlen(result));
}

static const cJSON *shares(const struct record_summary *summary)
{
	return cJSON_GetObjectItemCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(summary->start, "policy"), "shares");
}

static int exit_status(const struct record_summary *summary)
{
	const cJSON *value = cJSON_GetObjectItemCaseSensitive(summary->end, "exit_status");

	return cJSON_IsNumber(value) ? value->valueint : -1;
}

void record_summary_print(const struct record_summary *summary, const char *run)
{
	char *command =
		record_show_words(cJSON_GetObjectItemCaseSensitive(summary->start, "command"));
	char started[TIME_BYTES], state[48] = "cut";
	const cJSON *share;

	write_time(summary->start, started);
	if (summary->end)
		snprintf(state, sizeof(state), "%.24s, status %d", text(summary->end, "outcome"),
			 exit_status(summary));
	else if (summary->running)
		snprintf(state, sizeof(state), "running");
	text_make_printable(state, strlen(state));
	printf("%s  %s  %-20s", run, started, state);
	cJSON_ArrayForEach(share, shares(summary))
	{
		printf("  %s", text(share, "host"));
	}
	printf("  -- %s\n", command ? command : "?");
	free(command);
}

cJSON *record_summary_json(const struct record_summary *summary, const char *run)
{
	const cJSON *command = cJSON_GetObjectItemCaseSensitive(summary->start, "command");
	const cJSON *share, *word;
	cJSON *object = cJSON_CreateObject(), *list;
	char time[TIME_BYTES];

	cJSON_AddStringToObject(object, "run", run);
	write_time(summary->start, time);
	cJSON_AddStringToObject(object, "started", time);
	if (summary->end) {
		write_time(summary->end, time);
		cJSON_AddStringToObject(object, "ended", time);
		cJSON_AddNumberToObject(object, "exit", exit_status(summary));
	} else {
		cJSON_AddNullToObject(object, "ended");
		cJSON_AddNullToObject(object, "exit");
	}
	cJSON_AddStringToObject(object, "state",
				summary->end       ? "ended"
				: summary->running ? "running"
						   : "cut");
	cJSON_AddNullToObject(object, "changes");
	list = cJSON_AddArrayToObject(object, "shares");
	cJSON_ArrayForEach(share, shares(summary))
	{
		cJSON_AddItemToArray(list, cJSON_CreateString(text(share, "host")));
	}
	list = cJSON_AddArrayToObject(object, "command");
	cJSON_ArrayForEach(word, command)
	{
		const char *value = cJSON_GetStringValue(word);

		cJSON_AddItemToArray(list, cJSON_CreateString(value ? value : ""));
	}
	return object;
}

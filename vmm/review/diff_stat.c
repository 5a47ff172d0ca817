/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/review/content.h"
#include "vmm/review/diff.h"
#include "vmm/review/diff_process.h"

#define STAT_COLUMNS    80U
#define STAT_NAME_WIDTH 50U /* the most that names take of it */

struct stat_line {
	char *name;
	bool binary;
	uint64_t before, after; /* sizes of binary content */
	uint64_t added, deleted;
};

/* Counts lines in hunks that come in pieces. */
struct line_counter {
	struct stat_line *line;
	bool inside; /* a line whose first byte was seen */
};

static void count_lines(void *context, const char *text, size_t length)
{
	struct line_counter *counter = context;

	for (size_t i = 0; i < length; i++) {
		if (!counter->inside) {
			counter->line->added += text[i] == '+';
			counter->line->deleted += text[i] == '-';
		}
		counter->inside = text[i] != '\n';
	}
}

static int stat_fill(struct stat_line *line, const struct review_share *share,
		     const struct review_change *change)
{
	struct line_counter counter = {.line = line};
	struct content_pair pair;
	int error = 0;

	line->name = output_quote("", change->path);
	if (!line->name)
		return -ENOMEM;
	if (change->kind == REVIEW_MODE || change->problem == REVIEW_HIDDEN ||
	    change->problem >= REVIEW_DEVICE)
		return 0;
	error = content_open_pair(&pair, share, change);
	line->binary = pair.before.binary || pair.after.binary;
	line->before = pair.before.size;
	line->after = pair.after.size;
	if (!error && !line->binary && (pair.before.fd >= 0 || pair.after.fd >= 0))
		error = diff_process_run(pair.before.fd, pair.after.fd, count_lines, &counter);
	content_close_pair(&pair);
	return error == -EACCES ? 0 : error;
}

static void print_repeated(struct review_output *output, char c, uint64_t count)
{
	while (count--)
		output_print(output, "%c", c);
}

/* The part of @width that @count has of @largest; at least one if there is any. */
static uint64_t scale(uint64_t count, uint64_t largest, uint64_t width)
{
	if (largest <= width)
		return count;
	return count ? 1 + count * (width - 1) / largest : 0;
}

static void print_line(struct review_output *output, const struct stat_line *line, int name_width,
		       uint64_t largest)
{
	uint64_t width = STAT_COLUMNS - (uint64_t)name_width - 12;
	size_t length = strlen(line->name);
	bool cut = length > (size_t)name_width;

	/* A long name shows its end. */
	output_print(output, " %s%-*s | ", cut ? "..." : "", cut ? 0 : name_width,
		     cut ? line->name + length - (size_t)name_width + 3 : line->name);
	if (line->binary) {
		output_print(output, "Bin %" PRIu64 " -> %" PRIu64 " bytes\n", line->before,
			     line->after);
		return;
	}
	output_print(output, "%5" PRIu64 " ", line->added + line->deleted);
	print_repeated(output, '+', scale(line->added, largest, width));
	print_repeated(output, '-', scale(line->deleted, largest, width));
	output_print(output, "\n");
}

static void print_sum(struct review_output *output, size_t count, uint64_t added, uint64_t deleted)
{
	output_print(output, " %zu file%s changed", count, count == 1 ? "" : "s");
	if (added)
		output_print(output, ", %" PRIu64 " insertion%s(+)", added, added == 1 ? "" : "s");
	if (deleted)
		output_print(output, ", %" PRIu64 " deletion%s(-)", deleted,
			     deleted == 1 ? "" : "s");
	output_print(output, "\n");
}

static void print_lines(struct review_output *output, const struct stat_line *lines, size_t count)
{
	uint64_t largest = 0, added = 0, deleted = 0;
	size_t name_width = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t changed = lines[i].added + lines[i].deleted;
		size_t length = strlen(lines[i].name);

		added += lines[i].added;
		deleted += lines[i].deleted;
		largest = changed > largest ? changed : largest;
		name_width = length > name_width ? length : name_width;
	}
	name_width = bytes_minimum(name_width, STAT_NAME_WIDTH);
	for (size_t i = 0; i < count; i++)
		print_line(output, &lines[i], (int)name_width, largest);
	if (count)
		print_sum(output, count, added, deleted);
}

int review_diff_print_stat(struct review_output *output, const struct review_share *share,
			   const struct review_changes *changes)
{
	struct stat_line *lines = calloc(changes->count + 1, sizeof(*lines));
	int error = lines ? 0 : -ENOMEM;

	for (size_t i = 0; !error && i < changes->count; i++) {
		error = stat_fill(&lines[i], share, &changes->list[i]);
		if (error)
			log_errno(error, "cannot count what changed in '%s'",
				  changes->list[i].path);
	}
	if (!error)
		print_lines(output, lines, changes->count);
	for (size_t i = 0; lines && i < changes->count; i++)
		free(lines[i].name);
	free(lines);
	return error;
}

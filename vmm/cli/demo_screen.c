/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/demo_screen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "vmm/base/bytes.h"

#define LEAST_COLUMNS 80U
#define MOST_COLUMNS  132U
#define DIVIDER       " | "
#define DIVIDER_WIDTH 3U
/* Lines of either side of one row. */
#define SIDE_LINES 24U

static const struct {
	const char *word, *colour;
} answers[] = {
	[DEMO_NOT_TRIED] = {"NOT TRIED", "\033[33m"},
	[DEMO_STOPPED] = {"STOPPED", "\033[32m"},
	[DEMO_LATER] = {"COUNTED", "\033[32m"},
	[DEMO_THROUGH] = {"GOT THROUGH", "\033[1;31m"},
};

/* One side of a row: lines that are no longer than its width. */
struct side {
	unsigned int width, count;
	const char *colours[SIDE_LINES];
	char lines[SIDE_LINES][MOST_COLUMNS + 1];
};

void demo_screen_init(struct demo_screen *screen, FILE *file)
{
	struct winsize size;
	const bool terminal = isatty(fileno(file));

	*screen = (struct demo_screen){.file = file, .colour = terminal && !getenv("NO_COLOR")};
	if (!terminal)
		return;
	screen->columns = ioctl(fileno(file), TIOCGWINSZ, &size) == 0 ? size.ws_col : LEAST_COLUMNS;
	if (screen->columns < LEAST_COLUMNS)
		screen->columns = 0;
	else if (screen->columns > MOST_COLUMNS)
		screen->columns = MOST_COLUMNS;
}

/* How much of @text goes on a line of @width: up to a blank, if there is one far enough along. */
static size_t line_length(const char *text, unsigned int width)
{
	size_t length = strlen(text), at;

	if (length <= width)
		return length;
	for (at = width; at > width / 2; at--) {
		if (text[at] == ' ')
			return at;
	}
	return width;
}

/* Adds @text, wrapped; lines after the first are set in by as much as @indent has. */
static void side_add(struct side *side, const char *colour, const char *indent, const char *text)
{
	unsigned int inset = (unsigned int)strlen(indent);
	bool first = true;

	while ((*text || first) && side->count < SIDE_LINES) {
		size_t length = line_length(text, side->width - inset);

		snprintf(side->lines[side->count], sizeof(side->lines[0]), "%*s%.*s", (int)inset,
			 first ? indent : "", (int)length, text);
		side->colours[side->count++] = colour;
		text += length;
		text += *text == ' ';
		first = false;
	}
}

static void side_add_step(struct side *side, const struct demo_step *step)
{
	if (*step->command)
		side_add(side, "\033[1m", "$ ", step->command);
	for (unsigned int i = 0; i < step->line_count; i++)
		side_add(side, "", "  ", step->lines[i]);
	if (step->more)
		side_add(side, "", "  ", "...");
}

static void print_line(const struct demo_screen *screen, const struct side *side,
		       unsigned int index, bool padded)
{
	const char *text = index < side->count ? side->lines[index] : "";
	const bool colour = screen->colour && index < side->count && *side->colours[index];

	fprintf(screen->file, "%s%s%s%*s", colour ? side->colours[index] : "", text,
		colour ? "\033[0m" : "", padded ? (int)(side->width - strlen(text)) : 0, "");
}

static void print_sides(const struct demo_screen *screen, const struct side *left,
			const struct side *right)
{
	for (unsigned int i = 0; i < left->count || i < right->count; i++) {
		print_line(screen, left, i, true);
		fputs(DIVIDER, screen->file);
		print_line(screen, right, i, false);
		putc('\n', screen->file);
	}
	fprintf(screen->file, "%*s" DIVIDER "\n", (int)left->width, "");
}

static void split(const struct demo_screen *screen, struct side *left, struct side *right)
{
	left->count = right->count = 0;
	left->width = (screen->columns - DIVIDER_WIDTH) / 2;
	right->width = screen->columns - DIVIDER_WIDTH - left->width;
}

void demo_screen_title(const struct demo_screen *screen, const char *text)
{
	fprintf(screen->file, "\n%s%s%s\n", screen->colour ? "\033[1m" : "", text,
		screen->colour ? "\033[0m" : "");
	fflush(screen->file);
}

static void print_step(const struct demo_screen *screen, const struct demo_step *step)
{
	if (*step->command)
		fprintf(screen->file, "  $ %s\n", step->command);
	for (unsigned int i = 0; i < step->line_count; i++)
		fprintf(screen->file, "    %s\n", step->lines[i]);
	if (step->more)
		fputs("    ...\n", screen->file);
}

void demo_screen_work(const struct demo_screen *screen, const struct demo_step *step)
{
	struct side left, right;

	if (screen->columns) {
		split(screen, &left, &right);
		side_add_step(&left, step);
		print_sides(screen, &left, &right);
	} else {
		print_step(screen, step);
	}
	fflush(screen->file);
}

void demo_screen_attempt(const struct demo_screen *screen, const struct demo_step *step,
			 const struct demo_attempt *attempt, enum demo_answer answer,
			 const char *seen)
{
	const char *word = answers[answer].word;
	struct side left, right;
	char text[256];

	if (screen->columns) {
		split(screen, &left, &right);
		side_add(&left, "\033[35m", "", attempt->title);
		side_add_step(&left, step);
		snprintf(text, sizeof(text), "%s: %s", word, seen);
		side_add(&right, answers[answer].colour, "", text);
		side_add(&right, "", "", attempt->mechanism);
		print_sides(screen, &left, &right);
	} else {
		fprintf(screen->file, "%s\n", attempt->title);
		print_step(screen, step);
		fprintf(screen->file, "  %s: %s\n    by: %s\n", word, seen, attempt->mechanism);
	}
	fflush(screen->file);
}

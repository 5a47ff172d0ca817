/* SPDX-License-Identifier: Apache-2.0 */
/* What `mvagent demo` shows: on a terminal the agent on the left and what stops it on the right,
 * elsewhere line after line. */
#ifndef MVAGENT_CLI_DEMO_SCREEN_H
#define MVAGENT_CLI_DEMO_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "vmm/cli/demo_attempts.h"

/* The lines of a command's output that are shown, and what is kept of each. */
#define DEMO_SCREEN_LINES 3U
#define DEMO_SCREEN_CHARS 160U

struct demo_screen {
	FILE *file;
	bool colour;
	unsigned int columns; /* 0: line after line */
};

/* What one command of the agent's was, and what it printed. */
struct demo_step {
	char command[4 * DEMO_SCREEN_CHARS];
	unsigned int line_count; /* shown, of lines */
	bool more;               /* than fit */
	char lines[DEMO_SCREEN_LINES][DEMO_SCREEN_CHARS + 1];
};

/* @file: standard output. */
void demo_screen_init(struct demo_screen *screen, FILE *file);

void demo_screen_title(const struct demo_screen *screen, const char *text);

/* One of honest work. */
void demo_screen_work(const struct demo_screen *screen, const struct demo_step *step);

/* One attempt; @seen is what was seen outside. */
void demo_screen_attempt(const struct demo_screen *screen, const struct demo_step *step,
			 const struct demo_attempt *attempt, enum demo_answer answer,
			 const char *seen);

#endif

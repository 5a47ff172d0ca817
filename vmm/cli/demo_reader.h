/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent of `mvagent demo` prints, taken apart: its script marks lines of its own, which
 * say what it is about to try and how that ended; each attempt is judged and shown as it ends.
 */
#ifndef MVAGENT_CLI_DEMO_READER_H
#define MVAGENT_CLI_DEMO_READER_H

#include <stddef.h>

#include "vmm/cli/demo_attempts.h"
#include "vmm/cli/demo_screen.h"

struct demo_reader {
	struct demo_screen screen;
	struct demo_watch watch;
	enum demo_answer *answers; /* of each attempt; demo_attempt_count of them */

	size_t printed; /* bytes by the agent */
	size_t line_length;
	char line[4096];
	struct demo_step step;
	const struct demo_attempt *attempt; /* under way; NULL: honest work, or none */
};

/* Takes in what it has printed next; @context is the reader. 0, or -EMSGSIZE with the sentence
 * printed. */
int demo_reader_take(void *context, char *bytes, size_t length);

#endif

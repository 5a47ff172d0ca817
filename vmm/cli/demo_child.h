/* SPDX-License-Identifier: Apache-2.0 */
/* Runs another command of mvagent as a user would, and ends it with us. */
#ifndef MVAGENT_CLI_DEMO_CHILD_H
#define MVAGENT_CLI_DEMO_CHILD_H

#include <stddef.h>
#include <sys/types.h>

/* Words of a command line; what they point to stays the caller's. */
#define DEMO_CHILD_WORDS 128U

struct demo_child {
	unsigned int word_count;
	const char *words[DEMO_CHILD_WORDS + 1];
};

/* Adds a word. Past DEMO_CHILD_WORDS it is left out, and demo_child_run fails. */
void demo_child_add(struct demo_child *child, const char *word);

/* What is called with each piece of its standard output; below 0 ends it. */
typedef int (*demo_child_output)(void *context, char *bytes, size_t length);

/*
 * Runs @program in the directory @directory. With @output, its standard output is for that;
 * without, it is ours. SIGINT, SIGTERM and SIGHUP must be blocked, and are passed on. Its exit
 * status, 128 and more for a signal, or -errno with the sentence printed.
 */
int demo_child_run(const struct demo_child *child, const char *program, const char *directory,
		   demo_child_output output, void *context);

#endif

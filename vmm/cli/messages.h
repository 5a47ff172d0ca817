/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of a run say on standard error, on its way to the user's. They have a pipe
 * instead of the user's descriptor, which may be a terminal: what a process says when the guest
 * owns it must not act on that, pretend to come from another program, or go on for ever.
 */
#ifndef MVAGENT_CLI_MESSAGES_H
#define MVAGENT_CLI_MESSAGES_H

#include <stddef.h>

#define MESSAGES_LINE_BYTES 1024U /* what is longer is passed on in pieces */

struct messages {
	int fd;           /* the pipe's reading end, non-blocking; -1: none */
	const char *name; /* of the process; each line begins with it */
	size_t length;    /* of a line that is not complete */
	size_t passed;    /* bytes so far, of at most LIMIT_MESSAGES_BYTES */
	char line[MESSAGES_LINE_BYTES + 2];
	char last[MESSAGES_LINE_BYTES + 1]; /* line that was passed on, without the name */
};

/* Makes the pipe; *@writing_fd is for the process, and non-blocking: it drops what nobody reads
 * rather than wait. @name is the caller's. 0 or -errno. */
int messages_open(struct messages *messages, const char *name, int *writing_fd);

/* Passes on the lines that have come, harmless to a terminal, without waiting for more. At the end
 * of the pipe it is closed. */
void messages_pass(struct messages *messages);

/* The same for what is left of a process that has ended, and closes the pipe. */
void messages_finish(struct messages *messages);

#endif

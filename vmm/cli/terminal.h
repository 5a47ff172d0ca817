/* SPDX-License-Identifier: Apache-2.0 */
/* The user's terminal while a command in the guest has it. */
#ifndef MVAGENT_CLI_TERMINAL_H
#define MVAGENT_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

struct terminal {
	bool active;          /* raw now */
	struct termios saved; /* what it was */
	pid_t guard;          /* restores it should we die */
	int guard_fd;         /* closed when we leave, in whatever way */
};

/* Whether standard input and standard output are both terminals. */
bool terminal_present(void);

/* Its size; 24 by 80 when it does not know. */
void terminal_size(uint32_t *rows, uint32_t *columns);

/* Makes the terminal pass every key on. A small process stays behind that puts it back when this
 * one dies without terminal_leave, SIGKILL included. 0 or -errno with the sentence printed. */
int terminal_enter(struct terminal *terminal);
void terminal_leave(struct terminal *terminal);

#endif

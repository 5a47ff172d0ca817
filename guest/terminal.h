/* SPDX-License-Identifier: Apache-2.0 */
/* The command's pseudo terminal. */
#ifndef GUEST_TERMINAL_H
#define GUEST_TERMINAL_H

#include <stdint.h>
#include <sys/types.h>

/* Both ends. The end of the command is kept open, so that the other never sees a hangup while
 * processes of the session may still open the terminal. -1 and -1 when there is none. */
struct terminal {
	int master; /* non-blocking */
	int slave;
};

/* Makes a terminal of that size that belongs to @uid. 0 or -errno. */
int terminal_open(struct terminal *terminal, unsigned int rows, unsigned int columns, uid_t uid);
void terminal_close(struct terminal *terminal);

/* Changes the size; the kernel tells the foreground process group. */
void terminal_resize(const struct terminal *terminal, unsigned int rows, unsigned int columns);

/* The foreground process group, or a value below 2 when there is none. */
pid_t terminal_foreground(const struct terminal *terminal);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the command as its user. */
#ifndef GUEST_COMMAND_H
#define GUEST_COMMAND_H

#include <sys/types.h>

#include "guest/message.h"

/* Starts the command as the leader of a new session, with @streams (all above 2) as its standard
 * input, output and error, which the caller closes; with a terminal, the first is its controlling
 * terminal. Returns its process ID once its execve(2) succeeded, or -errno with @failure filled in.
 */
pid_t command_start(const struct session_start *start, const int streams[3],
		    struct failure *failure);

#endif

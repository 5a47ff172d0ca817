/* SPDX-License-Identifier: Apache-2.0 */
/* One command from its start to the end of its last process. */
#ifndef GUEST_SESSION_H
#define GUEST_SESSION_H

#include "guest/message.h"
#include "guest/shares.h"

/*
 * Runs the command of @start and tells the host, on the blocking socket @control, that it STARTED
 * and EXITED. @streams are sockets to the host for its input, output and errors (-1 when there is a
 * terminal), which are taken over. When the command has ended every other process of this PID
 * namespace is killed: the caller must be its process 1 and have all signals blocked.
 *
 * Returns 0 when the host was told how the command ended, -errno with @failure filled in when the
 * command could not be started, and -errno with @failure untouched when the host is gone.
 */
int session_run(int control, int streams[3], const struct session_start *start,
		const struct shares *shares, struct failure *failure);

#endif

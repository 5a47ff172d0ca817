/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/jail/filter.h"

#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define NUMBER 0xffffffffULL /* of a family or a request: the kernel looks at 32 bits */

const struct filter_rule filter_relay[] = {
	/* Servers that are allowed, and those that know their addresses. */
	FILTER_CALL_IF(socket, 0, NUMBER, AF_INET),
	FILTER_CALL_IF(socket, 0, NUMBER, AF_INET6),
	FILTER_CALL(connect),
	FILTER_CALL(getsockname), /* c-ares */
	FILTER_CALL_IF(ioctl, 1, NUMBER, FIONBIO),
	FILTER_CALL(gettimeofday), /* where the clock cannot be read without the kernel */

	FILTER_CALL_IF(socketpair, 0, NUMBER, AF_UNIX), /* a stream for mvagent-vmm */
	FILTER_CALL(accept4),                           /* ports that are published */
	FILTER_CALL(shutdown),                          /* one direction of a connection */
	FILTER_END,
};

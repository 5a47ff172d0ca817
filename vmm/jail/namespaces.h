/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes in namespaces of their own: no process of the host is there to be signalled or traced,
 * no network but an unused loopback, no System V objects, no host name. Works without privileges
 * where the host lets users make user namespaces. The file system is the next stage (mounts.h).
 */
#ifndef MVAGENT_JAIL_NAMESPACES_H
#define MVAGENT_JAIL_NAMESPACES_H

#include <stdbool.h>
#include <sys/types.h>

/* fork(), with the child in new namespaces where that can be had (*@apart, in the parent). It is
 * process 1 there: signals that it has no handler for do not reach it, but for SIGKILL from
 * outside. The user and group of both stay what they were; others look like the overflow ids in
 * the child, unless root calls this. 0 in the child, the child's number, or -errno. */
pid_t namespaces_fork(bool *apart);

/* The same, but that the child keeps the host's network: for the one process that uses it. */
pid_t namespaces_fork_with_network(bool *apart);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of a process that serves a host's directories (vmm/jail/jail.h). */
#ifndef MVAGENT_ROOT_HOST_CONFINE_H
#define MVAGENT_ROOT_HOST_CONFINE_H

#include "vmm/root/host_plan.h"

/* Confines the process, for good: it has the plan's directories, to be read, and, where the kernel
 * has Landlock, of a directory that enters in part only that part; started by root it is nobody
 * then. The descriptors stay what they are. Without a plan nothing can be opened any more.
 * *@walls, unless it is NULL: see jail.h. 0 or -errno with the sentence printed. */
int host_confine(const struct host_plan *plan, bool allow_degraded, uint8_t *walls);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confines this process to directories that it has open (Landlock, Linux 5.13): whatever makes it
 * open or change anything elsewhere fails with EACCES, for good and for its children too; where the
 * kernel knows how, it cannot use TCP (Linux 6.7), nor signal others or reach abstract sockets
 * (Linux 6.12). Works without privileges and without namespaces.
 */
#ifndef MVAGENT_JAIL_LANDLOCK_H
#define MVAGENT_JAIL_LANDLOCK_H

#include "vmm/jail/jail.h"

/* Everything below these directories can be used, and nothing else; with @network connections can
 * be made by TCP, and still nothing can be bound. no_new_privs is set. 0, -EOPNOTSUPP (the kernel
 * has no Landlock, or it is switched off) or -errno. */
int landlock_confine(const struct jail_directory *directories, unsigned int count, bool network);

/* The same for single files, and for directories in parts. */
int landlock_confine_to_places(const int *places, unsigned int count);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mount namespace with nothing in it: an empty read-only root, this process's own /proc where it
 * is needed, and each directory it has to do with as a mount that hangs nowhere, so that there is
 * no way from one to another or to anything else. It needs CAP_SYS_ADMIN, which namespaces_fork
 * gives to a user's process.
 */
#ifndef MVAGENT_JAIL_MOUNTS_H
#define MVAGENT_JAIL_MOUNTS_H

#include "vmm/jail/jail.h"

/* The descriptors of @directories are replaced; the numbers stay. The working directory is the
 * empty root then. 0, -EOPNOTSUPP (the host does not allow it, or a directory cannot be found by
 * its path; nothing has changed), or -errno with the sentence printed. */
int mounts_enter(const struct jail_directory *directories, unsigned int count, bool proc);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confines this process to directories that it has open (Landlock, Linux 5.13): whatever makes it
 * open or change anything elsewhere fails with EACCES, for good and for its children too. Works
 * without privileges and without namespaces.
 */
#ifndef MVAGENT_JAIL_LANDLOCK_H
#define MVAGENT_JAIL_LANDLOCK_H

#include <stdbool.h>

struct landlock_directory {
	int fd; /* a directory, O_PATH is enough; -1: left out */
	bool writable;
	bool whiteouts; /* character devices may be made: 0:0 needs no privilege, others do */
};

/* Everything below these directories can be used, and nothing else. Sets no_new_privs. 0,
 * -EOPNOTSUPP (the kernel has no Landlock, or it is switched off) or -errno. */
int landlock_confine(const struct landlock_directory *directories, unsigned int count);

#endif

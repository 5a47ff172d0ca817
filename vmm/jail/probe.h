/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers of the jail this host allows, found by entering them in a process of its own. */
#ifndef MVAGENT_JAIL_PROBE_H
#define MVAGENT_JAIL_PROBE_H

#include <stdbool.h>

struct jail_probe {
	bool namespaces;
	bool mounts;
	int landlock; /* version of its interface, 0: none. 4: with TCP, 6: with signals */
	bool filter;
};

/* 0 or -errno. */
int jail_probe(struct jail_probe *probe);

#endif

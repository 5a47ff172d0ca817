/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a process of a run is confined, as if the guest already owned it. The stages, in the order in
 * which they are entered:
 *
 *   1. its parent: no descriptors but those declared, a pipe for its messages instead of the user's
 *      standard error, a session without a terminal, no environment, process, network, IPC, host
 *      name and control group namespaces of its own (namespaces.h, vmm/cli/process.c)
 *   2. no new privileges, no core files, no tracing by others
 *   3. an empty mount namespace, with the declared directories only (mounts.h)
 *   4. no capabilities but those declared (capabilities.h); started by root, no user but nobody,
 *      or the one whose files it changes
 *   5. Landlock: files below the declared directories only, no TCP, no signal to others
 *      (landlock.h)
 *   6. once it is ready to serve: no system call but those of its role (filter.h)
 *
 * The third or the fifth may be missing, because a host may forbid either to users; each alone
 * keeps the process from the host's files. Without both the run does not start.
 */
#ifndef MVAGENT_JAIL_JAIL_H
#define MVAGENT_JAIL_JAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct jail_directory {
	int fd; /* a directory, O_PATH is enough; -1: left out */
	bool writable;
	bool whiteouts; /* character devices may be made: 0:0 needs no privilege, others do */
};

/* What jail_enter has put up. */
enum jail_wall {
	JAIL_MOUNTS = 1,
	JAIL_LANDLOCK = 2,
};

struct jail {
	const struct jail_directory *directories; /* all that can be opened */
	unsigned int directory_count;
	/* Unless this is NULL: descriptors (O_PATH is enough) of the files and directories below
	 * these that Landlock lets be read; nothing else. */
	const int *places;
	unsigned int place_count;
	uint64_t capabilities; /* that are kept where there are any: capabilities.h */
	bool proc;             /* it opens its own files by /proc/self/fd */
	bool network;          /* it connects by TCP, and was started with the host's network */
	bool keep_user;        /* it changes files of the user who started it, also of root */
	/* And if root did: the user whose files they are, that it becomes; 0: it stays root. */
	uid_t owner;
	gid_t owner_group;
	bool allow_degraded; /* go on without a wall that cannot be put up */
	uint8_t *walls;      /* unless NULL: gets the walls that were */
};

/* Enters stages 2 to 5, for good; this process has one thread. 0 or -errno, with the sentence
 * printed. */
int jail_enter(const struct jail *jail);

struct filter_rule;

/* Enters stage 6, for good, in all threads: from here on guests are heard. 0 or -errno, with the
 * sentence printed. */
int jail_seal(const struct filter_rule *role, bool allow_degraded);

/* The supervisor's own: it is the user's, and stays it, but reaches no network once the processes
 * of the run are there. 0 or -errno, with the sentence printed. */
int jail_deny_network(bool allow_degraded);

#endif

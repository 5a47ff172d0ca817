/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of mvagent-fs. */
#ifndef MVAGENT_FS_OPTIONS_H
#define MVAGENT_FS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/fs/coherence.h"

struct policy;

struct fs_options {
	int socket_fd;           /* --fd, or -1 */
	const char *socket_path; /* --socket, or NULL */
	int root_fd;             /* --root-fd, or --root opened; the caller's to close */
	int upper_fd;            /* --upper-fd, or --upper opened, or -1; the caller's */
	int base_fd;             /* --base-fd, or -1; the caller's */
	bool read_only;
	uint32_t guest_uid;
	uint32_t guest_gid;
	struct policy *policy; /* the server takes it over */
	bool no_default_rules;
	enum fs_cache cache;
	int record_fd; /* or -1; the same */
	int notify_fd; /* or -1; the server takes it over */
	bool quiet;
	bool no_io_uring;
	bool allow_degraded; /* go on without walls: vmm/jail/jail.h */
	bool verbose;
};

/* Parses the command line. Returns 1 to go on, 0 when all is done (--help, --version), or -EINVAL
 * or -errno with the sentence printed. */
int fs_options_parse(struct fs_options *options, int argc, char **argv);

#endif

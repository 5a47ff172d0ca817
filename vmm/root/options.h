/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of mvagent-blk. */
#ifndef MVAGENT_ROOT_OPTIONS_H
#define MVAGENT_ROOT_OPTIONS_H

#include <stdbool.h>

struct blk_options {
	int socket_fd; /* -1: listen at socket_path */
	const char *socket_path;
	int image_fd;
	bool no_io_uring;
	bool allow_degraded; /* go on without walls: vmm/jail/jail.h */
	bool verbose;
};

/* Fills @options; the descriptors in it become the caller's. 1: serve, 0: all is done (--help), or
 * -errno, with the sentence printed. */
int blk_options_parse(struct blk_options *options, int argc, char **argv);

#endif

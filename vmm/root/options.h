/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of mvagent-blk. */
#ifndef MVAGENT_ROOT_OPTIONS_H
#define MVAGENT_ROOT_OPTIONS_H

#include <stdbool.h>

#include "vmm/base/limits.h"
#include "vmm/base/sha256.h"

struct blk_options {
	int socket_fd; /* -1: listen at socket_path */
	const char *socket_path;
	int image_fd;     /* -1: the host's directories */
	bool is_verified; /* by verity_root, image_bytes being those that the guest sees */
	uint8_t verity_root[SHA256_BYTES];
	uint64_t image_bytes;
	const char *host; /* the root directory that those are in; NULL: an image is served */
	unsigned int add_count;
	const char *adds[LIMIT_ROOT_ADDS];
	unsigned int hide_count;
	const char *hides[LIMIT_ROOT_HIDES];
	int cache_fd;  /* a directory for images of the host; -1: none */
	int ready_fd;  /* to say when the device can be served: vmm/wire/ready.h; -1: none */
	bool progress; /* write the number of names that were met there, now and then, before that
			*/
	bool no_io_uring;
	bool allow_degraded; /* go on without walls: vmm/jail/jail.h */
	bool verbose;
};

/* Fills @options; the descriptors in it become the caller's. 1: serve, 0: all is done (--help), or
 * -errno, with the sentence printed. */
int blk_options_parse(struct blk_options *options, int argc, char **argv);

#endif

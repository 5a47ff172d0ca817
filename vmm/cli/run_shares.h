/* SPDX-License-Identifier: Apache-2.0 */
/* The directories that a run shares: found, opened and put in order before anything starts. */
#ifndef MVAGENT_CLI_RUN_SHARES_H
#define MVAGENT_CLI_RUN_SHARES_H

#include <stdbool.h>

#include "vmm/cli/run_options.h"

struct shared_directory {
	char tag[16]; /* of its virtio-fs device */
	char *path;   /* mount point in the guest, allocated */
	bool read_only;
	int directory_fd; /* O_PATH; -1 once handed over */
	bool review;
	char *host_path; /* absolute, without links in it; allocated */
	/* Patterns of what is mvagent's own in it, beside the user's; allocated. */
	unsigned int hidden_count;
	char *hidden[3];
	/* Under review, once run_review_begin has made them (run_review.h); else -1. */
	int upper_fd;
	int base_fd;
};

struct run_shares {
	unsigned int count;
	struct shared_directory
		directories[LIMIT_SHARES]; /* parents before what is mounted in them */
	const char *first; /* path of the share named first on the command line, or NULL */
};

/* 0 or -errno with the sentence printed. Destroy in every case. */
int run_shares_open(struct run_shares *shares, const struct run_options *options);
void run_shares_destroy(struct run_shares *shares);

/* What of @path is below @directory ("" if it is that), or NULL. Both are absolute, and without
 * links in them. */
const char *run_shares_below(const char *path, const char *directory);

#endif

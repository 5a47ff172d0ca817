/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a run (vmm/record/record.h), from before its processes are started to its end. */
#ifndef MVAGENT_CLI_RUN_RECORD_H
#define MVAGENT_CLI_RUN_RECORD_H

#include <limits.h>

#include "vmm/cli/guest_identity.h"
#include "vmm/cli/run_hashes.h"
#include "vmm/cli/run_review.h"
#include "vmm/cli/supervisor.h"
#include "vmm/record/record.h"

struct run_record {
	struct record *record; /* NULL: none is wanted, or it has ended */
	int store_fd;
	char store[PATH_MAX]; /* its path */
	char key_path[PATH_MAX];
	struct record_key key;
	char name[REVIEW_RUN_NAME_BYTES]; /* the same as that of a run under review */
	int cache_fd;                     /* what is known of files' hashes; -1: nothing is kept */
	struct run_hashes *hashes;
};

void run_record_init(struct run_record *record);

/* Finds or makes the directory and the key, and hides both from the guest where a share has them.
 * Before anything else is asked of the shares. 0 or -errno with the sentence printed. */
int run_record_prepare(struct run_record *record, const struct run_options *options,
		       struct run_shares *shares);

/* Opens the key of --record-key, or the user's own, and makes it if it is not there; its path is in
 * @path. 0 or -errno with the sentence printed. */
int run_record_open_key(struct record_key *key, const char *given, char path[PATH_MAX]);

/* What the first line tells of. */
struct run_record_start {
	const struct run_options *options;
	const struct run_shares *shares;
	const struct run_inputs *inputs;
	const struct run_review *review;
	const struct installation *installation;
	char *const *arguments; /* of `mvagent run`, NULL-terminated */
};

/* Makes the file and writes its first line. 0 or -errno with the sentence printed. */
int run_record_begin(struct run_record *record, const struct run_record_start *start);

/* The processes were started. */
void run_record_started(struct run_record *record);

/* Writes the rest and signs it. 0 or -errno with the sentence printed. */
int run_record_end(struct run_record *record, const struct supervisor *supervisor);

void run_record_destroy(struct run_record *record);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the lines of a record say that the supervisor itself knows. docs/record.schema.json has the
 * form of each. */
#ifndef MVAGENT_CLI_RECORD_LINES_H
#define MVAGENT_CLI_RECORD_LINES_H

#include "vmm/cli/run_record.h"

/* Who runs what, under which policy, on what host. NULL: no memory. */
cJSON *record_line_start(const char *run, const struct run_record_start *start);

/* What keeps each process in: what it said, and what the kernel says of it. */
cJSON *record_line_walls(const struct supervisor *supervisor);

/* A phase that was reached. */
cJSON *record_line_phase(const struct report *report, enum report_moment moment);

/* Adds what the root is known by: the digest of an image of the store, with the root of the tree of
 * hashes by which each of its blocks is checked; or the hash of the metadata where the root is the
 * host's own. */
void record_line_add_root(cJSON *hashes, const struct supervisor *supervisor);

/* What the guest sent by its network card. */
void record_lines_network(struct record *record, const struct report *report);

/* Limits that the run as a whole has hit. */
void record_lines_limits(struct record *record, const struct report *report);

/* How it ended, how long each phase took, what it used, what was counted. */
cJSON *record_line_end(const struct record *record, const struct supervisor *supervisor);

#endif

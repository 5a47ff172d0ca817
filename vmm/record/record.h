/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of one run: lines of canonical JSON (canonical.h), each of which carries its number,
 * the time and the SHA-256 of the line before; the last one is signed. Written by the supervisor
 * alone, as things happen. docs/record.md tells what the lines say.
 *
 * Whatever happens is counted. Of each kind so many are written in detail, so that a guest that
 * does a million things cannot fill the disk with the account of them; the last lines say how many
 * were left out.
 */
#ifndef MVAGENT_RECORD_RECORD_H
#define MVAGENT_RECORD_RECORD_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/record/key.h"

enum record_kind {
	RECORD_START,   /* who, what, under which policy, on what host */
	RECORD_WALLS,   /* what keeps the processes of the run in */
	RECORD_HASHES,  /* of what it was made of */
	RECORD_PHASE,   /* one of it was reached */
	RECORD_SHARE,   /* what is hidden and protected in one */
	RECORD_REFUSAL, /* the guest tried what a rule forbids */
	RECORD_FINDING, /* something that the user should look at */
	RECORD_CHANGE,  /* of a file */
	RECORD_NETWORK, /* a decision about a connection, frames that went nowhere */
	RECORD_SIGNED,  /* one more of the network, by the user's key: has room of its own */
	RECORD_SECRET,  /* one was used */
	RECORD_LIMIT,   /* one was hit */
	RECORD_NOTICE,  /* about the record itself */
	RECORD_END,     /* how the run ended, what it took, how many of each kind there were */
	RECORD_SIGNATURE,
	RECORD_KIND_COUNT,
};

struct record;

/* Makes the file @name of a directory, which must not be there, and locks it for as long as it is
 * open. 0 or -errno. */
int record_create(struct record **record, int directory_fd, const char *name);

/* Adds one event, with the members of @detail (an object, taken over) beside those that each line
 * has; NULL: it is counted only. NULL for @record is ignored, but for @detail. A failure to write
 * is kept for record_finish. */
void record_event(struct record *record, enum record_kind kind, cJSON *detail);

/* Counts @count more events of which no detail is known. */
void record_count(struct record *record, enum record_kind kind, uint64_t count);

/* An object with how many events of each kind there were, and how many of them are written. */
cJSON *record_counts(const struct record *record);

/* Adds the signed line, makes the file durable and closes it. 0 or -errno, also of a line before.
 */
int record_finish(struct record *record, const struct record_key *key);

/* Closes it without a signature: the process will not end as it should. NULL is ignored. */
void record_abandon(struct record *record);

#endif

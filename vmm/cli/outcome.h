/* SPDX-License-Identifier: Apache-2.0 */
/* How a run ended: one kind, one sentence, one exit status. */
#ifndef MVAGENT_CLI_OUTCOME_H
#define MVAGENT_CLI_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

enum outcome_kind {
	OUTCOME_NONE,           /* not yet */
	OUTCOME_EXITED,         /* the command ended; value: its exit status */
	OUTCOME_SIGNALED,       /* the command was ended by a signal; value: its number */
	OUTCOME_TIME_LIMIT,     /* --timeout passed */
	OUTCOME_NOT_FOUND,      /* there is no such command in the guest */
	OUTCOME_NOT_EXECUTABLE, /* the command cannot be executed */
	OUTCOME_SETUP_FAILED,   /* mvagent could not prepare the run: host or options */
	OUTCOME_GUEST_FAILED,   /* the guest could not prepare the command: mounts, directory */
	OUTCOME_MACHINE_FAILED, /* the machine or a device process ended before the command */
	OUTCOME_OUTPUT_LOST,    /* what the command wrote could not be written */
	OUTCOME_INTERRUPTED,    /* the user ended the run; value: the signal */
};

/* Exit statuses that are not the command's own (docs/mvagent.1). */
#define EXIT_TIME_LIMIT     124
#define EXIT_MVAGENT        125
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND      127

struct outcome {
	enum outcome_kind kind;
	int value;
	char sentence[1280]; /* for people; empty for EXITED and SIGNALED */
	bool printed;        /* it is on standard error already */
};

/* Gives the outcome, if none was given before. */
void outcome_give(struct outcome *outcome, enum outcome_kind kind, int value, const char *format,
		  ...) __attribute__((format(printf, 4, 5)));

/* The exit status of mvagent. */
int outcome_exit_status(const struct outcome *outcome);

/* The kind's name in --json. */
const char *outcome_name(enum outcome_kind kind);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's part in what the guest reaches: it answers the questions of the guest's resolver
 * by the policy, hears from mvagent-relay, and tells the user of what was denied. */
#ifndef MVAGENT_CLI_NETWORK_WATCH_H
#define MVAGENT_CLI_NETWORK_WATCH_H

#include "vmm/cli/network_report.h"
#include "vmm/cli/process.h"
#include "vmm/record/record.h"
#include "vmm/relay/policy.h"
#include "vmm/relay/settings.h"
#include "vmm/wire/names.h"

/* Zero before use, but for what says otherwise. */
struct network_watch {
	const struct relay_settings *settings;
	struct network_report *report;
	struct record *record;     /* of the run, or NULL */
	struct process *processes; /* of the run */
	unsigned int process_count;
	int names_fd;   /* to the guest's resolver; -1: gone */
	int event_fd;   /* to mvagent-relay; -1: there is none */
	bool proxy;     /* there is to be one in the guest */
	bool ssh_agent; /* the same */
	bool hold;      /* the terminal is the command's: sentences wait */
	unsigned int said;
	unsigned int failed_said;
	bool spent_said;
	unsigned int signed_said;
	size_t have;
	uint8_t question[NAMES_QUESTION_BYTES];
};

/* Writes what the guest's resolver is told first; it reads it when it is there. */
void network_watch_begin(struct network_watch *watch);

/* The resolver asks. */
void network_watch_read_names(struct network_watch *watch);

/* mvagent-relay has something to tell. */
void network_watch_read_events(struct network_watch *watch);

/* The terminal is the user's again: says what waits. */
void network_watch_end(struct network_watch *watch);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor does about each kind of event; called by its loop. */
#ifndef MVAGENT_CLI_SUPERVISOR_EVENTS_H
#define MVAGENT_CLI_SUPERVISOR_EVENTS_H

#include "vmm/cli/supervisor.h"

/* Messages of init: start the session, see it begin, see it end. */
void supervisor_serve_control(struct supervisor *supervisor);

/* Packets of mvagent-vmm: all that are there. */
void supervisor_read_monitor(struct supervisor *supervisor);
void supervisor_send_monitor(struct supervisor *supervisor, const struct monitor_packet *packet);

/* Reports of the server of share @index, for the record: those that are there. */
void supervisor_read_reports(struct supervisor *supervisor, unsigned int index);

/* All processes have ended: what is left, and whether each has told all that it had to. */
void supervisor_end_reports(struct supervisor *supervisor);

/* The user's signals, and the timer: boot deadline, time limit, grace periods. */
void supervisor_read_signals(struct supervisor *supervisor);
void supervisor_read_timer(struct supervisor *supervisor);
void supervisor_set_timer(struct supervisor *supervisor, unsigned int seconds);

/* Prints the end of the guest's kernel messages after a failure of the machine. */
void supervisor_show_console(struct supervisor *supervisor);

#endif

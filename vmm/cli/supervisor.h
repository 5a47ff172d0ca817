/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches over one run from the machine's start to its end: the session with init, the standard
 * streams, the user's signals, the time limit, and the processes. It waits for none of them alone.
 */
#ifndef MVAGENT_CLI_SUPERVISOR_H
#define MVAGENT_CLI_SUPERVISOR_H

#include "vmm/base/clock.h"
#include "vmm/cli/control.h"
#include "vmm/cli/guest_identity.h"
#include "vmm/cli/network_watch.h"
#include "vmm/cli/process.h"
#include "vmm/cli/report.h"
#include "vmm/cli/run_image.h"
#include "vmm/cli/run_options.h"
#include "vmm/cli/stream.h"
#include "vmm/cli/terminal.h"
#include "vmm/record/record.h"
#include "vmm/wire/ready.h"

enum supervisor_stream { STREAM_STDIN, STREAM_STDOUT, STREAM_STDERR, STREAM_COUNT };

/* The machine, each share's server, the root's, the relay, the one with the secrets, the
 * one that signs. */
#define SUPERVISOR_PROCESSES (LIMIT_SHARES + 5)

/* Everything here is set up by `mvagent run` before supervisor_run. */
struct supervisor {
	const struct run_options *options;
	const struct guest_identity *identity;
	uint8_t *start_message; /* what init is told; taken over */
	size_t start_length;
	bool terminal;  /* the command has one */
	int monitor_fd; /* to mvagent-vmm */
	int stream_fds[STREAM_COUNT];
	const int *user_fds; /* of the user, in the order of the streams; NULL: the standard ones */
	struct control control;
	unsigned int process_count;
	struct process processes[SUPERVISOR_PROCESSES]; /* [0] is mvagent-vmm */
	struct ready_message ready;                     /* of mvagent-blk */
	const struct run_image *image;                  /* of the root */
	struct report *report;
	struct network_watch network;
	struct record *record;        /* or NULL */
	int report_fds[LIMIT_SHARES]; /* from each mvagent-fs, of processes[2 + i]; -1: none */
	const char *share_paths[LIMIT_SHARES];

	/* The supervisor's own. */
	struct terminal user_terminal;
	struct stream streams[STREAM_COUNT];
	int stream_done_fds[STREAM_COUNT];
	bool stream_done[STREAM_COUNT];
	int signal_fd;
	int timer_fd;            /* ticks as long as there is a limit: */
	struct patience limit;   /* what has to be over before something is done about it */
	unsigned int interrupts; /* SIGINTs so far */
	enum { GRACE_NONE, GRACE_TERMINATE, GRACE_KILL } grace;
	bool report_ended[LIMIT_SHARES]; /* the last one came */
	bool session_over;               /* EXITED or FAILED came */
	bool command_ended;              /* EXITED came; its output may still be on its way */
	bool output_overdue;             /* the time limit passed while it was */
	bool root_outdated; /* the image of the host's directories is not to be used again */
	unsigned int console_length;
	char console[LIMIT_CONSOLE_BYTES]; /* the end of what the guest kernel printed */
};

/* Runs it to the end; the outcome is in the report. Signals that the supervisor handles must be
 * blocked already (supervisor_block_signals), before any process was started. */
void supervisor_run(struct supervisor *supervisor);

void supervisor_block_signals(void);

/* The one of them that has come meanwhile and would end a run; 0: none. */
int supervisor_pending_signal(void);

#endif

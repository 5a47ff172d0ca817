/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a run: started with exactly the descriptors they are given, and ended with us.
 */
#ifndef MVAGENT_CLI_PROCESS_H
#define MVAGENT_CLI_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "vmm/base/limits.h"
#include "vmm/cli/messages.h"

#define PROCESS_MAX_ARGUMENTS (96 + 2 * (LIMIT_RUN_RULES + LIMIT_ROOT_ADDS + LIMIT_ROOT_HIDES))
#define PROCESS_MAX_FDS       64

/* A command line under construction. Texts and descriptors stay the caller's until process_start.
 */
struct process_plan {
	const char *name;    /* for messages: "mvagent-vmm" */
	bool network;        /* it keeps the host's network */
	bool allow_degraded; /* the user wants to know what is missing */
	int cgroup_fd;       /* cgroup.procs of the control group it goes into; -1: ours */
	unsigned int argument_count;
	char *arguments[PROCESS_MAX_ARGUMENTS + 1];
	unsigned int fd_count;
	int fds[PROCESS_MAX_FDS]; /* kept open in the child, with the same number */
};

struct process {
	const char *name;
	pid_t pid;
	int pidfd;                /* -1: not running */
	struct messages messages; /* to be passed on while it runs: messages_pass */
	bool apart;               /* in namespaces of its own */
	uint8_t walls;            /* what it has said of itself: enum jail_wall */
	bool walls_told;
	struct rusage usage; /* once it has ended */
};

#define PROCESS_NONE ((struct process){.pidfd = -1, .messages = {.fd = -1}})

/* Starts a plan for the executable @path (which is also its argument 0). */
void process_plan_init(struct process_plan *plan, const char *name, const char *path);

/* Adds an argument, made by printf. Running out of memory or room ends the program: command lines
 * are bounded by the options that lead to them. */
void process_plan_add(struct process_plan *plan, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Adds "OPTION", "PREFIX<fd>" and lets the child have the descriptor. */
void process_plan_add_fd(struct process_plan *plan, const char *option, const char *prefix, int fd);

/* Starts the process in a session of its own (no terminal is its, and the terminal's signals are
 * ours to pass on), with /dev/null as standard input and output and a pipe to us as standard error;
 * it dies with us. Frees the plan's arguments. 0 or -errno with the sentence printed. */
int process_start(struct process *process, struct process_plan *plan);

/* Waits at most @milliseconds for the process's end (-1: for ever). Whether it has ended; then
 * *@status is its wait(2) status, its last messages were passed on and its descriptors are closed.
 */
bool process_wait(struct process *process, int milliseconds, int *status);

/* SIGKILL, and waits. No-op when it is not running. */
void process_kill(struct process *process);

#endif

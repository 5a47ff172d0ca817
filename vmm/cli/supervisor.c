/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/supervisor_events.h"
#include "vmm/root/host_cache.h"

#define ROOT_PROCESS 1 /* mvagent-blk: run_start.c */

/* How long the guest may take to ask for its command; a boot takes well under a second, in an
 * emulator some. */
#define BOOT_SECONDS 120U

/* How long the last output of a command that was ended by the time limit may take to be read. */
#define OUTPUT_SECONDS 1U

enum poll_slot {
	SLOT_MONITOR,
	SLOT_CONTROL,
	SLOT_SIGNAL,
	SLOT_TIMER,
	SLOT_NAMES,
	SLOT_RELAY,
	SLOT_STREAMS,
	SLOT_REPORTS = SLOT_STREAMS + STREAM_COUNT,
	SLOT_PROCESSES = SLOT_REPORTS + LIMIT_SHARES,
	SLOT_MESSAGES = SLOT_PROCESSES + SUPERVISOR_PROCESSES,
	SLOT_COUNT = SLOT_MESSAGES + SUPERVISOR_PROCESSES,
};

static void fill_signal_set(sigset_t *set)
{
	static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};

	sigemptyset(set);
	for (unsigned int i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
		sigaddset(set, handled[i]);
}

void supervisor_block_signals(void)
{
	sigset_t set;

	fill_signal_set(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int supervisor_pending_signal(void)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t set;

	if (sigpending(&set) < 0)
		return 0;
	for (unsigned int i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		if (sigismember(&set, ending[i]))
			return ending[i];
	}
	return 0;
}

static int supervisor_open(struct supervisor *supervisor)
{
	sigset_t set;

	for (unsigned int i = 0; i < STREAM_COUNT; i++)
		supervisor->stream_done_fds[i] = -1;
	supervisor->timer_fd = -1;
	fill_signal_set(&set);
	supervisor->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (supervisor->signal_fd < 0)
		return log_errno(-errno, "cannot watch for signals");
	supervisor->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (supervisor->timer_fd < 0)
		return log_errno(-errno, "cannot watch the time");
	for (unsigned int i = 0; i < STREAM_COUNT; i++) {
		int fd = fd_create_event();

		if (fd < 0)
			return log_errno(fd, "cannot watch the streams");
		supervisor->stream_done_fds[i] = fd;
	}
	supervisor_set_timer(supervisor, BOOT_SECONDS);
	return 0;
}

static void supervisor_fill_poll(const struct supervisor *supervisor, struct pollfd *polled)
{
	const struct control *control = &supervisor->control;
	bool sending = control->outgoing_offset < control->outgoing_length;

	for (unsigned int i = 0; i < SLOT_COUNT; i++)
		polled[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	polled[SLOT_MONITOR].fd = supervisor->monitor_fd;
	polled[SLOT_CONTROL].fd = supervisor->session_over ? -1 : control->fd;
	polled[SLOT_CONTROL].events = (short)(POLLIN | (sending ? POLLOUT : 0));
	polled[SLOT_SIGNAL].fd = supervisor->signal_fd;
	polled[SLOT_TIMER].fd = supervisor->timer_fd;
	polled[SLOT_NAMES].fd = supervisor->network.names_fd;
	polled[SLOT_RELAY].fd = supervisor->network.event_fd;
	for (unsigned int i = 0; i < STREAM_COUNT; i++) {
		if (!supervisor->stream_done[i])
			polled[SLOT_STREAMS + i].fd = supervisor->stream_done_fds[i];
	}
	for (unsigned int i = 0; i < LIMIT_SHARES; i++)
		polled[SLOT_REPORTS + i].fd = supervisor->report_fds[i];
	for (unsigned int i = 0; i < supervisor->process_count; i++) {
		polled[SLOT_MESSAGES + i].fd = supervisor->processes[i].messages.fd;
		/* Later their ends are expected, and would be news in every round. */
		if (supervisor->report->outcome.kind == OUTCOME_NONE)
			polled[SLOT_PROCESSES + i].fd = supervisor->processes[i].pidfd;
	}
}

static void supervisor_note_root(struct supervisor *supervisor, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == HOST_CACHE_OUTDATED)
		supervisor->root_outdated = true;
}

/* A process that could not begin and has said so itself: one sentence is enough. No command of the
 * guest's has had a say in it yet. */
static bool supervisor_has_said_why(struct supervisor *supervisor, struct process *process,
				    int status)
{
	struct outcome *outcome = &supervisor->report->outcome;

	messages_pass(&process->messages);
	if (outcome->kind != OUTCOME_NONE || supervisor->report->moments[MOMENT_STARTED] ||
	    !WIFEXITED(status) || !process->messages.last[0])
		return false;
	outcome_give(outcome, OUTCOME_SETUP_FAILED, 0, "%s", process->messages.last);
	outcome->printed = true;
	return true;
}

/* A process that ends while the command has not: the run is over. */
static void supervisor_lose_process(struct supervisor *supervisor, struct process *process)
{
	int status;

	/* The machine's own word about its end, if there is one, says more than its exit status. */
	supervisor_read_monitor(supervisor);
	process_wait(process, -1, &status);
	if (process == &supervisor->processes[ROOT_PROCESS])
		supervisor_note_root(supervisor, status);
	if (supervisor_has_said_why(supervisor, process, status))
		return;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		outcome_give(&supervisor->report->outcome, OUTCOME_MACHINE_FAILED, 0,
			     "%s was killed for a system call that it may not make: a fault of "
			     "mvagent's, or an attack through one",
			     process->name);
	else if (WIFSIGNALED(status))
		outcome_give(&supervisor->report->outcome, OUTCOME_MACHINE_FAILED, 0,
			     "%s was killed by signal %d (%s)", process->name, WTERMSIG(status),
			     strsignal(WTERMSIG(status)));
	else
		outcome_give(&supervisor->report->outcome, OUTCOME_MACHINE_FAILED, 0,
			     "%s ended before the command did (status %d)", process->name,
			     WEXITSTATUS(status));
}

/* The user's terminal is gone, and with it the command's: init hangs that up when it learns that
 * nobody reads its output any more. */
static void supervisor_check_hangup(const struct supervisor *supervisor)
{
	struct pollfd pollfd = {.fd = STDIN_FILENO};

	if (supervisor->terminal && poll(&pollfd, 1, 0) > 0 && pollfd.revents & (POLLHUP | POLLERR))
		shutdown(supervisor->stream_fds[STREAM_STDOUT], SHUT_RDWR);
}

/* Order matters: what the session says about the command comes before what its processes' ends
 * suggest. */
static void supervisor_dispatch(struct supervisor *supervisor, const struct pollfd *polled)
{
	if (polled[SLOT_CONTROL].revents)
		supervisor_serve_control(supervisor);
	if (polled[SLOT_MONITOR].revents)
		supervisor_read_monitor(supervisor);
	for (unsigned int i = 0; i < STREAM_COUNT; i++) {
		if (!polled[SLOT_STREAMS + i].revents)
			continue;
		supervisor->stream_done[i] = true;
		if (i == STREAM_STDIN)
			supervisor_check_hangup(supervisor);
	}
	for (unsigned int i = 0; i < LIMIT_SHARES; i++) {
		if (polled[SLOT_REPORTS + i].revents)
			supervisor_read_reports(supervisor, i);
	}
	if (polled[SLOT_SIGNAL].revents)
		supervisor_read_signals(supervisor);
	if (polled[SLOT_TIMER].revents)
		supervisor_read_timer(supervisor);
	if (polled[SLOT_NAMES].revents)
		network_watch_read_names(&supervisor->network);
	if (polled[SLOT_RELAY].revents)
		network_watch_read_events(&supervisor->network);
	for (unsigned int i = 0; i < supervisor->process_count; i++) {
		if (polled[SLOT_MESSAGES + i].revents)
			messages_pass(&supervisor->processes[i].messages);
		if (polled[SLOT_PROCESSES + i].revents &&
		    supervisor->report->outcome.kind == OUTCOME_NONE)
			supervisor_lose_process(supervisor, &supervisor->processes[i]);
	}
}

static bool supervisor_output_done(const struct supervisor *supervisor)
{
	for (unsigned int i = STREAM_STDOUT; i < STREAM_COUNT; i++) {
		if (supervisor->streams[i].started && !supervisor->stream_done[i])
			return false;
	}
	return true;
}

/* Until the outcome is known. The command's own outcome is complete when its output is with the
 * user. */
static void supervisor_watch(struct supervisor *supervisor)
{
	const struct outcome *outcome = &supervisor->report->outcome;
	struct pollfd polled[SLOT_COUNT];

	for (;;) {
		if (outcome->kind != OUTCOME_NONE && !supervisor->command_ended)
			break;
		if (supervisor->command_ended && supervisor_output_done(supervisor))
			break;
		if (supervisor->command_ended && supervisor->output_overdue) {
			supervisor->report->outcome.kind = OUTCOME_NONE;
			outcome_give(&supervisor->report->outcome, OUTCOME_TIME_LIMIT, 0,
				     "the time limit of %u s passed before the command's output "
				     "was read",
				     supervisor->options->timeout_seconds);
			break;
		}
		supervisor_fill_poll(supervisor, polled);
		if (poll(polled, SLOT_COUNT, -1) < 0) {
			if (errno == EINTR)
				continue;
			outcome_give(&supervisor->report->outcome, OUTCOME_SETUP_FAILED, 0,
				     "cannot wait for events: %s", strerror(errno));
			break;
		}
		supervisor_dispatch(supervisor, polled);
		if (supervisor->interrupts > 1)
			break;
	}
}

/* Waits for the machine's end, and hears it out meanwhile: its last word must find room in a socket
 * that the guest's console may have filled. */
static void supervisor_wait_for_machine(struct supervisor *supervisor, int milliseconds)
{
	struct process *machine = &supervisor->processes[0];
	struct patience patience = patience_begin((uint64_t)milliseconds);
	int status, slice;

	while ((slice = patience_slice_ms(&patience))) {
		struct pollfd polled[] = {{.fd = machine->pidfd, .events = POLLIN},
					  {.fd = supervisor->monitor_fd, .events = POLLIN}};

		if (poll(polled, 2, slice) < 0 && errno != EINTR)
			break;
		supervisor_read_monitor(supervisor);
		if (process_wait(machine, 0, &status))
			break;
	}
	supervisor_read_monitor(supervisor);
}

/* Waits for a device process, and hears it out meanwhile: it tells of what the guest changed only
 * now. Whether it has ended. */
static bool supervisor_wait_for_device(struct supervisor *supervisor, unsigned int index,
				       int milliseconds, int *status)
{
	struct process *process = &supervisor->processes[index];
	struct patience patience = patience_begin((uint64_t)milliseconds);
	bool ended = false;
	int slice;

	while (!ended && (slice = patience_slice_ms(&patience))) {
		struct pollfd polled[3 + LIMIT_SHARES] = {
			{.fd = process->pidfd, .events = POLLIN},
			{.fd = process->messages.fd, .events = POLLIN},
			{.fd = supervisor->network.event_fd, .events = POLLIN}};

		for (unsigned int i = 0; i < LIMIT_SHARES; i++)
			polled[3 + i] =
				(struct pollfd){.fd = supervisor->report_fds[i], .events = POLLIN};
		if (poll(polled, ARRAY_SIZE(polled), slice) < 0 && errno != EINTR)
			break;
		messages_pass(&process->messages);
		network_watch_read_events(&supervisor->network);
		for (unsigned int i = 0; i < LIMIT_SHARES; i++)
			supervisor_read_reports(supervisor, i);
		ended = process_wait(process, 0, status);
	}
	return ended;
}

/* Ends the processes: the machine first, which lets the device processes finish what they have
 * begun. What is still on its way is not waited for long when the user interrupts twice, or when
 * the guest did not end a command whose time was over. */
static void supervisor_end_processes(struct supervisor *supervisor)
{
	struct monitor_packet packet = {.type = MONITOR_STOP};
	bool hurry = supervisor->interrupts > 1 ||
		     (supervisor->report->outcome.kind == OUTCOME_TIME_LIMIT &&
		      !supervisor->command_ended);
	int patience = hurry ? 1000 : 5000;
	int status = 0;

	if (supervisor->process_count && supervisor->processes[0].pidfd >= 0) {
		supervisor_send_monitor(supervisor, &packet);
		supervisor_wait_for_machine(supervisor, patience);
	}
	for (unsigned int i = 0; i < supervisor->process_count; i++) {
		if (!process_wait(&supervisor->processes[i], 0, &status) &&
		    !(i && supervisor_wait_for_device(supervisor, i, patience, &status)))
			process_kill(&supervisor->processes[i]);
		else if (i == ROOT_PROCESS)
			supervisor_note_root(supervisor, status);
	}
	supervisor_end_reports(supervisor);
}

/* A stream of which not everything was written is no success, whatever the command says. */
static void supervisor_lose_output(struct supervisor *supervisor, const char *name, int error)
{
	struct outcome *outcome = &supervisor->report->outcome;

	/* A terminal that is gone is a reader that has left. */
	if (supervisor->terminal && error == EIO)
		return;
	if (supervisor->command_ended && outcome->kind != OUTCOME_TIME_LIMIT)
		outcome->kind = OUTCOME_NONE;
	outcome_give(outcome, OUTCOME_OUTPUT_LOST, 0, "cannot write the command's %s: %s", name,
		     strerror(error));
}

/* After the processes' end the sockets are at their end too; output that was on its way still goes
 * to the user, who may be slow, unless he interrupts or the time is over. */
static void supervisor_end_output(struct supervisor *supervisor)
{
	static const char *const names[] = {
		[STREAM_STDOUT] = "standard output", [STREAM_STDERR] = "standard error"};
	struct pollfd polled[SLOT_COUNT];

	if (supervisor->report->outcome.kind == OUTCOME_TIME_LIMIT)
		supervisor_set_timer(supervisor, OUTPUT_SECONDS);
	while (!supervisor_output_done(supervisor) && supervisor->interrupts < 2 &&
	       !supervisor->output_overdue) {
		supervisor_fill_poll(supervisor, polled);
		polled[SLOT_MONITOR].fd = polled[SLOT_CONTROL].fd = -1;
		if (poll(polled, SLOT_COUNT, -1) < 0 && errno != EINTR)
			break;
		supervisor_dispatch(supervisor, polled);
	}
	for (unsigned int i = STREAM_STDOUT; i < STREAM_COUNT; i++) {
		if (supervisor->stream_done[i])
			stream_join(&supervisor->streams[i]);
		if (supervisor->streams[i].write_error)
			supervisor_lose_output(supervisor, names[i],
					       supervisor->streams[i].write_error);
	}
}

void supervisor_run(struct supervisor *supervisor)
{
	if (supervisor_open(supervisor) < 0)
		outcome_give(&supervisor->report->outcome, OUTCOME_SETUP_FAILED, 0,
			     "cannot watch over the run");
	else
		supervisor_watch(supervisor);
	supervisor_end_processes(supervisor);
	supervisor_end_output(supervisor);
	terminal_leave(&supervisor->user_terminal);
	network_watch_read_events(&supervisor->network);
	network_watch_end(&supervisor->network);
	supervisor_show_console(supervisor);
	free(supervisor->start_message);
	supervisor->start_message = NULL;
	/* Threads that are still there (standard input) use these until the process ends. */
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/supervisor_events.h"

/* How long the guest may take to ask for its command; a boot takes well under a second, in an
 * emulator some. */
#define BOOT_SECONDS 120U

enum poll_slot {
	SLOT_MONITOR,
	SLOT_CONTROL,
	SLOT_SIGNAL,
	SLOT_TIMER,
	SLOT_STREAMS,
	SLOT_PROCESSES = SLOT_STREAMS + STREAM_COUNT,
	SLOT_COUNT = SLOT_PROCESSES + SUPERVISOR_PROCESSES,
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
	for (unsigned int i = 0; i < STREAM_COUNT; i++) {
		if (!supervisor->stream_done[i])
			polled[SLOT_STREAMS + i].fd = supervisor->stream_done_fds[i];
	}
	for (unsigned int i = 0; i < supervisor->process_count; i++)
		polled[SLOT_PROCESSES + i].fd = supervisor->processes[i].pidfd;
}

/* A process that ends while the command has not: the run is over. */
static void supervisor_lose_process(struct supervisor *supervisor, struct process *process)
{
	int status;

	/* The machine's own word about its end, if there is one, says more than its exit status. */
	supervisor_read_monitor(supervisor);
	process_wait(process, -1, &status);
	if (WIFSIGNALED(status))
		outcome_give(&supervisor->report->outcome, OUTCOME_MACHINE_FAILED, 0,
			     "%s was killed by signal %d (%s)", process->name, WTERMSIG(status),
			     strsignal(WTERMSIG(status)));
	else
		outcome_give(&supervisor->report->outcome, OUTCOME_MACHINE_FAILED, 0,
			     "%s ended before the command did (status %d)", process->name,
			     WEXITSTATUS(status));
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
		if (polled[SLOT_STREAMS + i].revents)
			supervisor->stream_done[i] = true;
	}
	if (polled[SLOT_SIGNAL].revents)
		supervisor_read_signals(supervisor);
	if (polled[SLOT_TIMER].revents)
		supervisor_read_timer(supervisor);
	for (unsigned int i = 0; i < supervisor->process_count; i++) {
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
		if (supervisor->command_ended &&
		    (supervisor->output_overdue || supervisor_output_done(supervisor)))
			break;
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

/* Ends the processes: the machine first, which lets the device processes finish what they have
 * begun. */
static void supervisor_end_processes(struct supervisor *supervisor)
{
	struct monitor_packet packet = {.type = MONITOR_STOP};
	int status;

	if (supervisor->process_count && supervisor->processes[0].pidfd >= 0) {
		supervisor_send_monitor(supervisor, &packet);
		process_wait(&supervisor->processes[0], 5000, &status);
		supervisor_read_monitor(supervisor);
	}
	for (unsigned int i = 0; i < supervisor->process_count; i++) {
		if (!process_wait(&supervisor->processes[i], i ? 5000 : 0, &status))
			process_kill(&supervisor->processes[i]);
	}
}

/* After the processes' end the sockets are at their end too; output that was on its way still goes
 * to the user, who may be slow, unless he interrupts. */
static void supervisor_end_output(struct supervisor *supervisor)
{
	struct pollfd polled[SLOT_COUNT];

	while (!supervisor_output_done(supervisor) && supervisor->interrupts < 2) {
		supervisor_fill_poll(supervisor, polled);
		polled[SLOT_MONITOR].fd = polled[SLOT_CONTROL].fd = polled[SLOT_TIMER].fd = -1;
		if (poll(polled, SLOT_COUNT, -1) < 0 && errno != EINTR)
			break;
		supervisor_dispatch(supervisor, polled);
	}
	for (unsigned int i = STREAM_STDOUT; i < STREAM_COUNT; i++) {
		if (supervisor->stream_done[i])
			stream_join(&supervisor->streams[i]);
		if (supervisor->streams[i].write_error)
			log_error("cannot write the command's %s: %s",
				  i == STREAM_STDOUT ? "standard output" : "standard error",
				  strerror(supervisor->streams[i].write_error));
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
	supervisor_show_console(supervisor);
	free(supervisor->start_message);
	supervisor->start_message = NULL;
	/* Threads that are still there (standard input) use these until the process ends. */
}

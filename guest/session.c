/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest/command.h"
#include "guest/control.h"
#include "guest/memory_watch.h"
#include "guest/relay.h"
#include "guest/terminal.h"
#include "vmm/base/bytes.h"
#include "vmm/base/fd.h"

/* What an event is about. A relay has two tags: source and sink. */
enum {
	TAG_CONTROL,
	TAG_CHILDREN,
	TAG_RELAYS,
};

enum { INPUT, OUTPUT, ERRORS, RELAYS };

enum phase {
	PHASE_RUNNING,  /* the command is alive */
	PHASE_ENDING,   /* it is not; other processes are being killed */
	PHASE_DRAINING, /* no process is left; the host is reading what they wrote */
};

/* All that is needed until the end is allocated before the command starts. */
struct session {
	struct control control;
	int epoll;
	int children; /* a signalfd for SIGCHLD */
	struct terminal terminal;
	struct relay relays[RELAYS];
	struct memory_watch memory;
	time_t memory_looked; /* seconds of CLOCK_MONOTONIC */
	enum phase phase;
	pid_t command;
	int status; /* as of wait(2) */
};

static int watch(const struct session *session, int fd, uint32_t tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = tag};

	return epoll_ctl(session->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_loop(struct session *session)
{
	sigset_t set;
	int error;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	session->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (session->epoll < 0)
		return -errno;
	session->children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (session->children < 0)
		return -errno;
	error = watch(session, session->children, TAG_CHILDREN);
	return error ? error : watch(session, session->control.fd, TAG_CONTROL);
}

static int open_relay(struct session *session, int index, int source, int sink)
{
	return relay_open(&session->relays[index], index == INPUT ? RELAY_FROM_HOST : RELAY_TO_HOST,
			  session->epoll, TAG_RELAYS + 2 * (uint32_t)index, source, sink);
}

/* Three pipes; the command's ends go to @ends. */
static int open_pipes(struct session *session, int streams[3], int ends[3])
{
	for (int index = INPUT; index < RELAYS; index++) {
		int pipe[2], error;

		if (pipe2(pipe, O_CLOEXEC) < 0)
			return -errno;
		if (index == INPUT) {
			ends[index] = pipe[0];
			error = open_relay(session, index, fd_take(&streams[index]), pipe[1]);
		} else {
			ends[index] = pipe[1];
			error = open_relay(session, index, pipe[0], fd_take(&streams[index]));
		}
		if (error)
			return error;
	}
	return 0;
}

static int duplicate(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* One terminal; each relay has a descriptor of its own for it. */
static int open_terminal(struct session *session, const struct session_start *start, int streams[3],
			 int ends[3])
{
	int error = terminal_open(&session->terminal, start->rows, start->columns, start->uid);

	if (error)
		return error;
	for (int index = INPUT; index < RELAYS; index++) {
		ends[index] = duplicate(session->terminal.slave);
		if (ends[index] < 0)
			return -errno;
	}
	error = open_relay(session, INPUT, fd_take(&streams[INPUT]),
			   duplicate(session->terminal.master));
	if (error)
		return error;
	return open_relay(session, OUTPUT, duplicate(session->terminal.master),
			  fd_take(&streams[OUTPUT]));
}

/* Sets everything up and starts the command. */
static int start_command(struct session *session, int streams[3], const struct session_start *start,
			 struct failure *failure)
{
	int ends[3] = {-1, -1, -1};
	int error = open_loop(session);

	if (!error)
		error = start->flags & SESSION_FLAG_TERMINAL
				? open_terminal(session, start, streams, ends)
				: open_pipes(session, streams, ends);
	if (error) {
		failure_set(failure, SESSION_STAGE_SETUP, error, "making the command's streams");
	} else {
		session->command = command_start(start, ends, failure);
		error = session->command < 0 ? session->command : 0;
	}
	for (int index = 0; index < 3; index++)
		fd_close(&ends[index]);
	return error;
}

/* Kills every process but this one, in a namespace of its own only. */
static void kill_all(void)
{
	if (getpid() == 1)
		kill(-1, SIGKILL);
}

static void signal_command(const struct session *session, int signal)
{
	pid_t group = 0;

	if (session->phase != PHASE_RUNNING)
		return;
	if (session->terminal.master >= 0)
		group = terminal_foreground(&session->terminal);
	if (group <= 1)
		group = session->command;
	/* The command may have left the group that it was started in. */
	if (kill(-group, signal) < 0)
		kill(session->command, signal);
}

static void obey(const struct session *session, const struct control_message *order)
{
	switch (order->type) {
	case SESSION_WINDOW:
		if (session->terminal.master >= 0)
			terminal_resize(&session->terminal, order->value >> 16,
					order->value & UINT16_MAX);
		break;
	case SESSION_SIGNAL:
		if (order->value >= 1 && order->value <= (uint32_t)SIGRTMAX)
			signal_command(session, (int)order->value);
		break;
	case SESSION_KILL:
		kill_all();
		break;
	default:
		message("ignoring a message of type %u", order->type);
	}
}

/* All messages that are there. 0, or -errno when the host is gone. */
static int handle_control(struct session *session)
{
	struct control_message order;
	int result;

	while ((result = control_next_message(&session->control, &order)) > 0)
		obey(session, &order);
	return result;
}

/* Reaps what has ended: the command, and what lost its parents. */
static void handle_children(struct session *session)
{
	struct signalfd_siginfo info;
	bool alone = false;
	int status;

	while (read(session->children, &info, sizeof(info)) > 0)
		;
	for (;;) {
		pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);

		if (pid < 0 && errno == EINTR)
			continue;
		alone = pid < 0;
		if (pid <= 0)
			break;
		if (pid != session->command || session->phase != PHASE_RUNNING)
			continue;
		session->status = status;
		session->phase = PHASE_ENDING;
		relay_abandon(&session->relays[INPUT]);
	}
	if (session->phase != PHASE_ENDING)
		return;
	kill_all();
	if (!alone)
		return;
	session->phase = PHASE_DRAINING;
	relay_end(&session->relays[OUTPUT]);
	relay_end(&session->relays[ERRORS]);
}

static void handle_relays(struct session *session, const struct epoll_event *event)
{
	uint32_t tag = event->data.u32 - TAG_RELAYS;

	relay_handle(&session->relays[tag / 2], tag % 2, event->events);
}

/* Work that no event announces. Returns whether there is still some. */
static bool do_rest(struct session *session)
{
	bool more = false;

	for (int index = INPUT; index < RELAYS; index++) {
		if (session->relays[index].more)
			relay_pump(&session->relays[index]);
		more |= session->relays[index].more;
	}
	/* Nobody looks at the terminal any more: a hangup. */
	if (session->terminal.master >= 0 && session->relays[OUTPUT].finished) {
		relay_abandon(&session->relays[INPUT]);
		terminal_close(&session->terminal);
	}
	return more;
}

/* Once a second, also while events keep coming. */
static bool is_time_to_look(struct session *session)
{
	struct timespec now;

	if (session->memory.meminfo_fd < 0)
		return false;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_sec == session->memory_looked)
		return false;
	session->memory_looked = now.tv_sec;
	return true;
}

static int tell_of_memory(struct session *session)
{
	uint32_t what;
	int error = 0;

	while (!error && (what = memory_watch_look(&session->memory)))
		error = message_send_value(session->control.fd, SESSION_MEMORY, what);
	return error;
}

/* Until no process is left and the host has all output. 0, or -errno when the host is gone. */
static int run_loop(struct session *session)
{
	struct epoll_event events[8];
	bool more = false;
	int error = 0;

	const int pause = session->memory.meminfo_fd >= 0 ? MEMORY_WATCH_MS : -1;

	while (session->phase != PHASE_DRAINING || !session->relays[OUTPUT].finished ||
	       !session->relays[ERRORS].finished) {
		int count =
			epoll_wait(session->epoll, events, ARRAY_SIZE(events), more ? 0 : pause);

		if (count < 0 && errno != EINTR)
			return -errno;
		if (is_time_to_look(session))
			error = tell_of_memory(session);
		for (int index = 0; !error && index < count; index++) {
			if (events[index].data.u32 == TAG_CONTROL)
				error = handle_control(session);
			else if (events[index].data.u32 == TAG_CHILDREN)
				handle_children(session);
			else
				handle_relays(session, &events[index]);
		}
		if (error)
			return error;
		more = do_rest(session);
	}
	return 0;
}

static struct session *session_create(int control)
{
	struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	session->control.fd = control;
	session->epoll = session->children = -1;
	session->terminal = (struct terminal){-1, -1};
	session->memory = MEMORY_WATCH_NONE;
	for (int index = INPUT; index < RELAYS; index++) {
		struct relay *relay = &session->relays[index];

		relay->source = relay->sink = -1;
		relay->finished = true;
	}
	return session;
}

static void session_destroy(struct session *session)
{
	for (int index = INPUT; index < RELAYS; index++)
		relay_abandon(&session->relays[index]);
	terminal_close(&session->terminal);
	memory_watch_close(&session->memory);
	fd_close(&session->children);
	fd_close(&session->epoll);
	free(session);
}

int session_run(int control, int streams[3], const struct session_start *start,
		const struct shares *shares, struct failure *failure)
{
	struct session *session = session_create(control);
	int error;

	if (!session)
		return failure_set(failure, SESSION_STAGE_SETUP, -ENOMEM, "allocating a session");
	if (start->flags & SESSION_FLAG_MEMORY && memory_watch_open(&session->memory) < 0)
		message("cannot watch memory");
	error = start_command(session, streams, start, failure);
	if (!error)
		error = message_send_empty(control, SESSION_STARTED);
	if (!error) {
		/* From here on memory may be short, and its shortage the command's doing. */
		if (mlockall(MCL_CURRENT | MCL_FUTURE) < 0)
			message("cannot lock memory: errno %d", errno);
		error = run_loop(session);
	}
	if (!error)
		error = tell_of_memory(session);
	if (!error) {
		shares_sync(shares);
		error = message_send_value(control, SESSION_EXITED, (uint32_t)session->status);
	}
	session_destroy(session);
	for (int index = 0; index < 3; index++)
		fd_close(&streams[index]);
	return error;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/supervisor_events.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/text.h"
#include "vmm/cli/record_lines.h"

/* After the time limit: SIGTERM, this long for the command to end by itself, SIGKILL, this long for
 * init to put everything away; then the machine is stopped as it stands. */
#define GRACE_SECONDS 5U

/* How long the machine may go on without its session before it is stopped. */
#define SESSION_LOST_SECONDS 3U

/* Messages taken in at once: a guest that floods must not keep the supervisor from the user's
 * signals and the time limit. More than a socket holds, so that one turn reads a dead sender out.
 */
#define MESSAGES_AT_ONCE 1024

static void supervisor_moment(struct supervisor *supervisor, enum report_moment moment)
{
	supervisor->report->moments[moment] = clock_monotonic_ns();
	record_event(supervisor->record, RECORD_PHASE,
		     record_line_phase(supervisor->report, moment));
}

void supervisor_set_timer(struct supervisor *supervisor, unsigned int seconds)
{
	const struct timespec slice = {
		.tv_nsec = seconds ? (long)PATIENCE_SLICE_MS * CLOCK_NS_PER_MS : 0};
	const struct itimerspec timer = {.it_value = slice, .it_interval = slice};

	supervisor->limit = patience_begin((uint64_t)seconds * 1000);
	timerfd_settime(supervisor->timer_fd, 0, &timer, NULL);
}

/* Queues a message for init; a failure to do so is the end of the connection, which poll reports.
 */
static void supervisor_tell(struct supervisor *supervisor, enum session_type type, uint32_t value)
{
	uint8_t *bytes;
	size_t length;
	int error = type == SESSION_KILL ? session_encode_empty(type, &bytes, &length)
					 : session_encode_value(type, value, &bytes, &length);

	if (error || supervisor->session_over)
		return;
	if (control_send(&supervisor->control, bytes, length) == 0)
		control_flush(&supervisor->control);
}

static int supervisor_start_streams(struct supervisor *supervisor)
{
	static const int standard[STREAM_COUNT] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
	const int *user_fds = supervisor->user_fds ? supervisor->user_fds : standard;

	if (supervisor->terminal && terminal_enter(&supervisor->user_terminal) < 0)
		return -EIO;
	for (unsigned int i = 0; i < STREAM_COUNT; i++) {
		struct stream *stream = &supervisor->streams[i];

		if (supervisor->terminal && i == STREAM_STDERR)
			continue;
		stream->to_guest = i == STREAM_STDIN;
		stream->from = stream->to_guest ? user_fds[i] : supervisor->stream_fds[i];
		stream->to = stream->to_guest ? supervisor->stream_fds[i] : user_fds[i];
		stream->done_fd = supervisor->stream_done_fds[i];
		stream->filtered = supervisor->terminal && i == STREAM_STDOUT &&
				   !supervisor->options->terminal_passthrough;
		if (stream_start(stream) < 0)
			return -EAGAIN;
	}
	return 0;
}

static void supervisor_serve_hello(struct supervisor *supervisor,
				   const struct session_message *message)
{
	uint32_t version = 0, rows, columns;

	if (!supervisor->start_message ||
	    session_decode_value(message->payload, message->length, &version) < 0 ||
	    version != SESSION_VERSION) {
		outcome_give(&supervisor->report->outcome, OUTCOME_GUEST_FAILED, 0,
			     "the guest's init does not fit this mvagent: install both anew");
		return;
	}
	supervisor_moment(supervisor, MOMENT_HELLO);
	if (supervisor_start_streams(supervisor) < 0) {
		outcome_give(&supervisor->report->outcome, OUTCOME_SETUP_FAILED, 0,
			     "cannot start the command's streams");
		return;
	}
	/* The user may have changed it while the guest booted. */
	terminal_size(&rows, &columns);
	session_resize_start(supervisor->start_message, rows, columns);
	control_send(&supervisor->control, supervisor->start_message, supervisor->start_length);
	supervisor->start_message = NULL;
	control_flush(&supervisor->control);
}

static void supervisor_serve_started(struct supervisor *supervisor)
{
	struct monitor_packet packet = {.type = MONITOR_COUNT};

	/* Once, and only what was asked for: the guest does not set the timer as it likes. */
	if (supervisor->start_message || supervisor->report->moments[MOMENT_STARTED])
		return;
	supervisor_moment(supervisor, MOMENT_STARTED);
	/* All of them have heard the guest by now, and so are as confined as they will be; the
	 * relay and its like have said so before they listened. */
	network_watch_read_events(&supervisor->network);
	record_event(supervisor->record, RECORD_WALLS, record_line_walls(supervisor));
	supervisor_send_monitor(supervisor, &packet);
	supervisor_set_timer(supervisor, supervisor->options->timeout_seconds);
}

static void supervisor_serve_failed(struct supervisor *supervisor,
				    const struct session_message *message)
{
	struct outcome *outcome = &supervisor->report->outcome;
	const char *command = supervisor->options->command[0];
	struct session_failure failure;
	char text[SESSION_FAILURE_TEXT_BYTES + 1];

	if (session_decode_failure(message->payload, message->length, &failure, text) < 0) {
		outcome_give(outcome, OUTCOME_GUEST_FAILED, 0, "the guest's init is not ours");
		return;
	}
	supervisor->session_over = true;
	if (failure.stage == SESSION_STAGE_EXEC && failure.error == ENOENT)
		outcome_give(outcome, OUTCOME_NOT_FOUND, 0, "%s: command not found in the guest",
			     command);
	else if (failure.stage == SESSION_STAGE_EXEC)
		outcome_give(outcome, OUTCOME_NOT_EXECUTABLE, 0, "%s: cannot be executed: %s",
			     command, strerror((int)failure.error));
	else
		outcome_give(outcome, OUTCOME_GUEST_FAILED, 0,
			     "the guest could not be set up: %s: %s", text,
			     strerror((int)failure.error));
}

static void supervisor_serve_exited(struct supervisor *supervisor,
				    const struct session_message *message)
{
	struct outcome *outcome = &supervisor->report->outcome;
	uint32_t status = 0;

	if (session_decode_value(message->payload, message->length, &status) < 0)
		return;
	supervisor_moment(supervisor, MOMENT_EXITED);
	supervisor->session_over = true;
	supervisor->command_ended = true;
	if (supervisor->grace != GRACE_NONE)
		outcome_give(outcome, OUTCOME_TIME_LIMIT, 0,
			     "the time limit of %u s passed and the command was ended",
			     supervisor->options->timeout_seconds);
	else if (WIFSIGNALED((int)status))
		outcome_give(outcome, OUTCOME_SIGNALED, WTERMSIG((int)status), "%s", "");
	else
		outcome_give(outcome, OUTCOME_EXITED, WEXITSTATUS((int)status), "%s", "");
}

/* The guest's word, taken once for each thing that it can say. */
static void supervisor_serve_memory(struct supervisor *supervisor,
				    const struct session_message *message)
{
	const unsigned long long mib = supervisor->options->memory_mib;
	struct report *report = supervisor->report;
	uint32_t what;

	if (session_decode_value(message->payload, message->length, &what) < 0)
		return;
	if (what == SESSION_MEMORY_OUT && !report->memory_ran_out) {
		report->memory_ran_out = true;
		log_warning("the guest's memory (--memory %lluM) ran out, and its kernel ended a "
			    "process; a larger --memory gives it more",
			    mib);
	} else if ((what == SESSION_MEMORY_HIGH || what == SESSION_MEMORY_VERY_HIGH) &&
		   what > report->memory_percent) {
		report->memory_percent = what;
		log_warning("%u%% of the guest's memory (--memory %lluM) are in use", what, mib);
	}
}

void supervisor_serve_control(struct supervisor *supervisor)
{
	struct session_message message;
	int result = control_flush(&supervisor->control);

	for (int i = 0; i < MESSAGES_AT_ONCE && !supervisor->session_over; i++) {
		result = control_receive(&supervisor->control, &message);
		if (result <= 0)
			break;
		if (message.type == SESSION_HELLO)
			supervisor_serve_hello(supervisor, &message);
		else if (message.type == SESSION_STARTED)
			supervisor_serve_started(supervisor);
		else if (message.type == SESSION_FAILED)
			supervisor_serve_failed(supervisor, &message);
		else if (message.type == SESSION_EXITED)
			supervisor_serve_exited(supervisor, &message);
		else if (message.type == SESSION_MEMORY)
			supervisor_serve_memory(supervisor, &message);
	}
	if (result < 0 && !supervisor->session_over) {
		/* The machine's end, which comes next on the monitor socket, says why. */
		supervisor->session_over = true;
		supervisor_set_timer(supervisor, SESSION_LOST_SECONDS);
	}
}

static void supervisor_keep_console(struct supervisor *supervisor,
				    const struct monitor_packet *packet)
{
	unsigned int length = packet->text_length;

	if (supervisor->options->debug_console) {
		fd_write_full(STDERR_FILENO, packet->text, length);
		return;
	}
	if (supervisor->console_length + length > sizeof(supervisor->console)) {
		unsigned int excess = supervisor->console_length + length -
				      (unsigned int)sizeof(supervisor->console);

		memmove(supervisor->console, supervisor->console + excess,
			supervisor->console_length - excess);
		supervisor->console_length -= excess;
	}
	memcpy(supervisor->console + supervisor->console_length, packet->text, length);
	supervisor->console_length += length;
}

static void supervisor_end_machine(struct supervisor *supervisor,
				   const struct monitor_packet *packet)
{
	struct report *report = supervisor->report;

	report->machine_ended = true;
	report->machine_reason = (enum monitor_reason)packet->reason;
	memcpy(report->machine_text, packet->text, packet->text_length);
	report->machine_text[packet->text_length] = '\0';
	report->counters = packet->counters;
	if (packet->reason != MONITOR_REASON_STOPPED)
		outcome_give(&report->outcome, OUTCOME_MACHINE_FAILED, 0, "%s",
			     report->machine_text);
}

void supervisor_read_monitor(struct supervisor *supervisor)
{
	struct monitor_packet packet;
	ssize_t length;

	for (int i = 0; i < MESSAGES_AT_ONCE && supervisor->monitor_fd >= 0; i++) {
		length = recv(supervisor->monitor_fd, &packet, sizeof(packet), MSG_DONTWAIT);
		if (length < 0 && errno == EAGAIN)
			return;
		/* ECONNRESET, once, is the end of a sender that did not read all it was sent; what
		 * it said before is still there. */
		if (length < 0 && (errno == EINTR || errno == ECONNRESET))
			continue;
		if (length != sizeof(packet) || packet.text_length > sizeof(packet.text)) {
			/* mvagent-vmm is gone (its pidfd says how), or is not itself any more. */
			fd_close(&supervisor->monitor_fd);
			return;
		}
		if (packet.type == MONITOR_RUNNING) {
			supervisor->report->moments[MOMENT_RUNNING] = packet.value;
			record_event(supervisor->record, RECORD_PHASE,
				     record_line_phase(supervisor->report, MOMENT_RUNNING));
		} else if (packet.type == MONITOR_WALLS) {
			supervisor->processes[0].walls = (uint8_t)packet.value;
			supervisor->processes[0].walls_told = true;
		} else if (packet.type == MONITOR_COUNTERS) {
			supervisor->report->has_boot_counters = true;
			supervisor->report->boot_counters = packet.counters;
		} else if (packet.type == MONITOR_CONSOLE) {
			text_make_printable(packet.text, packet.text_length);
			supervisor_keep_console(supervisor, &packet);
		} else if (packet.type == MONITOR_FRAME) {
			network_report_add_frame(&supervisor->report->network, packet.text,
						 packet.text_length);
		} else if (packet.type == MONITOR_ENDED) {
			supervisor_end_machine(supervisor, &packet);
		}
	}
}

void supervisor_send_monitor(struct supervisor *supervisor, const struct monitor_packet *packet)
{
	/* Should it fail, mvagent-vmm is gone or stuck; both are dealt with by waiting for its end.
	 */
	if (supervisor->monitor_fd >= 0)
		send(supervisor->monitor_fd, packet, sizeof(*packet), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool supervisor_command_runs(const struct supervisor *supervisor)
{
	return supervisor->report->moments[MOMENT_STARTED] && !supervisor->session_over;
}

static void supervisor_serve_signal(struct supervisor *supervisor, int number)
{
	uint32_t rows, columns;

	if (number == SIGWINCH) {
		terminal_size(&rows, &columns);
		if (supervisor->terminal && supervisor->report->moments[MOMENT_HELLO])
			supervisor_tell(supervisor, SESSION_WINDOW, rows << 16 | columns);
		return;
	}
	if (number == SIGINT)
		supervisor->interrupts++;
	if (!supervisor->report->moments[MOMENT_STARTED] || supervisor->interrupts > 1)
		outcome_give(&supervisor->report->outcome, OUTCOME_INTERRUPTED, number,
			     "interrupted by SIG%s", sigabbrev_np(number));
	else if (supervisor_command_runs(supervisor))
		supervisor_tell(supervisor, SESSION_SIGNAL, (uint32_t)number);
}

void supervisor_read_signals(struct supervisor *supervisor)
{
	struct signalfd_siginfo info;

	while (read(supervisor->signal_fd, &info, sizeof(info)) == sizeof(info))
		supervisor_serve_signal(supervisor, (int)info.ssi_signo);
}

void supervisor_read_timer(struct supervisor *supervisor)
{
	struct outcome *outcome = &supervisor->report->outcome;

	if (fd_drain_event(supervisor->timer_fd) == 0 || patience_slice_ms(&supervisor->limit))
		return;
	supervisor_set_timer(supervisor, 0);
	if (outcome->kind != OUTCOME_NONE) {
		supervisor->output_overdue = true;
		return;
	}
	if (supervisor->session_over) {
		outcome_give(outcome, OUTCOME_MACHINE_FAILED, 0,
			     "the guest ended its session without a status");
		return;
	}
	if (!supervisor->report->moments[MOMENT_STARTED]) {
		outcome_give(outcome, OUTCOME_MACHINE_FAILED, 0,
			     "the guest did not start the command in time; see --debug-console");
		return;
	}
	switch (supervisor->grace) {
	case GRACE_NONE:
		supervisor->grace = GRACE_TERMINATE;
		supervisor_tell(supervisor, SESSION_SIGNAL, SIGTERM);
		supervisor_set_timer(supervisor, GRACE_SECONDS);
		break;
	case GRACE_TERMINATE:
		supervisor->grace = GRACE_KILL;
		supervisor_tell(supervisor, SESSION_KILL, 0);
		supervisor_set_timer(supervisor, GRACE_SECONDS);
		break;
	case GRACE_KILL:
		outcome_give(outcome, OUTCOME_TIME_LIMIT, 0,
			     "the time limit of %u s passed and the guest did not end the command; "
			     "the machine was stopped",
			     supervisor->options->timeout_seconds);
		break;
	}
}

void supervisor_show_console(struct supervisor *supervisor)
{
	if (supervisor->report->outcome.kind != OUTCOME_MACHINE_FAILED ||
	    !supervisor->console_length)
		return;
	log_error("the last messages of the guest kernel were:");
	fd_write_full(STDERR_FILENO, supervisor->console, supervisor->console_length);
}

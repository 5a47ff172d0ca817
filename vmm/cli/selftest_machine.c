/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/selftest_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/text.h"
#include "vmm/cli/process.h"
#include "vmm/cli/selftest_peers.h"
#include "vmm/cli/supervisor.h"

#define ASK_MS       10ULL   /* between an answer and the next question */
#define ANSWER_MS    3000ULL /* for a question, under attack and on a busy host */
#define STOP_MS      5000ULL /* from the order to stop, or the guest's end, to the last packet */
#define RUN_MS       120000ULL
#define END_MS       10000   /* for the processes, after the last packet */
#define ENDLESS_MS   400ULL  /* how long an attack without end goes on */
#define HANGING_MS   5000ULL /* how long one may take that may hang its own processor */
#define REPORT_BYTES 128U

/* In the order in which their ends tell most: that of one brings on that of the next. */
enum { DISK, SHARE, MACHINE, PROCESSES };

struct selftest_machine {
	struct selftest_setup *setup;
	const struct selftest_attack *attack;
	struct selftest_result *result;
	struct selftest_peers peers;
	struct process processes[PROCESSES];
	int monitor[2], disk[2], share[2]; /* ours or mvagent-vmm's end, and the other */
	int said_fds[PROCESSES];           /* pipes of what they say; not for the user */
	uint64_t nonce, begin, asked, ask_next, stopped; /* clock_monotonic_ns(); 0: not */
	uint64_t console_bytes;
	bool running, reported, over;
	char line[REPORT_BYTES]; /* the one that the guest is writing */
	unsigned int line_length;
};

static void machine_fail(struct selftest_machine *machine, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The first reason stays. */
static void machine_fail(struct selftest_machine *machine, const char *format, ...)
{
	struct selftest_result *result = machine->result;
	va_list arguments;

	if (result->held) {
		va_start(arguments, format);
		vsnprintf(result->why, sizeof(result->why), format, arguments);
		va_end(arguments);
	}
	result->held = false;
}

static int start_program(struct selftest_machine *machine, unsigned int index,
			 struct process_plan *plan)
{
	int error;

	if (machine->setup->no_io_uring)
		process_plan_add(plan, "--no-io-uring");
	if (machine->setup->allow_degraded)
		process_plan_add(plan, "--allow-degraded");
	error = process_start(&machine->processes[index], plan);
	machine->said_fds[index] = fd_take(&machine->processes[index].messages.fd);
	return error;
}

static int start_disk(struct selftest_machine *machine)
{
	struct process_plan plan;
	char path[PATH_MAX];

	if (installation_program(&machine->setup->installation, "mvagent-blk", path) < 0)
		return -ENAMETOOLONG;
	process_plan_init(&plan, "mvagent-blk", path);
	process_plan_add_fd(&plan, "--fd", "", machine->disk[1]);
	process_plan_add_fd(&plan, "--image-fd", "", machine->setup->place.image_fd);
	return start_program(machine, DISK, &plan);
}

static int start_share(struct selftest_machine *machine)
{
	struct process_plan plan;
	char path[PATH_MAX];

	if (installation_program(&machine->setup->installation, "mvagent-fs", path) < 0)
		return -ENAMETOOLONG;
	process_plan_init(&plan, "mvagent-fs", path);
	process_plan_add_fd(&plan, "--fd", "", machine->share[1]);
	process_plan_add_fd(&plan, "--root-fd", "", machine->setup->place.share_fd);
	return start_program(machine, SHARE, &plan);
}

static int start_machine(struct selftest_machine *machine, uint64_t seed)
{
	const struct selftest_setup *setup = machine->setup;
	struct process_plan plan;
	char path[PATH_MAX], prefix[32];

	if (installation_program(&setup->installation, "mvagent-vmm", path) < 0)
		return -ENAMETOOLONG;
	process_plan_init(&plan, "mvagent-vmm", path);
	process_plan_add(&plan, "--memory");
	process_plan_add(&plan, "%u", SELFTEST_MEMORY_MIB);
	process_plan_add(&plan, "--cpus");
	process_plan_add(&plan, "%u", machine->attack->cpus);
	process_plan_add(&plan, "--command-line");
	process_plan_add(&plan, "%llu %llu %s", (unsigned long long)seed,
			 (unsigned long long)machine->nonce, machine->attack->name);
	process_plan_add_fd(&plan, "--monitor-fd", "", machine->monitor[1]);
	process_plan_add_fd(&plan, "--kvm-fd", "", setup->kvm_fd);
	process_plan_add_fd(&plan, "--kernel-fd", "", setup->guest_fd);
	process_plan_add_fd(&plan, "--initrd-fd", "", setup->place.initrd_fd);
	process_plan_add_fd(&plan, "--blk-fd", "", machine->disk[0]);
	process_plan_add_fd(&plan, "--share", "share:", machine->share[0]);
	for (unsigned int i = 0; i < SELFTEST_PORTS; i++) {
		snprintf(prefix, sizeof(prefix), "%u:", SELFTEST_SINK_PORT + i);
		process_plan_add_fd(&plan, "--port", prefix, machine->peers.theirs[i]);
	}
	if (setup->trap || machine->attack->trap)
		process_plan_add(&plan, "--trap-registers");
	return start_program(machine, MACHINE, &plan);
}

static int machine_start(struct selftest_machine *machine, uint64_t seed)
{
	int error = selftest_peers_create(&machine->peers);

	error = error ? error : fd_create_socket_pair(SOCK_SEQPACKET, machine->monitor);
	error = error ? error : fd_create_socket_pair(SOCK_STREAM, machine->disk);
	error = error ? error : fd_create_socket_pair(SOCK_STREAM, machine->share);
	if (!error &&
	    getrandom(&machine->nonce, sizeof(machine->nonce), 0) != sizeof(machine->nonce))
		error = -errno;
	if (error)
		return log_errno(error, "cannot make a machine's sockets");
	error = start_disk(machine);
	error = error ? error : start_share(machine);
	error = error ? error : start_machine(machine, seed);
	fd_close(&machine->monitor[1]);
	fd_close(&machine->disk[0]);
	fd_close(&machine->disk[1]);
	fd_close(&machine->share[0]);
	fd_close(&machine->share[1]);
	selftest_peers_hand_over(&machine->peers);
	return error;
}

static void machine_send(const struct selftest_machine *machine, enum monitor_type type)
{
	const struct monitor_packet packet = {.type = type};

	send(machine->monitor[0], &packet, sizeof(packet), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* One line of the guest, terminated. Only the first report counts: it is the last that the guest
 * says, unless it is the text that goes on without end. */
static void machine_take_line(struct selftest_machine *machine, const char *line)
{
	const size_t length = strlen(machine->attack->word);
	struct selftest_report report;
	uint64_t proof;
	int end = 0;

	if (strncmp(line, SELFTEST_BAD, strlen(SELFTEST_BAD)) == 0)
		machine_fail(machine, "%s", line + strlen(SELFTEST_BAD));
	if (machine->reported || strncmp(line, machine->attack->word, length) != 0 ||
	    sscanf(line + length, " %16lx %16lx %16lx %16lx%n", &report.tries, &report.checks,
		   &report.ports, &proof, &end) != 4 ||
	    line[length + (size_t)end])
		return;
	if (proof != selftest_proof(machine->nonce, &report)) {
		machine_fail(machine, "the guest's report is not that of this machine");
		return;
	}
	machine->reported = true;
	machine->result->report = report;
	if (!machine->attack->stuck)
		selftest_peers_end_stuck(&machine->peers);
}

static void machine_take_console(struct selftest_machine *machine, struct monitor_packet *packet)
{
	machine->console_bytes += packet->text_length;
	text_make_printable(packet->text, packet->text_length);
	for (uint32_t i = 0; i < packet->text_length; i++) {
		if (packet->text[i] == '\n') {
			machine->line[machine->line_length] = '\0';
			machine_take_line(machine, machine->line);
			machine->line_length = 0;
		} else if (machine->line_length + 1 < sizeof(machine->line)) {
			machine->line[machine->line_length++] = packet->text[i];
		}
	}
}

static void machine_take_end(struct selftest_machine *machine, const struct monitor_packet *packet)
{
	struct selftest_result *result = machine->result;

	machine->over = true;
	result->reason = packet->reason;
	result->counters = packet->counters;
	memcpy(result->sentence, packet->text, packet->text_length);
	result->sentence[packet->text_length] = '\0';
}

static void machine_take(struct selftest_machine *machine, struct monitor_packet *packet)
{
	const uint64_t now = clock_monotonic_ns();
	double milliseconds;

	if (packet->type == MONITOR_RUNNING) {
		machine->running = true;
	} else if (packet->type == MONITOR_CONSOLE) {
		machine_take_console(machine, packet);
	} else if (packet->type == MONITOR_ENDED) {
		machine_take_end(machine, packet);
	} else if (packet->type == MONITOR_COUNTERS && machine->asked) {
		milliseconds = (double)(now - machine->asked) / CLOCK_NS_PER_MS;
		if (milliseconds > machine->result->slowest_ms)
			machine->result->slowest_ms = milliseconds;
		machine->asked = 0;
		machine->ask_next = now + ASK_MS * CLOCK_NS_PER_MS;
	}
}

/* Whether more may come. An end with questions unread is told first, and once (ECONNRESET). */
static bool machine_receive(struct selftest_machine *machine)
{
	struct monitor_packet packet;
	bool reset = false;

	for (;;) {
		ssize_t length = recv(machine->monitor[0], &packet, sizeof(packet), MSG_DONTWAIT);

		if (length < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (length < 0 && errno == ECONNRESET && !reset) {
			reset = true;
			continue;
		}
		if (length != sizeof(packet) || packet.text_length > sizeof(packet.text))
			return false;
		if (machine->over)
			machine_fail(machine, "mvagent-vmm said more after its last word");
		machine_take(machine, &packet);
	}
}

/* Asks whether mvagent-vmm still answers, and stops what does not stop by itself. */
static void machine_ask(struct selftest_machine *machine)
{
	const bool endless = strcmp(machine->attack->word, SELFTEST_ENDLESS) == 0;
	const uint64_t now = clock_monotonic_ns();

	if (!machine->running || machine->over || machine->asked || now < machine->ask_next)
		return;
	machine_send(machine, MONITOR_COUNT);
	machine->asked = now;
	if (machine->reported && !machine->stopped &&
	    machine->attack->reasons & SELFTEST_REASON(MONITOR_REASON_STOPPED) &&
	    now - machine->begin > (endless ? ENDLESS_MS : HANGING_MS) * CLOCK_NS_PER_MS) {
		machine_send(machine, MONITOR_STOP);
		machine->stopped = now;
	}
}

static bool machine_overdue(struct selftest_machine *machine)
{
	const bool ending = machine->stopped || (machine->reported && machine->attack->stuck);
	const uint64_t limit = ending ? STOP_MS : ANSWER_MS;
	const uint64_t now = clock_monotonic_ns();

	if (machine->asked && now - machine->asked > limit * CLOCK_NS_PER_MS)
		machine_fail(machine, "mvagent-vmm did not answer for %llu ms",
			     (unsigned long long)limit);
	else if (now - machine->begin > RUN_MS * CLOCK_NS_PER_MS)
		machine_fail(machine, "the guest did not come to an end in %llu s", RUN_MS / 1000);
	else
		return false;
	return true;
}

/* Until mvagent-vmm hangs up, or its time is over. 0, or -EINTR: a signal is to end all. */
static int machine_watch(struct selftest_machine *machine)
{
	struct pollfd polled[SELFTEST_PORTS + 1];
	bool more = true;

	while (more && !machine_overdue(machine)) {
		selftest_peers_fill_poll(&machine->peers, polled);
		polled[SELFTEST_PORTS] =
			(struct pollfd){.fd = machine->monitor[0], .events = POLLIN};
		poll(polled, SELFTEST_PORTS + 1, (int)ASK_MS);
		if (supervisor_pending_signal())
			return -EINTR;
		if (polled[SELFTEST_PORTS].revents)
			more = machine_receive(machine);
		selftest_peers_serve(&machine->peers, polled);
		machine_ask(machine);
		if (machine->attack->cold)
			posix_fadvise(machine->setup->place.image_fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	return 0;
}

/* What a process said, on one line, as far as there is room. */
static void machine_said(const struct selftest_machine *machine, unsigned int index, char *text,
			 size_t size)
{
	ssize_t count = read(machine->said_fds[index], text, size - 1);

	text[count > 0 ? count : 0] = '\0';
	text_make_printable(text, strlen(text));
	for (char *c = text; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
}

/* All processes end by themselves, and well. */
static void machine_end_processes(struct selftest_machine *machine)
{
	char said[600];
	int status;

	for (unsigned int i = 0; i < PROCESSES; i++) {
		struct process *process = &machine->processes[i];
		const char *name = process->name;

		if (process->pidfd < 0)
			continue;
		if (!process_wait(process, machine->result->held ? END_MS : 0, &status)) {
			machine_fail(machine, "%s does not end", name);
			process_kill(process);
			continue;
		}
		machine_said(machine, i, said, sizeof(said));
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
			machine_fail(machine, "%s was killed for a system call: %s", name, said);
		else if (WIFSIGNALED(status))
			machine_fail(machine, "%s was killed by SIG%s: %s", name,
				     sigabbrev_np(WTERMSIG(status)), said);
		else if (status != 0)
			machine_fail(machine, "%s ended with status %d: %s", name,
				     WEXITSTATUS(status), said);
	}
}

/* The guest has done what it was to do, and mvagent-vmm has seen it too. */
static void machine_check_report(struct selftest_machine *machine)
{
	const struct selftest_attack *attack = machine->attack;
	const struct selftest_result *result = machine->result;

	if (!machine->reported)
		machine_fail(machine, "the guest did not report that it did anything");
	else if (result->report.tries < attack->tries)
		machine_fail(machine, "the guest tried only %llu times, of %llu",
			     (unsigned long long)result->report.tries,
			     (unsigned long long)attack->tries);
	else if (result->counters.port_io < result->report.ports)
		machine_fail(machine,
			     "the guest says that it used ports %llu times, mvagent-vmm saw %llu",
			     (unsigned long long)result->report.ports,
			     (unsigned long long)result->counters.port_io);
	else if (result->counters.console_bytes < machine->console_bytes)
		machine_fail(machine, "more text has come than mvagent-vmm has seen written");
}

static void machine_check_end(struct selftest_machine *machine)
{
	const struct selftest_result *result = machine->result;

	if (!machine->over)
		machine_fail(machine, "mvagent-vmm ended without a last word");
	else if (!(machine->attack->reasons & SELFTEST_REASON(result->reason)))
		machine_fail(machine, "the machine ended for another reason: %s", result->sentence);
	else if (!result->sentence[0])
		machine_fail(machine, "the machine ended without a sentence");
}

/* What is not as it was on the host is said beside what was wrong before. */
static void machine_check_place(struct selftest_machine *machine)
{
	struct selftest_result *result = machine->result;
	char changed[sizeof(result->why)];
	const size_t length = result->held ? 0 : strlen(result->why);

	if (!selftest_place_check(&machine->setup->place, changed, sizeof(changed)))
		return;
	if (result->held)
		machine_fail(machine, "%s", changed);
	else
		snprintf(result->why + length, sizeof(result->why) - length, "; and %s", changed);
}

static void machine_destroy(struct selftest_machine *machine)
{
	for (unsigned int i = 0; i < PROCESSES; i++)
		process_kill(&machine->processes[i]);
	selftest_peers_destroy(&machine->peers);
	for (unsigned int i = 0; i < 2; i++) {
		fd_close(&machine->monitor[i]);
		fd_close(&machine->disk[i]);
		fd_close(&machine->share[i]);
	}
	for (unsigned int i = 0; i < PROCESSES; i++)
		fd_close(&machine->said_fds[i]);
}

int selftest_machine_run(struct selftest_setup *setup, const struct selftest_attack *attack,
			 uint64_t seed, struct selftest_result *result)
{
	struct selftest_machine machine = {
		.setup = setup,
		.attack = attack,
		.result = result,
		.processes = {PROCESS_NONE, PROCESS_NONE, PROCESS_NONE},
		.said_fds = {-1, -1, -1},
		.monitor = {-1, -1},
		.disk = {-1, -1},
		.share = {-1, -1},
		.begin = clock_monotonic_ns(),
	};
	int error;

	*result = (struct selftest_result){.held = true};
	selftest_peers_init(&machine.peers);
	error = machine_start(&machine, seed);
	error = error ? error : machine_watch(&machine);
	if (!error) {
		machine_end_processes(&machine);
		machine_check_end(&machine);
		machine_check_report(&machine);
		machine_check_place(&machine);
	}
	result->seconds = (double)(clock_monotonic_ns() - machine.begin) / 1e9;
	machine_destroy(&machine);
	return error;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"

/*
 * loglevel=1: a good boot prints nothing, a panic is printed whatever the level. panic=-1: reset at
 * once. reboot=k: by the keyboard controller, one port write. earlyprintk: the machine's write-only
 * console.
 */
#define COMMAND_LINE_BASE "panic=-1 reboot=k earlyprintk=serial,keep tsc=reliable swiotlb=noforce"

#define READY_POLL_MS 100

void run_sockets_init(struct run_sockets *sockets)
{
	memset(sockets, -1, sizeof(*sockets));
}

int run_sockets_create(struct run_sockets *sockets, unsigned int share_count, bool relay,
		       bool secret, bool sign)
{
	int error = fd_create_socket_pair(SOCK_SEQPACKET, sockets->monitor);

	error = error ? error : fd_create_socket_pair(SOCK_STREAM, sockets->control);
	error = error ? error : fd_create_socket_pair(SOCK_STREAM, sockets->blk);
	error = error ? error : fd_create_socket_pair(SOCK_STREAM, sockets->names);
	if (!error && relay)
		error = fd_create_socket_pair(SOCK_SEQPACKET, sockets->lend);
	if (!error && relay)
		error = fd_create_socket_pair(SOCK_SEQPACKET, sockets->events);
	if (!error && secret)
		error = fd_create_socket_pair(SOCK_SEQPACKET, sockets->secret);
	if (!error && sign)
		error = fd_create_socket_pair(SOCK_SEQPACKET, sockets->sign);
	for (unsigned int i = 0; !error && i < STREAM_COUNT; i++)
		error = fd_create_socket_pair(SOCK_STREAM, sockets->streams[i]);
	for (unsigned int i = 0; !error && i < share_count; i++)
		error = fd_create_socket_pair(SOCK_STREAM, sockets->fs[i]);
	for (unsigned int i = 0; !error && i < share_count; i++)
		error = fd_create_socket_pair(SOCK_STREAM, sockets->notify[i]);
	for (unsigned int i = 0; !error && i < share_count; i++)
		error = fd_create_socket_pair(SOCK_SEQPACKET, sockets->reports[i]);
	return error ? log_errno(error, "cannot make the sockets between mvagent's processes") : 0;
}

void run_sockets_close_children_ends(struct run_sockets *sockets)
{
	fd_close(&sockets->monitor[1]);
	fd_close(&sockets->control[1]);
	fd_close(&sockets->blk[0]);
	fd_close(&sockets->blk[1]);
	fd_close(&sockets->names[1]);
	fd_close(&sockets->lend[0]);
	fd_close(&sockets->lend[1]);
	fd_close(&sockets->events[1]);
	fd_close(&sockets->secret[0]);
	fd_close(&sockets->secret[1]);
	fd_close(&sockets->sign[0]);
	fd_close(&sockets->sign[1]);
	for (unsigned int i = 0; i < STREAM_COUNT; i++)
		fd_close(&sockets->streams[i][1]);
	for (unsigned int i = 0; i < LIMIT_SHARES; i++) {
		fd_close(&sockets->fs[i][0]);
		fd_close(&sockets->fs[i][1]);
		fd_close(&sockets->notify[i][0]);
		fd_close(&sockets->notify[i][1]);
		fd_close(&sockets->reports[i][1]);
	}
}

/* Init takes the size of what lives in memory from there (guest/init.c). */
static void add_command_line(struct process_plan *plan, const struct run_options *options)
{
	char scratch[64] = "";

	if (options->root.scratch_mib)
		snprintf(scratch, sizeof(scratch), " mvagent_memory=%lluM",
			 (unsigned long long)options->root.scratch_mib);
	process_plan_add(plan, "%s %s%s", options->debug_console ? "loglevel=7" : "loglevel=1",
			 COMMAND_LINE_BASE, scratch);
}

static int begin_plan(const struct run_parts *parts, struct process_plan *plan, const char *name)
{
	char path[PATH_MAX];

	if (installation_program(parts->installation, name, path) < 0)
		return -ENAMETOOLONG;
	process_plan_init(plan, name, path);
	plan->cgroup_fd = parts->cgroup_fd;
	return 0;
}

static void allow_degraded(struct process_plan *plan)
{
	process_plan_add(plan, "--allow-degraded");
	plan->allow_degraded = true;
}

/* The machine's process gets its end of everything. */
static int start_vmm(const struct run_parts *parts, struct process *process)
{
	static const unsigned int ports[STREAM_COUNT] = {SESSION_PORT_STDIN, SESSION_PORT_STDOUT,
							 SESSION_PORT_STDERR};
	const struct run_options *options = parts->options;
	struct process_plan plan;
	char prefix[64];

	if (begin_plan(parts, &plan, "mvagent-vmm") < 0)
		return -ENAMETOOLONG;
	process_plan_add(&plan, "--memory");
	process_plan_add(&plan, "%llu", (unsigned long long)options->memory_mib);
	process_plan_add(&plan, "--cpus");
	process_plan_add(&plan, "%u", options->cpus);
	process_plan_add(&plan, "--command-line");
	add_command_line(&plan, options);
	process_plan_add_fd(&plan, "--monitor-fd", "", parts->sockets->monitor[1]);
	process_plan_add_fd(&plan, "--kvm-fd", "", parts->inputs->kvm_fd);
	process_plan_add_fd(&plan, "--kernel-fd", "", parts->inputs->kernel_fd);
	process_plan_add_fd(&plan, "--initrd-fd", "", parts->inputs->initrd_fd);
	process_plan_add_fd(&plan, "--blk-fd", "", parts->sockets->blk[0]);
	for (unsigned int i = 0; i < parts->shares->count; i++) {
		snprintf(prefix, sizeof(prefix), "%s:", parts->shares->directories[i].tag);
		process_plan_add_fd(&plan, "--share", prefix, parts->sockets->fs[i][0]);
	}
	snprintf(prefix, sizeof(prefix), "%d:", SESSION_PORT_CONTROL);
	process_plan_add_fd(&plan, "--port", prefix, parts->sockets->control[1]);
	for (unsigned int i = 0; i < STREAM_COUNT; i++) {
		snprintf(prefix, sizeof(prefix), "%u:", ports[i]);
		process_plan_add_fd(&plan, "--port", prefix, parts->sockets->streams[i][1]);
	}
	for (unsigned int i = 0; !options->no_notes && i < parts->shares->count; i++) {
		snprintf(prefix, sizeof(prefix), "%u:", SESSION_PORT_NOTIFY + i);
		process_plan_add_fd(&plan, "--port", prefix, parts->sockets->notify[i][0]);
	}
	snprintf(prefix, sizeof(prefix), "%d:", SESSION_PORT_NAMES);
	process_plan_add_fd(&plan, "--port", prefix, parts->sockets->names[1]);
	snprintf(prefix, sizeof(prefix), "%d:", SESSION_PORT_RELAY);
	if (parts->sockets->lend[0] >= 0)
		process_plan_add_fd(&plan, "--lender", prefix, parts->sockets->lend[0]);
	if (options->trap_registers)
		process_plan_add(&plan, "--trap-registers");
	if (options->no_io_uring)
		process_plan_add(&plan, "--no-io-uring");
	if (options->allow_degraded)
		allow_degraded(&plan);
	if (options->verbose)
		process_plan_add(&plan, "--verbose");
	return process_start(process, &plan);
}

static int start_blk(const struct run_parts *parts, int ready_fd, struct process *process)
{
	struct process_plan plan;

	if (begin_plan(parts, &plan, "mvagent-blk") < 0)
		return -ENAMETOOLONG;
	process_plan_add_fd(&plan, "--fd", "", parts->sockets->blk[1]);
	process_plan_add_fd(&plan, "--ready-fd", "", ready_fd);
	if (parts->options->root.image) {
		process_plan_add_fd(&plan, "--image-fd", "", parts->inputs->image_fd);
		run_image_plan(&parts->inputs->image, &plan);
	} else {
		run_root_plan(&parts->options->root, &plan);
	}
	if (parts->inputs->cache_fd >= 0)
		process_plan_add_fd(&plan, "--cache-fd", "", parts->inputs->cache_fd);
	if (!parts->options->quiet && isatty(STDERR_FILENO))
		process_plan_add(&plan, "--progress");
	if (parts->options->no_io_uring)
		process_plan_add(&plan, "--no-io-uring");
	if (parts->options->allow_degraded)
		allow_degraded(&plan);
	if (parts->options->verbose)
		process_plan_add(&plan, "--verbose");
	return process_start(process, &plan);
}

static int start_fs(const struct run_parts *parts, unsigned int index, struct process *process)
{
	const struct shared_directory *directory = &parts->shares->directories[index];
	struct process_plan plan;

	if (begin_plan(parts, &plan, "mvagent-fs") < 0)
		return -ENAMETOOLONG;
	process_plan_add_fd(&plan, "--fd", "", parts->sockets->fs[index][1]);
	process_plan_add_fd(&plan, "--root-fd", "", directory->directory_fd);
	process_plan_add(&plan, "--guest-uid");
	process_plan_add(&plan, "%u", parts->identity->uid);
	process_plan_add(&plan, "--guest-gid");
	process_plan_add(&plan, "%u", parts->identity->gid);
	if (!parts->options->no_notes)
		process_plan_add_fd(&plan, "--notify-fd", "", parts->sockets->notify[index][1]);
	if (!parts->options->no_record)
		process_plan_add_fd(&plan, "--record-fd", "", parts->sockets->reports[index][1]);
	process_plan_add(&plan, "--cache");
	process_plan_add(&plan, "%s", fs_cache_name(parts->options->cache));
	for (unsigned int i = 0; i < parts->options->rule_count; i++) {
		process_plan_add(&plan, "%s", parts->options->rules[i].option);
		process_plan_add(&plan, "%s", parts->options->rules[i].pattern);
	}
	for (unsigned int i = 0; i < directory->hidden_count; i++) {
		process_plan_add(&plan, "--hide");
		process_plan_add(&plan, "%s", directory->hidden[i]);
	}
	if (directory->read_only)
		process_plan_add(&plan, "--read-only");
	if (directory->review) {
		process_plan_add_fd(&plan, "--upper-fd", "", directory->upper_fd);
		process_plan_add_fd(&plan, "--base-fd", "", directory->base_fd);
	}
	if (parts->options->quiet)
		process_plan_add(&plan, "--quiet");
	if (parts->options->no_io_uring)
		process_plan_add(&plan, "--no-io-uring");
	if (parts->options->allow_degraded)
		allow_degraded(&plan);
	if (parts->options->verbose)
		process_plan_add(&plan, "--verbose");
	return process_start(process, &plan);
}

static int start_relay(const struct run_parts *parts, struct process *process)
{
	FD_CLEANUP int settings_fd = relay_settings_write(&parts->options->network.settings);
	struct process_plan plan;

	if (settings_fd < 0)
		return settings_fd;
	if (begin_plan(parts, &plan, "mvagent-relay") < 0)
		return -ENAMETOOLONG;
	plan.network = true;
	process_plan_add_fd(&plan, "--settings-fd", "", settings_fd);
	process_plan_add_fd(&plan, "--lender-fd", "", parts->sockets->lend[1]);
	process_plan_add_fd(&plan, "--event-fd", "", parts->sockets->events[1]);
	if (parts->sockets->secret[0] >= 0)
		process_plan_add_fd(&plan, "--secret-fd", "", parts->sockets->secret[0]);
	if (parts->sockets->sign[0] >= 0)
		process_plan_add_fd(&plan, "--sign-fd", "", parts->sockets->sign[0]);
	if (parts->options->allow_degraded)
		process_plan_add(&plan, "--allow-degraded");
	if (parts->options->verbose)
		process_plan_add(&plan, "--verbose");
	return process_start(process, &plan);
}

/* Gets the secrets, and is the only one who does. */
static int start_secret(const struct run_parts *parts, int ready_fd, struct process *process)
{
	FD_CLEANUP int secrets_fd = secret_set_write(parts->options->secrets.set);
	FD_CLEANUP int trust_fd = run_secrets_open_trust();
	struct process_plan plan;

	if (secrets_fd < 0)
		return log_errno(secrets_fd, "cannot hand the secrets over");
	if (trust_fd < 0)
		return trust_fd;
	if (begin_plan(parts, &plan, "mvagent-secret") < 0)
		return -ENAMETOOLONG;
	process_plan_add_fd(&plan, "--secrets-fd", "", secrets_fd);
	process_plan_add_fd(&plan, "--trust-fd", "", trust_fd);
	process_plan_add_fd(&plan, "--relay-fd", "", parts->sockets->secret[1]);
	process_plan_add_fd(&plan, "--event-fd", "", parts->sockets->events[1]);
	process_plan_add_fd(&plan, "--ready-fd", "", ready_fd);
	if (parts->options->allow_degraded)
		allow_degraded(&plan);
	if (parts->options->verbose)
		process_plan_add(&plan, "--verbose");
	return process_start(process, &plan);
}

/* Gets the connection to the user's ssh-agent, and is the only one who does. */
static int start_sign(const struct run_parts *parts, struct process *process)
{
	FD_CLEANUP int policy_fd = sign_policy_write(parts->options->sign.policy);
	FD_CLEANUP int agent_fd = -1;
	struct process_plan plan;

	if (policy_fd < 0)
		return log_errno(policy_fd, "cannot tell mvagent-sign its rules");
	agent_fd = run_sign_open_agent();
	if (agent_fd < 0)
		return agent_fd;
	if (begin_plan(parts, &plan, "mvagent-sign") < 0)
		return -ENAMETOOLONG;
	process_plan_add_fd(&plan, "--policy-fd", "", policy_fd);
	process_plan_add_fd(&plan, "--relay-fd", "", parts->sockets->sign[1]);
	process_plan_add_fd(&plan, "--event-fd", "", parts->sockets->events[1]);
	process_plan_add_fd(&plan, "--agent-fd", "", agent_fd);
	if (parts->options->allow_degraded)
		allow_degraded(&plan);
	if (parts->options->verbose)
		process_plan_add(&plan, "--verbose");
	return process_start(process, &plan);
}

/* Reads its authority's certificate, which ends when it closes the pipe. */
static int read_authority(int fd, struct process *process, char text[LIMIT_AUTHORITY_BYTES])
{
	size_t length = 0;
	ssize_t count = 1;

	while (count && length < LIMIT_AUTHORITY_BYTES - 1) {
		count = read(fd, text + length, LIMIT_AUTHORITY_BYTES - 1 - length);
		if (count < 0 && errno != EINTR)
			break;
		length += count > 0 ? (size_t)count : 0;
	}
	text[length] = '\0';
	if (length)
		return 0;
	/* Its own words are above. */
	messages_finish(&process->messages);
	log_error("mvagent-secret cannot use the secrets");
	return -EIO;
}

static int start_secrets(const struct run_parts *parts, struct supervisor *supervisor)
{
	struct process *process = &supervisor->processes[supervisor->process_count];
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return log_errno(-errno, "cannot start mvagent-secret");
	error = start_secret(parts, ends[1], process);
	fd_close(&ends[1]);
	if (!error) {
		supervisor->process_count++;
		error = read_authority(ends[0], process, parts->authority);
	}
	fd_close(&ends[0]);
	return error;
}

/* A line on the terminal that the next one overwrites; 0 takes it away. */
static void show_progress(uint32_t names)
{
	if (names)
		dprintf(STDERR_FILENO, "\rmvagent: looking through this host's tools: %u names",
			names);
	else
		dprintf(STDERR_FILENO, "\r\033[K");
}

/* One turn of waiting: 1 when the root can be served, 0 to go on, -errno. */
static int await_root(int ready_fd, struct process *process, bool *progress_shown)
{
	struct pollfd polled[] = {{.fd = ready_fd, .events = POLLIN},
				  {.fd = process->messages.fd, .events = POLLIN}};
	int count = poll(polled, 2, READY_POLL_MS);
	uint32_t names;

	if (count < 0 && errno != EINTR)
		return log_errno(-errno, "cannot wait for mvagent-blk");
	if (supervisor_pending_signal())
		return -EINTR;
	if (count <= 0)
		return 0;
	if (*progress_shown)
		show_progress(0);
	*progress_shown = false;
	messages_pass(&process->messages);
	if (!polled[0].revents)
		return 0;
	if (fd_read_full(ready_fd, &names, sizeof(names)) < 0) {
		/* Its own words are above. */
		messages_finish(&process->messages);
		log_error("mvagent-blk cannot serve the root file system");
		return -EIO;
	}
	if (names) {
		show_progress(names);
		*progress_shown = true;
	}
	return names == 0;
}

/* Waits until the root can be served: looking through the host's directories takes a while. The
 * signals that end a run are blocked; one that came ends the wait, with -EINTR. */
static int wait_until_ready(int ready_fd, struct process *process, struct ready_message *message)
{
	bool progress_shown = false;
	int result = 0;

	while (!result)
		result = await_root(ready_fd, process, &progress_shown);
	if (progress_shown)
		show_progress(0);
	/* Its first member, a zero, was the last of the numbers. */
	if (result > 0 &&
	    fd_read_full(ready_fd, &message->walls,
			 sizeof(*message) - offsetof(struct ready_message, walls)) < 0)
		result = log_errno(-EPROTO, "mvagent-blk cannot serve the root file system");
	return result < 0 ? result : 0;
}

static int start_root(const struct run_parts *parts, struct process *process,
		      struct ready_message *message)
{
	int ends[2];
	int error;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return log_errno(-errno, "cannot start mvagent-blk");
	error = start_blk(parts, ends[1], process);
	fd_close(&ends[1]);
	if (!error)
		error = wait_until_ready(ends[0], process, message);
	process->walls = message->walls;
	process->walls_told = !error;
	fd_close(&ends[0]);
	return error;
}

int run_start(const struct run_parts *parts, struct supervisor *supervisor)
{
	int error;

	/* [0] is the machine: it is the one to be told to stop. The root comes first all the same:
	 * it may take longer to be ready than a front end would wait. */
	supervisor->processes[0] = supervisor->processes[1] = PROCESS_NONE;
	supervisor->process_count = 2;
	error = start_root(parts, &supervisor->processes[1], &supervisor->ready);
	if (error)
		return error;
	error = start_vmm(parts, &supervisor->processes[0]);
	if (error)
		return error;
	for (unsigned int i = 0; i < parts->shares->count; i++) {
		error = start_fs(parts, i, &supervisor->processes[supervisor->process_count]);
		if (error)
			return error;
		supervisor->process_count++;
	}
	if (parts->sockets->lend[0] >= 0) {
		error = start_relay(parts, &supervisor->processes[supervisor->process_count]);
		if (error)
			return error;
		supervisor->process_count++;
	}
	if (parts->sockets->sign[0] >= 0) {
		error = start_sign(parts, &supervisor->processes[supervisor->process_count]);
		if (error)
			return error;
		supervisor->process_count++;
	}
	return parts->sockets->secret[0] >= 0 ? start_secrets(parts, supervisor) : 0;
}

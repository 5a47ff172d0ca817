/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/installation.h"
#include "vmm/cli/kvm_probe.h"
#include "vmm/cli/run_shares.h"
#include "vmm/cli/supervisor.h"

/*
 * loglevel=1: a good boot prints nothing, a panic is printed whatever the level. panic=-1: reset at
 * once. reboot=k: by the keyboard controller, one port write. earlyprintk: the machine's write-only
 * console.
 */
#define COMMAND_LINE_BASE "panic=-1 reboot=k earlyprintk=serial,keep tsc=reliable swiotlb=noforce"

struct run {
	struct run_options options;
	struct installation installation;
	struct guest_identity identity;
	struct run_shares shares;
	struct report report;
	struct report_file json;
	bool outcome_printed; /* its sentence is on standard error already */
	/* Inputs, opened here and inherited by those who need them. */
	int kvm_fd, kernel_fd, initrd_fd, image_fd;
	/* Sockets: [0] is the supervisor's or mvagent-vmm's end, [1] the other. */
	int monitor[2], control[2], streams[STREAM_COUNT][2];
	int blk[2], fs[LIMIT_SHARES][2];
};

static int run_open_file(const char *given, const char *option, const struct installation *where,
			 const char *installed, int *fd)
{
	char path[PATH_MAX];

	if (!given && installation_file(where, installed, path) < 0)
		return -ENAMETOOLONG;
	*fd = open(given ? given : path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (*fd >= 0)
		return 0;
	if (given)
		return log_errno(-errno, "%s %s", option, given);
	log_errno(-errno, "cannot open %s", path);
	if (errno == ENOENT)
		log_error(
			"this installation is not complete: run 'make' (or 'make install') again");
	return -ENOENT;
}

/* What a file must begin with to be of use; the parts that read it check the rest. */
struct file_kind {
	const char *name; /* "an EROFS image" */
	off_t offset;
	uint8_t magic[4];
};

static const struct file_kind kernel_kind = {
	"an uncompressed vmlinux (ELF)", 0, {0x7f, 'E', 'L', 'F'}};
/* EROFS_SUPER_OFFSET and EROFS_SUPER_MAGIC_V1, little endian. */
static const struct file_kind image_kind = {"an EROFS image", 1024, {0xe2, 0xe1, 0xf5, 0xe0}};

static int run_check_file(int fd, const char *given, const char *option,
			  const struct file_kind *kind)
{
	uint8_t magic[sizeof(kind->magic)];
	int error = fd_pread_full(fd, magic, sizeof(magic), kind->offset);

	if (!error && memcmp(magic, kind->magic, sizeof(magic)) == 0)
		return 0;
	log_error("%s%s%s is not %s", given ? option : "the installation's file for ",
		  given ? " " : option, given ? given : "", kind->name);
	return -EINVAL;
}

static int run_open_inputs(struct run *run)
{
	const struct run_options *options = &run->options;
	const struct installation *where = &run->installation;
	struct kvm_probe probe;
	int error;

	error = run_open_file(options->kernel, "--kernel", where, "vmlinux", &run->kernel_fd);
	if (!error)
		error = run_check_file(run->kernel_fd, options->kernel, "--kernel", &kernel_kind);
	if (!error)
		error = run_open_file(NULL, NULL, where, "initramfs.cpio", &run->initrd_fd);
	if (!error)
		error = run_open_file(options->root, "--root", where, "base.erofs", &run->image_fd);
	if (!error)
		error = run_check_file(run->image_fd, options->root, "--root", &image_kind);
	if (error)
		return error;
	kvm_probe(&probe, 0);
	run->kvm_fd = probe.fd;
	if (probe.state == KVM_STATE_HARDWARE)
		return 0;
	log_error("%s", probe.sentence);
	return -ENODEV;
}

static int run_make_sockets(struct run *run)
{
	int error = fd_create_socket_pair(SOCK_SEQPACKET, run->monitor);

	error = error ? error : fd_create_socket_pair(SOCK_STREAM, run->control);
	error = error ? error : fd_create_socket_pair(SOCK_STREAM, run->blk);
	for (unsigned int i = 0; !error && i < STREAM_COUNT; i++)
		error = fd_create_socket_pair(SOCK_STREAM, run->streams[i]);
	for (unsigned int i = 0; !error && i < run->shares.count; i++)
		error = fd_create_socket_pair(SOCK_STREAM, run->fs[i]);
	return error ? log_errno(error, "cannot make the sockets between mvagent's processes") : 0;
}

/* The machine's process gets its end of everything. */
static int run_start_vmm(struct run *run, struct process *process)
{
	static const unsigned int ports[STREAM_COUNT] = {SESSION_PORT_STDIN, SESSION_PORT_STDOUT,
							 SESSION_PORT_STDERR};
	const struct run_options *options = &run->options;
	struct process_plan plan;
	char path[PATH_MAX], prefix[64];

	if (installation_program(&run->installation, "mvagent-vmm", path) < 0)
		return -ENAMETOOLONG;
	process_plan_init(&plan, "mvagent-vmm", path);
	process_plan_add(&plan, "--memory");
	process_plan_add(&plan, "%llu", (unsigned long long)options->memory_mib);
	process_plan_add(&plan, "--cpus");
	process_plan_add(&plan, "%u", options->cpus);
	process_plan_add(&plan, "--command-line");
	process_plan_add(&plan, "%s %s", options->debug_console ? "loglevel=7" : "loglevel=1",
			 COMMAND_LINE_BASE);
	process_plan_add_fd(&plan, "--monitor-fd", "", run->monitor[1]);
	process_plan_add_fd(&plan, "--kvm-fd", "", run->kvm_fd);
	process_plan_add_fd(&plan, "--kernel-fd", "", run->kernel_fd);
	process_plan_add_fd(&plan, "--initrd-fd", "", run->initrd_fd);
	process_plan_add_fd(&plan, "--blk-fd", "", run->blk[0]);
	for (unsigned int i = 0; i < run->shares.count; i++) {
		snprintf(prefix, sizeof(prefix), "%s:", run->shares.directories[i].tag);
		process_plan_add_fd(&plan, "--share", prefix, run->fs[i][0]);
	}
	snprintf(prefix, sizeof(prefix), "%d:", SESSION_PORT_CONTROL);
	process_plan_add_fd(&plan, "--port", prefix, run->control[1]);
	for (unsigned int i = 0; i < STREAM_COUNT; i++) {
		snprintf(prefix, sizeof(prefix), "%u:", ports[i]);
		process_plan_add_fd(&plan, "--port", prefix, run->streams[i][1]);
	}
	if (options->trap_registers)
		process_plan_add(&plan, "--trap-registers");
	if (options->no_io_uring)
		process_plan_add(&plan, "--no-io-uring");
	if (options->verbose)
		process_plan_add(&plan, "--verbose");
	return process_start(process, &plan);
}

static int run_start_blk(struct run *run, struct process *process)
{
	struct process_plan plan;
	char path[PATH_MAX];

	if (installation_program(&run->installation, "mvagent-blk", path) < 0)
		return -ENAMETOOLONG;
	process_plan_init(&plan, "mvagent-blk", path);
	process_plan_add_fd(&plan, "--fd", "", run->blk[1]);
	process_plan_add_fd(&plan, "--image-fd", "", run->image_fd);
	if (run->options.no_io_uring)
		process_plan_add(&plan, "--no-io-uring");
	if (run->options.verbose)
		process_plan_add(&plan, "--verbose");
	return process_start(process, &plan);
}

static int run_start_fs(struct run *run, unsigned int index, struct process *process)
{
	const struct shared_directory *directory = &run->shares.directories[index];
	struct process_plan plan;
	char path[PATH_MAX];

	if (installation_program(&run->installation, "mvagent-fs", path) < 0)
		return -ENAMETOOLONG;
	process_plan_init(&plan, "mvagent-fs", path);
	process_plan_add_fd(&plan, "--fd", "", run->fs[index][1]);
	process_plan_add_fd(&plan, "--root-fd", "", directory->directory_fd);
	process_plan_add(&plan, "--guest-uid");
	process_plan_add(&plan, "%u", run->identity.agent_uid);
	process_plan_add(&plan, "--guest-gid");
	process_plan_add(&plan, "%u", run->identity.agent_gid);
	if (directory->read_only)
		process_plan_add(&plan, "--read-only");
	if (run->options.no_io_uring)
		process_plan_add(&plan, "--no-io-uring");
	if (run->options.verbose)
		process_plan_add(&plan, "--verbose");
	return process_start(process, &plan);
}

static int run_start_processes(struct run *run, struct supervisor *supervisor)
{
	int error;

	/* [0] is the machine: it is the one to be told to stop. */
	error = run_start_vmm(run, &supervisor->processes[0]);
	if (error)
		return error;
	supervisor->process_count = 1;
	error = run_start_blk(run, &supervisor->processes[1]);
	if (error)
		return error;
	supervisor->process_count = 2;
	for (unsigned int i = 0; i < run->shares.count; i++) {
		error = run_start_fs(run, i, &supervisor->processes[supervisor->process_count]);
		if (error)
			return error;
		supervisor->process_count++;
	}
	return 0;
}

/* What the children have now is theirs alone: a process that ends must be seen as hung up. */
static void run_close_children_ends(struct run *run)
{
	fd_close(&run->kvm_fd);
	fd_close(&run->kernel_fd);
	fd_close(&run->initrd_fd);
	fd_close(&run->image_fd);
	fd_close(&run->monitor[1]);
	fd_close(&run->control[1]);
	fd_close(&run->blk[0]);
	fd_close(&run->blk[1]);
	for (unsigned int i = 0; i < STREAM_COUNT; i++)
		fd_close(&run->streams[i][1]);
	for (unsigned int i = 0; i < LIMIT_SHARES; i++) {
		fd_close(&run->fs[i][0]);
		fd_close(&run->fs[i][1]);
	}
}

static int run_encode_start(const struct run *run, struct supervisor *supervisor)
{
	struct session_share shares[LIMIT_SHARES];
	struct session_start start = {
		.flags = supervisor->terminal ? SESSION_FLAG_TERMINAL : 0,
		.uid = run->identity.uid,
		.gid = run->identity.gid,
		.user = run->identity.user,
		.home = run->identity.home,
		.host_name = run->identity.host_name,
		.directory = run->options.working_directory,
		.share_count = run->shares.count,
		.shares = shares,
		.arguments = (const char *const *)run->options.command,
		.variable_count = run->identity.variable_count,
		.variables = (const char *const *)run->identity.variables,
	};
	int error;

	if (!start.directory)
		start.directory = run->shares.first ? run->shares.first : run->identity.home;
	terminal_size(&start.rows, &start.columns);
	while (run->options.command[start.argument_count])
		start.argument_count++;
	for (unsigned int i = 0; i < run->shares.count; i++) {
		const struct shared_directory *directory = &run->shares.directories[i];

		shares[i] = (struct session_share){directory->tag, directory->path,
						   directory->read_only};
	}
	error = session_encode_start(&start, &supervisor->start_message, &supervisor->start_length);
	if (error == -E2BIG) {
		log_error("the command's arguments and variables are too long: the guest takes %u "
			  "MiB "
			  "in all",
			  LIMIT_SESSION_MESSAGE_BYTES >> 20);
		return error;
	}
	return error ? log_errno(error, "cannot tell the guest its command") : 0;
}

/* Everything before the machine runs. 0 or -errno with the sentence printed. */
static int run_prepare(struct run *run, struct supervisor *supervisor)
{
	int error = installation_find(&run->installation);

	supervisor->terminal = terminal_present();
	error = error ? error : run_shares_open(&run->shares, &run->options);
	error = error ? error : run_open_inputs(run);
	error = error ? error
		      : guest_identity_create(&run->identity, &run->options, supervisor->terminal);
	error = error ? error : run_encode_start(run, supervisor);
	error = error ? error : run_make_sockets(run);
	error = error ? error : run_start_processes(run, supervisor);
	return error;
}

static void run_fill_supervisor(struct run *run, struct supervisor *supervisor)
{
	supervisor->options = &run->options;
	supervisor->identity = &run->identity;
	supervisor->report = &run->report;
	supervisor->monitor_fd = fd_take(&run->monitor[0]);
	control_init(&supervisor->control, run->control[0]);
	for (unsigned int i = 0; i < STREAM_COUNT; i++)
		supervisor->stream_fds[i] = run->streams[i][0];
}

static int run_finish(struct run *run)
{
	struct report *report = &run->report;

	report->moments[MOMENT_END] = report_clock();
	if (report->outcome.sentence[0] && !run->outcome_printed)
		log_error("%s", report->outcome.sentence);
	report_log(report);
	if (run->options.json && report_write_json(report, &run->json) < 0)
		return EXIT_MVAGENT;
	return outcome_exit_status(&report->outcome);
}

static struct run *run_create(void)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->json = REPORT_FILE_NONE;
	run->kvm_fd = run->kernel_fd = run->initrd_fd = run->image_fd = -1;
	memset(run->monitor, -1, sizeof(run->monitor));
	memset(run->control, -1, sizeof(run->control));
	memset(run->streams, -1, sizeof(run->streams));
	memset(run->blk, -1, sizeof(run->blk));
	memset(run->fs, -1, sizeof(run->fs));
	return run;
}

static void run_destroy(struct run *run)
{
	run_close_children_ends(run);
	fd_close(&run->monitor[0]);
	fd_close(&run->control[0]);
	/* The streams' own ends stay open: a thread may still wait on standard input, and ends with
	 * us. */
	report_file_close(&run->json);
	run_shares_destroy(&run->shares);
	guest_identity_destroy(&run->identity);
	run_options_free(&run->options);
	free(run);
}

/* With the options known: the run itself. */
static int run_supervise(struct run *run, struct supervisor *supervisor)
{
	if (run->options.json && report_file_open(&run->json, run->options.json) < 0)
		return EXIT_MVAGENT;
	supervisor_block_signals();
	if (run_prepare(run, supervisor) < 0) {
		outcome_give(&run->report.outcome, OUTCOME_SETUP_FAILED, 0, "%s", log_last_error());
		run->outcome_printed = true;
		for (unsigned int i = 0; i < supervisor->process_count; i++)
			process_kill(&supervisor->processes[i]);
		free(supervisor->start_message);
		return run_finish(run);
	}
	run_fill_supervisor(run, supervisor);
	run_close_children_ends(run);
	supervisor_run(supervisor);
	fd_close(&supervisor->monitor_fd);
	control_destroy(&supervisor->control);
	return run_finish(run);
}

int run_command(int argc, char **argv)
{
	struct supervisor *supervisor;
	struct run *run = run_create();
	int status = EXIT_MVAGENT;

	if (!run) {
		log_errno(-ENOMEM, "cannot begin");
		return EXIT_MVAGENT;
	}
	run->report.moments[MOMENT_BEGIN] = report_clock();
	switch (run_options_parse(&run->options, argc, argv)) {
	case RUN_OPTIONS_DONE:
		status = 0;
		break;
	case RUN_OPTIONS_ERROR:
		break;
	case RUN_OPTIONS_RUN:
		if (run->options.verbose || run->options.quiet)
			log_set_level(run->options.verbose ? LOG_VERBOSE : LOG_QUIET);
		/* Not freed: a stream's thread may use it until the process ends. */
		supervisor = calloc(1, sizeof(*supervisor));
		if (supervisor) /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
			status = run_supervise(run, supervisor);
		break;
	}
	run_destroy(run);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/arguments.h"
#include "vmm/cli/cache_directory.h"
#include "vmm/cli/git_identity.h"
#include "vmm/cli/run_record.h"
#include "vmm/cli/run_review.h"
#include "vmm/cli/run_start.h"
#include "vmm/jail/jail.h"

struct run {
	struct run_options options;
	struct installation installation;
	struct guest_identity identity;
	struct run_shares shares;
	struct run_review review;
	struct run_record record;
	char **arguments;        /* of `mvagent run` */
	struct run_probe *probe; /* in place of a command, or NULL */
	struct report report;
	struct report_file json;
	struct run_inputs inputs;
	struct run_sockets sockets;
	struct cgroup cgroup;
	char git_config[GIT_IDENTITY_BYTES];   /* for the guest's git; "": nothing */
	char authority[LIMIT_AUTHORITY_BYTES]; /* of the run, a certificate; "": there is none */
};

/* The command, or what the guest's init is to run in its place; NULL-terminated. Allocated. */
static const char **make_arguments(const struct run *run, char numbers[2][16])
{
	const char *const *given =
		run->probe ? run->probe->items : (const char *const *)run->options.command;
	const char **arguments, **next;
	size_t count = 0;

	while (given[count])
		count++;
	arguments = next = calloc(count + 5, sizeof(*arguments));
	if (!arguments)
		return NULL;
	if (run->probe) {
		snprintf(numbers[0], sizeof(numbers[0]), "%u", run->identity.uid);
		snprintf(numbers[1], sizeof(numbers[1]), "%u", run->identity.gid);
		*next++ = run->options.command[0];
		*next++ = run->probe->number;
		*next++ = numbers[0];
		*next++ = numbers[1];
	}
	memcpy(next, given, count * sizeof(*given));
	return arguments;
}

static int run_encode_start(const struct run *run, struct supervisor *supervisor)
{
	const struct image_settings *settings = run_image_settings(&run->inputs.image);
	struct session_share shares[LIMIT_SHARES];
	char numbers[2][16];
	const char **arguments = make_arguments(run, numbers);
	struct session_start start = {
		.flags = SESSION_FLAG_MEMORY | (supervisor->terminal ? SESSION_FLAG_TERMINAL : 0) |
			 (run->probe ? SESSION_FLAG_PROBE : 0),
		.uid = run->identity.uid,
		.gid = run->identity.gid,
		.user = run->identity.user,
		.home = run->identity.home,
		.host_name = run->identity.host_name,
		.directory = run->options.working_directory,
		.authority = run->authority,
		.git_config = run->git_config,
		.known_hosts = run->options.sign.guest_lines,
		.share_count = run->shares.count,
		.shares = shares,
		.arguments = arguments,
		.variable_count = run->identity.variable_count,
		.variables = (const char *const *)run->identity.variables,
	};
	int error;

	if (!arguments)
		return log_errno(-ENOMEM, "cannot tell the guest its command");
	if (!start.directory)
		start.directory = run->shares.first;
	if (!start.directory && settings)
		start.directory = settings->directory;
	if (!start.directory)
		start.directory = run->identity.home;
	terminal_size(&start.rows, &start.columns);
	while (arguments[start.argument_count])
		start.argument_count++;
	for (unsigned int i = 0; i < run->shares.count; i++) {
		const struct shared_directory *directory = &run->shares.directories[i];

		shares[i] = (struct session_share){directory->tag, directory->path,
						   directory->read_only};
	}
	error = session_encode_start(&start, &supervisor->start_message, &supervisor->start_length);
	free(arguments);
	if (error == -E2BIG) {
		log_error("the command's arguments and variables are too long: the guest takes %u "
			  "MiB "
			  "in all",
			  LIMIT_SESSION_MESSAGE_BYTES >> 20);
		return error;
	}
	return error ? log_errno(error, "cannot tell the guest its command") : 0;
}

static int run_start_processes(struct run *run, struct supervisor *supervisor)
{
	const struct run_parts parts = {
		.options = &run->options,
		.installation = &run->installation,
		.identity = &run->identity,
		.shares = &run->shares,
		.inputs = &run->inputs,
		.sockets = &run->sockets,
		.cgroup_fd = run->cgroup.procs_fd,
		.authority = run->authority,
	};
	int error = run_start(&parts, supervisor);

	run_secrets_forget(&run->options.secrets);
	return error;
}

/* What is run: what was given, or what the image says. */
static int run_choose_command(struct run *run)
{
	const struct run_image *image = &run->inputs.image;

	if (run->options.command)
		return 0;
	run->options.command = image->is_stored ? image->command : NULL;
	if (run->options.command && run->options.command[0])
		return 0;
	log_error("no command was given, and the image %s names none; for instance: mvagent run "
		  "--root %s -- ls",
		  run->options.root.image, run->options.root.image);
	return -EINVAL;
}

/* Of the shares git is asked for its remotes. */
static int run_ask_clients(struct run *run)
{
	const char *directories[LIMIT_SHARES];

	for (unsigned int i = 0; i < run->options.share_count; i++)
		directories[i] = run->options.shares[i].directory;
	return run_network_ask_clients(&run->options.network, directories,
				       run->options.share_count);
}

/* As git would find it in the first share. */
static int run_ask_git(struct run *run)
{
	const struct run_options *options = &run->options;
	const char *directory = options->share_count ? options->shares[0].directory : "/";

	return options->git_identity ? git_identity_read(directory, run->git_config) : 0;
}

static int run_make_cgroup(struct run *run)
{
	int share_fds[LIMIT_SHARES];

	for (unsigned int i = 0; i < run->shares.count; i++)
		share_fds[i] = run->shares.directories[i].directory_fd;
	return cgroup_make(&run->cgroup, &run->options.cgroup, share_fds, run->shares.count);
}

static void run_end_cgroup(struct run *run)
{
	struct report *report = &run->report;

	report->has_cgroup = run->cgroup.fd >= 0;
	cgroup_end(&run->cgroup, &report->cgroup);
	if (report->cgroup.kills)
		log_error("the run took all of its --cgroup memory=%lluM, and this host's kernel "
			  "ended it",
			  (unsigned long long)run->options.cgroup.memory_mib);
}

static int run_begin_record(struct run *run, struct supervisor *supervisor)
{
	const struct run_record_start start = {
		.options = &run->options,
		.shares = &run->shares,
		.inputs = &run->inputs,
		.review = &run->review,
		.installation = &run->installation,
		.arguments = run->arguments,
	};
	int error = run_record_begin(&run->record, &start);

	supervisor->record = run->record.record;
	return error;
}

/* Everything before the machine runs. 0 or -errno with the sentence printed. */
static int run_prepare(struct run *run, struct supervisor *supervisor)
{
	int error = installation_find(&run->installation);

	supervisor->terminal = !run->probe && terminal_present();
	error = error ? error : run_shares_open(&run->shares, &run->options);
	error = error ? error : run_root_try(&run->options.root);
	error = error ? error : run_record_prepare(&run->record, &run->options, &run->shares);
	/* What is wrong with the options comes before what is wrong with the host. */
	error = error ? error : run_secrets_find(&run->options.secrets, &run->options.variables);
	error = error ? error : run_inputs_open(&run->inputs, &run->options, &run->installation);
	error = error ? error : run_choose_command(run);
	if (!error)
		error = run_secrets_prepare(&run->options.secrets, &run->options.network.settings);
	error = error ? error
		      : guest_identity_create(&run->identity, &run->options,
					      run_image_settings(&run->inputs.image),
					      supervisor->terminal);
	error = error ? error : run_ask_clients(run);
	error = error ? error : run_ask_git(run);
	error = error ? error : run_sign_prepare(&run->options.sign);
	if (!error && run_network_needs_relay(&run->options.network))
		error = run_network_find_proxy(&run->options.network);
	error = error ? error : run_review_begin(&run->review, &run->options, &run->shares);
	error = error ? error : run_begin_record(run, supervisor);
	error = error ? error
		      : run_sockets_create(&run->sockets, run->shares.count,
					   run_network_needs_relay(&run->options.network),
					   run->options.secrets.set != NULL,
					   run->options.sign.policy != NULL);
	error = error ? error : run_make_cgroup(run);
	error = error ? error : run_start_processes(run, supervisor);
	/* Only now is it known whom the guest is to trust; it is told when it asks. */
	error = error ? error : run_encode_start(run, supervisor);
	error = error ? error : jail_deny_network(run->options.allow_degraded);
	if (!error)
		run_record_started(&run->record);
	return error;
}

static void run_fill_supervisor(struct run *run, struct supervisor *supervisor)
{
	if (run->probe) {
		supervisor->user_fds = run->probe->user_fds;
		/* From here on: the policy on record is the user's. */
		run->options.timeout_seconds = PROBE_SECONDS;
	}
	supervisor->monitor_fd = fd_take(&run->sockets.monitor[0]);
	control_init(&supervisor->control, run->sockets.control[0]);
	supervisor->network = (struct network_watch){
		.settings = &run->options.network.settings,
		.report = &run->report.network,
		.record = supervisor->record,
		.names_fd = fd_take(&run->sockets.names[0]),
		.event_fd = fd_take(&run->sockets.events[0]),
		.proxy = run->options.network.proxy_env,
		.ssh_agent = run->options.sign.policy != NULL,
		.hold = supervisor->terminal,
		.processes = supervisor->processes,
		.process_count = supervisor->process_count,
	};
	network_watch_begin(&supervisor->network);
	for (unsigned int i = 0; i < STREAM_COUNT; i++)
		supervisor->stream_fds[i] = run->sockets.streams[i][0];
	for (unsigned int i = 0; i < LIMIT_SHARES; i++) {
		supervisor->report_fds[i] = fd_take(&run->sockets.reports[i][0]);
		supervisor->share_paths[i] = run->shares.directories[i].host_path;
	}
}

/* Of NAME=VALUE. */
static void add_name(cJSON *names, const char *variable)
{
	char *name = strndup(variable, strcspn(variable, "="));

	if (name)
		cJSON_AddItemToArray(names, cJSON_CreateString(name));
	free(name);
}

/* What the answers are held against. */
static void run_tell_probe(struct run *run)
{
	const struct relay_settings *settings = &run->options.network.settings;
	struct run_probe *probe = run->probe;

	probe->variables = cJSON_CreateArray();
	for (unsigned int i = 0; i < run->identity.variable_count; i++)
		add_name(probe->variables, run->identity.variables[i]);
	probe->placeholders = cJSON_CreateObject();
	for (unsigned int i = 0; i < settings->placeholder_count; i++)
		cJSON_AddStringToObject(probe->placeholders, settings->placeholders[i].name,
					settings->placeholders[i].text);
	snprintf(probe->record_name, sizeof(probe->record_name), "%s", run->record.name);
	snprintf(probe->store, sizeof(probe->store), "%s", run->record.store);
}

static int run_finish(struct run *run, struct supervisor *supervisor)
{
	struct report *report = &run->report;
	int error;

	run_end_cgroup(run);
	report->moments[MOMENT_END] = clock_monotonic_ns();
	if (report->outcome.sentence[0] && !report->outcome.printed)
		log_error("%s", report->outcome.sentence);
	report_log(report);
	supervisor->record = NULL;
	if (run->probe)
		run_tell_probe(run);
	error = run_record_end(&run->record, supervisor);
	run_review_end(&run->review, outcome_exit_status(&report->outcome));
	if (run->options.json && report_write_json(report, &run->json) < 0)
		error = -EIO;
	if (error)
		return EXIT_MVAGENT;
	return outcome_exit_status(&report->outcome);
}

static struct run *run_create(int argc, char **argv)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->arguments = arguments_copy(argc, argv);
	if (!run->arguments) {
		free(run);
		return NULL;
	}
	run->json = REPORT_FILE_NONE;
	run->inputs = RUN_INPUTS_NONE;
	run->cgroup = CGROUP_NONE;
	run_review_init(&run->review);
	run_record_init(&run->record);
	run_sockets_init(&run->sockets);
	return run;
}

static void run_destroy(struct run *run)
{
	run_inputs_close(&run->inputs);
	run_image_free(&run->inputs.image);
	run_sockets_close_children_ends(&run->sockets);
	fd_close(&run->sockets.monitor[0]);
	fd_close(&run->sockets.control[0]);
	fd_close(&run->sockets.names[0]);
	fd_close(&run->sockets.events[0]);
	for (unsigned int i = 0; i < LIMIT_SHARES; i++)
		fd_close(&run->sockets.reports[i][0]);
	/* The streams' own ends stay open: a thread may still wait on standard input, and ends with
	 * us. */
	report_file_close(&run->json);
	run_review_destroy(&run->review);
	run_record_destroy(&run->record);
	run_shares_destroy(&run->shares);
	guest_identity_destroy(&run->identity);
	run_options_free(&run->options);
	arguments_free(run->arguments);
	free(run);
}

/* Why the machine was not started: a signal, or what was said last. */
static void give_setup_outcome(struct run *run)
{
	int number = supervisor_pending_signal();

	if (number) {
		outcome_give(&run->report.outcome, OUTCOME_INTERRUPTED, number,
			     "interrupted by SIG%s", sigabbrev_np(number));
		return;
	}
	outcome_give(&run->report.outcome, OUTCOME_SETUP_FAILED, 0, "%s", log_last_error());
	run->report.outcome.printed = true;
}

/* With the options known: the run itself. */
static int run_supervise(struct run *run, struct supervisor *supervisor)
{
	if (run->options.json && report_file_open(&run->json, "--json", run->options.json) < 0)
		return EXIT_MVAGENT;
	supervisor_block_signals();
	supervisor->options = &run->options;
	supervisor->identity = &run->identity;
	supervisor->report = &run->report;
	supervisor->image = &run->inputs.image;
	if (run_prepare(run, supervisor) < 0) {
		give_setup_outcome(run);
		for (unsigned int i = 0; i < supervisor->process_count; i++)
			process_kill(&supervisor->processes[i]);
		free(supervisor->start_message);
		return run_finish(run, supervisor);
	}
	run_fill_supervisor(run, supervisor);
	run_inputs_close(&run->inputs);
	run_sockets_close_children_ends(&run->sockets);
	supervisor_run(supervisor);
	if (supervisor->root_outdated)
		cache_directory_forget("root");
	fd_close(&supervisor->monitor_fd);
	for (unsigned int i = 0; i < LIMIT_SHARES; i++)
		fd_close(&supervisor->report_fds[i]);
	control_destroy(&supervisor->control);
	fd_close(&supervisor->network.names_fd);
	fd_close(&supervisor->network.event_fd);
	return run_finish(run, supervisor);
}

static int run_begin(struct run *run)
{
	/* Not freed: a stream's thread may use it until the process ends. */
	struct supervisor *supervisor = calloc(1, sizeof(*supervisor));

	if (run->options.verbose || run->options.quiet)
		log_set_level(run->options.verbose ? LOG_VERBOSE : LOG_QUIET);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
	return supervisor ? run_supervise(run, supervisor) : EXIT_MVAGENT;
}

int run_command(int argc, char **argv)
{
	struct run *run = run_create(argc, argv);
	int status = EXIT_MVAGENT;

	if (!run) {
		log_errno(-ENOMEM, "cannot begin");
		return EXIT_MVAGENT;
	}
	run->report.moments[MOMENT_BEGIN] = clock_monotonic_ns();
	switch (run_options_parse(&run->options, argc, argv)) {
	case RUN_OPTIONS_DONE:
		status = 0;
		break;
	case RUN_OPTIONS_ERROR:
		break;
	case RUN_OPTIONS_RUN:
		status = run_begin(run);
		break;
	}
	run_destroy(run);
	return status;
}

int run_probe(struct run_probe *probe, struct run_options *options, int argc, char **argv)
{
	static const char *const command[] = {SESSION_PROBE_NAME, NULL};
	struct run *run = run_create(argc, argv);
	int status;

	if (!run) {
		run_options_free(options);
		log_errno(-ENOMEM, "cannot begin");
		return EXIT_MVAGENT;
	}
	run->report.moments[MOMENT_BEGIN] = clock_monotonic_ns();
	run->options = *options;
	*options = (struct run_options){0};
	run->options.command = (char **)(uintptr_t)command;
	/* What it is refused is what the review is about. */
	run->options.quiet = !run->options.verbose;
	run->probe = probe;
	status = run_begin(run);
	run_destroy(run);
	return status;
}

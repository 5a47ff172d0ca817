/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/clock.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/option.h"
#include "vmm/cli/kvm_probe.h"
#include "vmm/cli/outcome.h"
#include "vmm/cli/selftest_report.h"
#include "vmm/cli/supervisor.h"

#define SEED_MAX (1ULL << 53) /* of those that JSON's numbers hold */

static const char usage[] =
	"usage: mvagent selftest [OPTION]... [ATTACK]...\n"
	"Attacks this installation: a guest without an operating system does to its machine what "
	"no "
	"good\n"
	"driver does, in machines made and jailed as those of 'mvagent run'. Prints a line for "
	"each "
	"attack:\n"
	"what was tried, and what held. Any KVM will do. Files, sockets and a process of the host "
	"that lie\n"
	"beside are looked at after each attack; nothing of yours is touched.\n"
	"\n"
	"  --seed N           of the attacks that are random (default: 1)\n"
	"  --seconds S        go on with the random ones, with other seeds, until S seconds have "
	"passed\n"
	"  --json             print one object of JSON instead\n"
	"  --list             print the names of the attacks, and run none\n"
	"  --allow-degraded   go on where the host allows neither namespaces nor Landlock\n"
	"  -h, --help         this text\n"
	"\n"
	"Exit status: 0 when all held, 1 when something got through, 125 when it could not be run, "
	"128+N after\n"
	"signal N. An attack whose guest did not account for what it tried has not held.\n";

struct options {
	uint64_t seed;
	uint64_t seconds;
	bool json;
	bool list;
	bool allow_degraded;
};

struct selftest {
	struct options options;
	struct selftest_setup setup;
	struct selftest_output output;
	uint64_t begin; /* clock_monotonic_ns() */
	unsigned int name_count;
	char **names; /* of attacks; none: all */
};

enum { OPTION_SEED = OPTION_FIRST, OPTION_SECONDS, OPTION_JSON, OPTION_LIST, OPTION_DEGRADED };

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"seconds", required_argument, NULL, OPTION_SECONDS},
	{"json", no_argument, NULL, OPTION_JSON},
	{"list", no_argument, NULL, OPTION_LIST},
	{"allow-degraded", no_argument, NULL, OPTION_DEGRADED},
	{NULL, 0, NULL, 0},
};

static int options_apply(void *context, int option, char *value)
{
	struct options *options = context;

	switch (option) {
	case OPTION_SEED:
		return option_parse_number("--seed", value, 0, SEED_MAX, &options->seed);
	case OPTION_SECONDS:
		return option_parse_number("--seconds", value, 1, 1000000, &options->seconds);
	case OPTION_JSON:
		options->json = true;
		return 0;
	case OPTION_LIST:
		options->list = true;
		return 0;
	default:
		options->allow_degraded = true;
		return 0;
	}
}

static const struct option_set option_set = {
	.usage = usage,
	.help = "mvagent selftest --help",
	.letters = "+:h",
	.options = long_options,
	.takes_words = true,
	.apply = options_apply,
};

static int setup_open(struct selftest_setup *setup)
{
	struct kvm_probe probe;
	char path[PATH_MAX];
	int error = installation_find(&setup->installation);

	if (!error)
		error = installation_file(&setup->installation, "selftest.elf", path);
	if (error)
		return error;
	setup->guest_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (setup->guest_fd < 0)
		return log_errno(-errno,
				 "this installation is not complete ('make' or 'make "
				 "install' again): cannot open %s",
				 path);
	kvm_probe(&probe, 0);
	setup->kvm_fd = probe.fd;
	/* A KVM that only emulates will do here. */
	if (probe.state == KVM_STATE_HARDWARE || probe.state == KVM_STATE_SOFTWARE)
		return 0;
	log_error("%s", probe.sentence);
	return -ENODEV;
}

static bool is_chosen(const struct selftest *selftest, const struct selftest_attack *attack)
{
	for (unsigned int i = 0; i < selftest->name_count; i++) {
		if (strcmp(selftest->names[i], attack->name) == 0)
			return true;
	}
	return selftest->name_count == 0;
}

static int check_names(const struct selftest *selftest)
{
	for (unsigned int i = 0; i < selftest->name_count; i++) {
		if (selftest_attack_find(selftest->names[i]))
			continue;
		log_error("selftest: there is no attack '%s'; see 'mvagent selftest --list'",
			  selftest->names[i]);
		return -EINVAL;
	}
	return 0;
}

static bool time_is_left(const struct selftest *selftest)
{
	const uint64_t limit = selftest->options.seconds * 1000 * CLOCK_NS_PER_MS;

	return clock_monotonic_ns() - selftest->begin < limit;
}

/* Each chosen attack once, in the first pass; in later ones those that are random, while there is
 * time, by other ways into the machine as well. */
static int run_pass(struct selftest *selftest, unsigned int pass, unsigned int *count)
{
	static const char *const variants[] = {"", " (without postponed writes)",
					       " (without io_uring)"};
	const uint64_t seed = selftest->options.seed + pass;
	struct selftest_result result;
	int error = 0;

	selftest->setup.trap = pass % 3 == 1;
	selftest->setup.no_io_uring = pass % 3 == 2;
	for (const struct selftest_attack *attack = selftest_attacks; !error && attack->name;
	     attack++) {
		if (!is_chosen(selftest, attack) ||
		    (pass && (!attack->random || !time_is_left(selftest))))
			continue;
		error = selftest_machine_run(&selftest->setup, attack, seed, &result);
		if (error)
			break;
		selftest_output_add(&selftest->output, attack, seed, variants[pass % 3], &result);
		++*count;
	}
	return error;
}

static int run_all(struct selftest *selftest)
{
	unsigned int count = 0;
	int error = run_pass(selftest, 0, &count);

	for (unsigned int pass = 1; !error && time_is_left(selftest) && count; pass++) {
		count = 0;
		error = run_pass(selftest, pass, &count);
	}
	return error;
}

static int run_selftest(struct selftest *selftest)
{
	struct selftest_setup *setup = &selftest->setup;
	int error;

	supervisor_block_signals();
	setup->kvm_fd = setup->guest_fd = -1;
	setup->allow_degraded = selftest->options.allow_degraded;
	selftest_place_init(&setup->place);
	selftest->begin = clock_monotonic_ns();
	error = setup_open(setup);
	error = error ? error : selftest_place_create(&setup->place);
	error = error ? error : selftest_output_begin(&selftest->output, selftest->options.json);
	error = error ? error : run_all(selftest);
	selftest_place_destroy(&setup->place);
	fd_close(&setup->kvm_fd);
	fd_close(&setup->guest_fd);
	if (error == -EINTR)
		return 128 + supervisor_pending_signal();
	if (error)
		return EXIT_MVAGENT;
	selftest_output_end(&selftest->output, selftest->options.seed,
			    (double)(clock_monotonic_ns() - selftest->begin) / 1e9);
	return selftest->output.failed ? EXIT_SELFTEST_FAILED : 0;
}

static int list_attacks(void)
{
	for (const struct selftest_attack *attack = selftest_attacks; attack->name; attack++)
		puts(attack->name);
	return 0;
}

int selftest_command(int argc, char **argv)
{
	struct selftest selftest = {.options = {.seed = 1}};
	int first = option_set_parse(&option_set, argc, argv, &selftest.options);

	if (first <= 0)
		return first < 0 ? EXIT_MVAGENT : 0;
	selftest.names = argv + first;
	selftest.name_count = (unsigned int)(argc - first);
	if (check_names(&selftest) < 0)
		return EXIT_MVAGENT;
	return selftest.options.list ? list_attacks() : run_selftest(&selftest);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `mvagent run`, checked as far as it can be without touching anything. */
#ifndef MVAGENT_CLI_RUN_OPTIONS_H
#define MVAGENT_CLI_RUN_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/cli/cgroup_limits.h"
#include "vmm/cli/run_network.h"
#include "vmm/cli/run_root.h"
#include "vmm/cli/run_secrets.h"
#include "vmm/cli/run_sign.h"
#include "vmm/fs/coherence.h"

struct run_share {
	const char *directory; /* as given */
	const char *at;        /* mount point in the guest; NULL: the host's own path */
	bool read_only;
	bool review; /* changes wait beside it for `mvagent apply` */
};

/* A rule for names in the shares, as mvagent-fs takes it. */
struct run_rule {
	const char *option; /* "--hide" */
	const char *pattern;
};

/* Why something was opened to the command: --why, after the option that it is about. */
struct run_reason {
	const char *option; /* "share" */
	const char *value;  /* as given, or NULL */
	const char *why;
};

struct run_options {
	unsigned int share_count;
	struct run_share shares[LIMIT_SHARES];
	bool share_anyway;
	unsigned int rule_count;
	struct run_rule rules[LIMIT_RUN_RULES];
	enum fs_cache cache;
	struct run_root root;
	struct run_network network;
	struct run_secrets secrets;
	struct run_sign sign;
	const char *kernel;            /* vmlinux; NULL: the installed one */
	const char *working_directory; /* in the guest; NULL: the first share, or / */
	const char *json;              /* file for the outcome */
	const char *record;            /* directory for the record; NULL: the user's own */
	const char *record_key;        /* file with the key; NULL: the user's own */
	bool no_record;
	unsigned int cpus;
	uint64_t memory_mib;
	unsigned int timeout_seconds; /* 0: none */
	struct cgroup_limits cgroup;
	bool as_root;       /* --user root */
	bool git_identity;  /* name and address of the user's git */
	bool user_is_given; /* --user: whoever the image says counts for nothing */
	bool debug_console;
	bool terminal_passthrough;
	bool quiet;
	bool verbose;
	bool trap_registers;
	bool no_io_uring;
	bool allow_degraded;
	bool no_notes;                  /* of the host's changes to the guest */
	struct run_variables variables; /* --env and --env-file */
	unsigned int reason_count;
	struct run_reason reasons[LIMIT_RUN_REASONS];
	struct run_reason previous; /* the option that came last, without a reason */
	char **command;             /* NULL-terminated; points into argv; NULL: the image's own */
};

enum run_options_result { RUN_OPTIONS_RUN, RUN_OPTIONS_DONE, RUN_OPTIONS_ERROR };

/* Parses argv (argv[0] is "run"). On RUN_OPTIONS_ERROR the sentence was printed. Free in every
 * case. */
enum run_options_result run_options_parse(struct run_options *options, int argc, char **argv);

/* Options that a command has beside those of run; it needs no COMMAND. */
struct run_more_options {
	const char *usage; /* what --help prints before what run says of its own */
	const char *help;
	const struct option
		*options; /* the last one is all zeros; their values from RUN_MORE_FIRST on */
	int (*apply)(void *context, int option, char *value);
	void *context;
};

#define RUN_MORE_FIRST   0x6000
#define RUN_MORE_OPTIONS 32 /* at most */

/* As run_options_parse, for such a command. */
enum run_options_result run_options_parse_more(struct run_options *options,
					       const struct run_more_options *more, int argc,
					       char **argv);
void run_options_free(struct run_options *options);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vmm/base/bytes.h"
#include "vmm/base/log.h"
#include "vmm/base/option.h"
#include "vmm/cli/run_machine.h"
#include "vmm/fs/policy.h"

static const char usage[] =
	"usage: mvagent run [OPTIONS] [--] COMMAND [ARGUMENT...]\n"
	"       mvagent run [OPTIONS] --root IMAGE        (the command that the image names)\n"
	"Runs a command in a virtual machine of its own, which sees the shares and nothing else\n"
	"of this host's files, reaches no network but the hosts you allow, and is gone when the\n"
	"command ends.\n"
	"\n"
	"  --share DIR[:rw|:ro|:review]\n"
	"                        share a directory (at its own path in the guest); the first one\n"
	"                        is the working directory. May be given several times. ':rw', the\n"
	"                        default: the command may change it; ':ro': it cannot; ':review':\n"
	"                        what it changes waits for 'mvagent diff' and 'mvagent apply'\n"
	"  --hide, --show, --protect, --unprotect PATTERN\n"
	"                        names in the shares that the command must not see, or not "
	"change,\n"
	"                        and exceptions; credentials (.env, .ssh...) are hidden and what\n"
	"                        your tools would run (.git/hooks, .vscode...) protected anyway\n"
	"  --share-anyway        share your home directory, or what else is refused\n"
	"  --cache MODE          shared: you may change the shares meanwhile (default);\n"
	"                        exclusive: you do not, which is faster; none: nothing is cached\n"
	"  --at PATH             where the share named before this option appears in the guest\n"
	"  --root host|IMAGE     root file system: this host's own tools, read-only (default); an\n"
	"                        image of yours ('mvagent image'), as NAME or NAME@sha256:DIGEST;\n"
	"                        or a file that is an EROFS image\n"
	"  --root-add DIR        one more directory of this host in the root, such as ~/.nvm\n"
	"  --root-hide PATTERN   what of this host's tools the command must not see\n"
	"  --scratch SIZE        room for what the command changes in the root, and in /tmp\n"
	"                        (default: half of the memory)\n"
	"  --workdir PATH        working directory in the guest\n"
	"  --user agent|root     who runs the command (default: whom the image names, or\n"
	"                        agent, with your name and ids)\n"
	"  --allow HOST[:PORT]   let the command reach a host, by its name (ports 443 and 80 "
	"unless\n"
	"                        one is given); *.HOST: all below it; or an IP address\n"
	"  --deny HOST[:PORT]    except this one\n"
	"  --allow-file FILE     a file of such hosts, one a line; deny HOST for exceptions\n"
	"  --allow-preset NAME   the hosts of a model's API: anthropic, openai, google\n"
	"  --allow-from CLIENT   the hosts that your npm, pip, apt, cargo or git is set up for\n"
	"  --allow-any-sni       let TLS ask for another server than the one it connects to\n"
	"  --resolver ADDRESS[:PORT]  name server to find allowed hosts by, instead of this "
	"host's\n"
	"  --allow-bytes SIZE    end all connections when the run has moved that many bytes over\n"
	"                        the network, both ways together (suffixes K, M, G)\n"
	"  --proxy-env           for programs that insist on a proxy: give them one, by\n"
	"                        HTTPS_PROXY\n"
	"  --publish [ADDRESS:]PORT:GUESTPORT\n"
	"                        let this host's programs reach a server of the command's, at\n"
	"                        PORT of 127.0.0.1 or ADDRESS\n"
	"  --env NAME[=VALUE]    give the command a variable, by default none of yours\n"
	"  --env-file FILE       variables of a file, one a line: NAME=VALUE or NAME\n"
	"  --git-identity        let the guest's git know your name and e-mail address as yours\n"
	"                        does (user.name, user.email), and nothing else of it\n"
	"  --why TEXT            why the option before it opens what it opens: for the record, "
	"and\n"
	"                        for 'mvagent review'\n"
	"  --secret NAME@HOST[:PORT],...\n"
	"                        use your variable NAME in requests to these hosts alone; the\n"
	"                        command has a placeholder in its place\n"
	"  --secret-file NAME=PATH@HOST, --secret-cmd 'NAME=COMMAND@HOST'\n"
	"                        the same with a file, or with what a command prints\n"
	"  --secret-oauth NAME@HOST[:PORT]/PATH\n"
	"                        put that secret into requests for tokens (OAuth) there as well;\n"
	"                        the command has a placeholder for each token in the answer\n"
	"  --secret-query NAME   put that secret into the query of a URL as well (?key=...)\n"
	"  --ssh-agent KEY@HOST[:PORT]\n"
	"                        let your ssh-agent sign log-ins at that host with that key: its\n"
	"                        comment (* for any part) or SHA256:... as ssh-add -l says them\n"
	"  --known-hosts FILE    where that host's own key is, instead of your known_hosts\n"
	"  --cpus N              virtual processors, 1 to 16 (default: 2, or what the host has)\n"
	"  --memory SIZE         guest memory in MiB, or with suffix M or G (default: 2G)\n"
	"  --timeout TIME        end the command after so many seconds (suffixes s, m, h)\n"
	"  --cgroup LIMITS       bound what the run takes of this host, all in all: memory=SIZE,\n"
	"                        pids=NUMBER, cpu=PERCENT%, io=SIZE per second, with commas\n"
	"                        between; needs a control group of yours ('mvagent doctor')\n"
	"  --json FILE           write how it ended and how long it took; - for standard error\n"
	"  --record DIR          keep the signed record of the run there (default: in your state\n"
	"                        directory; see 'mvagent record --help')\n"
	"  --record-key FILE     sign it with that key, which is made if it is not there\n"
	"  --no-record           keep none\n"
	"  --kernel FILE         another guest kernel, an uncompressed vmlinux\n"
	"  --debug-console       show the guest kernel's messages\n"
	"  --terminal-passthrough  do not filter what the command sends to the terminal\n"
	"  --allow-degraded      run even where the host allows neither namespaces nor Landlock,\n"
	"                        one of which has to keep the parts of mvagent in\n"
	"  --quiet               no warnings\n"
	"  -v, --verbose         show timings and counts\n"
	"  -h, --help            this text\n"
	"\n"
	"Exit status: the command's own; 128+n when signal n ended it; 124 time limit; 125 "
	"mvagent\n"
	"or the machine failed; 126 the command cannot be executed; 127 it was not found.\n";

enum {
	OPTION_VERBOSE = 'v',
	OPTION_SHARE = OPTION_FIRST,
	OPTION_AT,
	OPTION_HIDE,
	OPTION_SHOW,
	OPTION_PROTECT,
	OPTION_UNPROTECT,
	OPTION_SHARE_ANYWAY,
	OPTION_CACHE,
	OPTION_ROOT,
	OPTION_ROOT_ADD,
	OPTION_ROOT_HIDE,
	OPTION_SCRATCH,
	OPTION_WORKDIR,
	OPTION_USER,
	OPTION_ENV,
	OPTION_ENV_FILE,
	OPTION_WHY,
	OPTION_GIT_IDENTITY,
	OPTION_SSH_AGENT,
	OPTION_KNOWN_HOSTS,
	OPTION_CPUS,
	OPTION_MEMORY,
	OPTION_TIMEOUT,
	OPTION_CGROUP,
	OPTION_JSON,
	OPTION_RECORD,
	OPTION_RECORD_KEY,
	OPTION_NO_RECORD,
	OPTION_KERNEL,
	OPTION_DEBUG_CONSOLE,
	OPTION_PASSTHROUGH,
	OPTION_QUIET,
	OPTION_TRAP,
	OPTION_ALLOW_DEGRADED,
	OPTION_NO_IO_URING,
	OPTION_NO_NOTES,
};

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{"verbose", no_argument, NULL, OPTION_VERBOSE},
	{"share", required_argument, NULL, OPTION_SHARE},
	{"at", required_argument, NULL, OPTION_AT},
	{"hide", required_argument, NULL, OPTION_HIDE},
	{"show", required_argument, NULL, OPTION_SHOW},
	{"protect", required_argument, NULL, OPTION_PROTECT},
	{"unprotect", required_argument, NULL, OPTION_UNPROTECT},
	{"share-anyway", no_argument, NULL, OPTION_SHARE_ANYWAY},
	{"cache", required_argument, NULL, OPTION_CACHE},
	{"root", required_argument, NULL, OPTION_ROOT},
	{"root-add", required_argument, NULL, OPTION_ROOT_ADD},
	{"root-hide", required_argument, NULL, OPTION_ROOT_HIDE},
	{"scratch", required_argument, NULL, OPTION_SCRATCH},
	NETWORK_OPTIONS{"workdir", required_argument, NULL, OPTION_WORKDIR},
	{"user", required_argument, NULL, OPTION_USER},
	SECRET_OPTIONS{"env", required_argument, NULL, OPTION_ENV},
	{"env-file", required_argument, NULL, OPTION_ENV_FILE},
	{"git-identity", no_argument, NULL, OPTION_GIT_IDENTITY},
	{"ssh-agent", required_argument, NULL, OPTION_SSH_AGENT},
	{"known-hosts", required_argument, NULL, OPTION_KNOWN_HOSTS},
	{"why", required_argument, NULL, OPTION_WHY},
	{"cpus", required_argument, NULL, OPTION_CPUS},
	{"memory", required_argument, NULL, OPTION_MEMORY},
	{"timeout", required_argument, NULL, OPTION_TIMEOUT},
	{"cgroup", required_argument, NULL, OPTION_CGROUP},
	{"json", required_argument, NULL, OPTION_JSON},
	{"record", required_argument, NULL, OPTION_RECORD},
	{"record-key", required_argument, NULL, OPTION_RECORD_KEY},
	{"no-record", no_argument, NULL, OPTION_NO_RECORD},
	{"kernel", required_argument, NULL, OPTION_KERNEL},
	{"debug-console", no_argument, NULL, OPTION_DEBUG_CONSOLE},
	{"terminal-passthrough", no_argument, NULL, OPTION_PASSTHROUGH},
	{"quiet", no_argument, NULL, OPTION_QUIET},
	/* For the project's own tests: what is fallen back to. */
	{"trap-registers", no_argument, NULL, OPTION_TRAP},
	{"allow-degraded", no_argument, NULL, OPTION_ALLOW_DEGRADED},
	{"no-io-uring", no_argument, NULL, OPTION_NO_IO_URING},
	{"no-notes", no_argument, NULL, OPTION_NO_NOTES},
	{NULL, 0, NULL, 0},
};

static_assert((int)NETWORK_OPTIONS_END <= (int)SECRET_OPTION &&
		      SECRET_OPTIONS_END <= RUN_MORE_FIRST,
	      "an option's number is its own");

/* Takes @suffix off unless a directory of that very name exists. */
static bool take_suffix(char *value, const char *suffix)
{
	size_t length = strlen(value), suffix_length = strlen(suffix);

	if (length <= suffix_length || strcmp(value + length - suffix_length, suffix) != 0 ||
	    access(value, F_OK) == 0)
		return false;
	value[length - suffix_length] = '\0';
	return true;
}

static int set_share(struct run_options *options, char *value)
{
	struct run_share *share = &options->shares[options->share_count];

	if (options->share_count == LIMIT_SHARES) {
		log_error("--share %s: at most %d shares can be given", value, LIMIT_SHARES);
		return -E2BIG;
	}
	*share = (struct run_share){.directory = value};
	share->read_only = take_suffix(value, ":ro");
	share->review = !share->read_only && take_suffix(value, ":review");
	if (!share->read_only && !share->review)
		take_suffix(value, ":rw"); /* as without */
	if (!*value) {
		log_error("--share needs a directory");
		return -EINVAL;
	}
	options->share_count++;
	return 0;
}

static int set_at(struct run_options *options, char *value)
{
	struct run_share *share;

	for (size_t length = strlen(value); length > 1 && value[length - 1] == '/'; length--)
		value[length - 1] = '\0';
	if (options->share_count == 0) {
		log_error("--at %s: give it after the --share that it is for", value);
		return -EINVAL;
	}
	if (value[0] != '/' || !value[1]) {
		log_error("--at %s: a share needs an absolute path other than / in the guest",
			  value);
		return -EINVAL;
	}
	share = &options->shares[options->share_count - 1];
	if (share->at) {
		log_error("--at %s: --share %s has its place already, %s; give one --at for each",
			  value, share->directory, share->at);
		return -EINVAL;
	}
	share->at = value;
	return 0;
}

/* @list and @option are the same. */
static int add_rule(struct run_options *options, enum policy_list list, const char *option,
		    const char *pattern)
{
	int error = policy_check(list, option, pattern);

	if (error)
		return error;
	if (options->rule_count == LIMIT_RUN_RULES) {
		log_error("%s %s: at most %d patterns can be given", option, pattern,
			  LIMIT_RUN_RULES);
		return -E2BIG;
	}
	options->rules[options->rule_count++] = (struct run_rule){option, pattern};
	return 0;
}

static int set_cache(struct run_options *options, const char *value)
{
	int cache = fs_cache_parse(value);

	if (cache < 0) {
		log_error("--cache %s: it is shared, exclusive or none", value);
		return cache;
	}
	options->cache = (enum fs_cache)cache;
	return 0;
}

static int set_user(struct run_options *options, const char *value)
{
	options->as_root = strcmp(value, "root") == 0;
	options->user_is_given = true;
	if (options->as_root || strcmp(value, "agent") == 0)
		return 0;
	log_error("--user %s: the command can run as 'agent' (you, without privileges) or as "
		  "'root' of "
		  "the guest",
		  value);
	return -EINVAL;
}

static int set_working_directory(struct run_options *options, const char *value)
{
	if (value[0] != '/') {
		log_error("--workdir %s: give an absolute path in the guest", value);
		return -EINVAL;
	}
	options->working_directory = value;
	return 0;
}

static int set_root(struct run_root *root, int option, const char *value)
{
	switch (option) {
	case OPTION_ROOT:
		return run_root_set(root, value);
	case OPTION_ROOT_ADD:
		return run_root_add(root, value);
	case OPTION_ROOT_HIDE:
		return run_root_hide(root, value);
	default:
		return run_root_set_scratch(root, value);
	}
}

/* Those that take no value. */
static void set_flag(struct run_options *options, int option)
{
	switch (option) {
	case OPTION_SHARE_ANYWAY:
		options->share_anyway = true;
		break;
	case OPTION_GIT_IDENTITY:
		options->git_identity = true;
		break;
	case OPTION_DEBUG_CONSOLE:
		options->debug_console = true;
		break;
	case OPTION_PASSTHROUGH:
		options->terminal_passthrough = true;
		break;
	case OPTION_QUIET:
		options->quiet = true;
		break;
	case OPTION_TRAP:
		options->trap_registers = true;
		break;
	case OPTION_ALLOW_DEGRADED:
		options->allow_degraded = true;
		break;
	case OPTION_NO_IO_URING:
		options->no_io_uring = true;
		break;
	case OPTION_NO_NOTES:
		options->no_notes = true;
		break;
	case OPTION_NO_RECORD:
		options->no_record = true;
		break;
	default:
		options->verbose = true;
		break;
	}
}

static int set_why(struct run_options *options, const char *value)
{
	struct run_reason *reason = &options->reasons[options->reason_count];

	if (!options->previous.option || !*value) {
		log_error("--why %s: give a reason, after the option that it is for", value);
		return -EINVAL;
	}
	if (options->reason_count == LIMIT_RUN_REASONS) {
		log_error("--why %s: at most %d reasons can be given", value, LIMIT_RUN_REASONS);
		return -E2BIG;
	}
	*reason = options->previous;
	reason->why = value;
	options->reason_count++;
	options->previous = (struct run_reason){0};
	return 0;
}

/* The name of an option, as the table has it. */
static const char *option_name(int option)
{
	for (const struct option *entry = long_options; entry->name; entry++) {
		if (entry->val == option)
			return entry->name;
	}
	return NULL;
}

static int set_named_option(struct run_options *options, int option, char *value)
{
	if (network_is_option(option))
		return run_network_apply(&options->network, option, value);
	if (secret_is_option(option))
		return run_secrets_apply(&options->secrets, &options->network.settings.policy,
					 option, value);
	switch (option) {
	case OPTION_SHARE:
		return set_share(options, value);
	case OPTION_AT:
		return set_at(options, value);
	case OPTION_HIDE:
		return add_rule(options, POLICY_HIDE, "--hide", value);
	case OPTION_SHOW:
		return add_rule(options, POLICY_SHOW, "--show", value);
	case OPTION_PROTECT:
		return add_rule(options, POLICY_PROTECT, "--protect", value);
	case OPTION_UNPROTECT:
		return add_rule(options, POLICY_UNPROTECT, "--unprotect", value);
	case OPTION_CACHE:
		return set_cache(options, value);
	case OPTION_ENV:
		return run_variables_add(&options->variables, value);
	case OPTION_ENV_FILE:
		return run_variables_add_file(&options->variables, value);
	case OPTION_WHY:
		return set_why(options, value);
	case OPTION_SSH_AGENT:
		return run_sign_add(&options->sign, &options->network.settings.policy, value);
	case OPTION_CPUS:
		return run_machine_set_cpus(options, value);
	case OPTION_MEMORY:
		return run_machine_set_memory(options, value);
	case OPTION_TIMEOUT:
		return run_machine_set_timeout(options, value);
	case OPTION_CGROUP:
		return cgroup_limits_parse(&options->cgroup, value);
	case OPTION_USER:
		return set_user(options, value);
	case OPTION_WORKDIR:
		return set_working_directory(options, value);
	case OPTION_ROOT:
	case OPTION_ROOT_ADD:
	case OPTION_ROOT_HIDE:
	case OPTION_SCRATCH:
		return set_root(&options->root, option, value);
	case OPTION_JSON:
		options->json = value;
		break;
	case OPTION_RECORD:
		options->record = value;
		break;
	case OPTION_RECORD_KEY:
		options->record_key = value;
		break;
	case OPTION_KNOWN_HOSTS:
		options->sign.known_hosts = value;
		break;
	case OPTION_KERNEL:
		options->kernel = value;
		break;
	default:
		set_flag(options, option);
		break;
	}
	return 0;
}

static int set_option(void *context, int option, char *value)
{
	struct run_options *options = context;
	int error = set_named_option(options, option, value);

	/* --at belongs to the share before it. */
	if (option != OPTION_WHY && option != OPTION_AT)
		options->previous =
			(struct run_reason){.option = option_name(option), .value = value};
	return error;
}

static const struct option_set option_set = {
	.usage = usage,
	.help = "mvagent run --help",
	.letters = "+:hv",
	.options = long_options,
	.takes_command = true,
	.apply = set_option,
};

/* What options say together. 0 or -EINVAL with the sentence printed. */
static int check(const struct run_options *options)
{
	if (options->no_record && (options->record || options->record_key)) {
		log_error("--no-record and %s: give one of them",
			  options->record ? "--record" : "--record-key");
		return -EINVAL;
	}
	if (run_root_check(&options->root) || run_sign_check(&options->sign))
		return -EINVAL;
	return cgroup_limits_check(&options->cgroup, options->memory_mib);
}

enum run_options_result run_options_parse(struct run_options *options, int argc, char **argv)
{
	int result;

	*options = (struct run_options){0};
	run_machine_set_defaults(options);
	result = option_set_parse(&option_set, argc, argv, options);
	if (result <= 0)
		return result < 0 ? RUN_OPTIONS_ERROR : RUN_OPTIONS_DONE;
	if (check(options))
		return RUN_OPTIONS_ERROR;
	if (result == argc && options->root.image)
		return RUN_OPTIONS_RUN; /* the image may say what is run */
	if (result == argc) {
		log_error("no command was given; for instance: mvagent run --share . -- ls");
		return RUN_OPTIONS_ERROR;
	}
	options->command = argv + result;
	return RUN_OPTIONS_RUN;
}

/* Options of both, told apart by their values. */
struct both {
	struct run_options *options;
	const struct run_more_options *more;
};

static int set_either(void *context, int option, char *value)
{
	const struct both *both = context;

	if (option >= RUN_MORE_FIRST)
		return both->more->apply(both->more->context, option, value);
	return set_option(both->options, option, value);
}

enum run_options_result run_options_parse_more(struct run_options *options,
					       const struct run_more_options *more, int argc,
					       char **argv)
{
	struct option table[ARRAY_SIZE(long_options) + RUN_MORE_OPTIONS];
	struct option_set set = option_set;
	struct both both = {options, more};
	unsigned int count = 0;
	int result;

	*options = (struct run_options){0};
	run_machine_set_defaults(options);
	for (; more->options[count].name; count++)
		table[count] = more->options[count];
	memcpy(table + count, long_options, sizeof(long_options));
	set.options = table;
	set.usage = more->usage;
	set.help = more->help;
	set.apply = set_either;
	result = option_set_parse(&set, argc, argv, &both);
	if (result <= 0)
		return result < 0 ? RUN_OPTIONS_ERROR : RUN_OPTIONS_DONE;
	options->command = argv + result;
	if (check(options))
		return RUN_OPTIONS_ERROR;
	return RUN_OPTIONS_RUN;
}

void run_options_free(struct run_options *options)
{
	run_variables_free(&options->variables);
	run_root_free(&options->root);
	run_network_free(&options->network);
	run_secrets_free(&options->secrets);
	run_sign_free(&options->sign);
}

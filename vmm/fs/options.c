/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/options.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/option.h"
#include "vmm/base/version.h"
#include "vmm/fs/policy.h"

static const char usage[] =
	"usage: mvagent-fs (--fd N | --socket PATH) (--root-fd N | --root DIR) [OPTION]...\n"
	"\n"
	"Serves one directory as a virtio-fs device, over vhost-user, until the front end hangs "
	"up.\n"
	"\n"
	"  --fd N          a connected vhost-user socket that was inherited\n"
	"  --socket PATH   listen at PATH for one front end (QEMU: -chardev socket,path=PATH)\n"
	"  --root-fd N     the directory to share, inherited open\n"
	"  --root DIR      the directory to share\n"
	"  --read-only     refuse every change with EROFS\n"
	"  --upper-fd N, --upper DIR\n"
	"                  put what the guest changes there, and leave the shared directory as it "
	"is\n"
	"  --base-fd N     a file to append to what the changes were made from\n"
	"  --guest-uid U   who owns your files as the guest sees it (default: your user id)\n"
	"  --guest-gid G   and their group (default: your group id)\n"
	"  --hide PATTERN, --show PATTERN, --protect PATTERN, --unprotect PATTERN\n"
	"                  names that the guest must not see, or see but not change, and\n"
	"                  exceptions from that; like in .gitignore, may be repeated\n"
	"  --no-default-rules   without the rules for credentials and git's hooks\n"
	"  --cache MODE    what the guest may keep: 'shared' (the default: what the host changes\n"
	"                  meanwhile is seen), 'exclusive' (the host changes nothing), 'none'\n"
	"  --notify-fd N   a socket to the guest's init, for notes of what the host has changed\n"
	"  --record-fd N   a socket to the supervisor, for the record of what the guest changes\n"
	"  --allow-degraded   serve even where the host allows neither namespaces nor Landlock\n"
	"  --no-io-uring   wait with epoll, as where io_uring is forbidden\n"
	"  --quiet         print errors only\n"
	"  --verbose       print counts of requests at the end\n"
	"  --help, --version\n";

static int options_parse_id(const char *option, const char *text, uint32_t *id)
{
	uint64_t number;
	int error = option_parse_number(option, text, 0, UINT32_MAX - 1, &number);

	if (!error)
		*id = (uint32_t)number;
	return error;
}

static int options_open_directory(const char *purpose, const char *path, int *fd)
{
	int opened = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (opened < 0)
		return log_errno(-errno, "cannot %s '%s'", purpose, path);
	fd_close(fd);
	*fd = opened;
	return 0;
}

static int options_parse_cache(const char *text, enum fs_cache *cache)
{
	int value = fs_cache_parse(text);

	if (value < 0)
		log_error("--cache is 'shared', 'exclusive' or 'none', not '%s'", text);
	else
		*cache = (enum fs_cache)value;
	return value < 0 ? value : 0;
}

static int options_check(const struct fs_options *options)
{
	if ((options->socket_fd >= 0) == (options->socket_path != NULL)) {
		log_error("give one of --fd N and --socket PATH (see --help)");
		return -EINVAL;
	}
	if (options->root_fd < 0) {
		log_error("give the directory to share with --root DIR or --root-fd N "
			  "(see --help)");
		return -EINVAL;
	}
	if (options->upper_fd >= 0 && options->read_only) {
		log_error("a share is --read-only or has an --upper directory for changes, not "
			  "both");
		return -EINVAL;
	}
	if (options->base_fd >= 0 && options->upper_fd < 0) {
		log_error("--base-fd needs --upper-fd or --upper (see --help)");
		return -EINVAL;
	}
	return 1;
}

enum {
	OPTION_FD = OPTION_FIRST,
	OPTION_SOCKET,
	OPTION_ROOT_FD,
	OPTION_ROOT,
	OPTION_UPPER_FD,
	OPTION_UPPER,
	OPTION_BASE_FD,
	OPTION_READ_ONLY,
	OPTION_GUEST_UID,
	OPTION_GUEST_GID,
	OPTION_HIDE,
	OPTION_SHOW,
	OPTION_PROTECT,
	OPTION_UNPROTECT,
	OPTION_NO_DEFAULT_RULES,
	OPTION_CACHE,
	OPTION_NOTIFY_FD,
	OPTION_RECORD_FD,
	OPTION_ALLOW_DEGRADED,
	OPTION_NO_IO_URING,
	OPTION_QUIET,
	OPTION_VERBOSE,
};

static const struct option long_options[] = {
	{"fd", required_argument, NULL, OPTION_FD},
	{"socket", required_argument, NULL, OPTION_SOCKET},
	{"root-fd", required_argument, NULL, OPTION_ROOT_FD},
	{"root", required_argument, NULL, OPTION_ROOT},
	{"upper-fd", required_argument, NULL, OPTION_UPPER_FD},
	{"upper", required_argument, NULL, OPTION_UPPER},
	{"base-fd", required_argument, NULL, OPTION_BASE_FD},
	{"read-only", no_argument, NULL, OPTION_READ_ONLY},
	{"guest-uid", required_argument, NULL, OPTION_GUEST_UID},
	{"guest-gid", required_argument, NULL, OPTION_GUEST_GID},
	{"hide", required_argument, NULL, OPTION_HIDE},
	{"show", required_argument, NULL, OPTION_SHOW},
	{"protect", required_argument, NULL, OPTION_PROTECT},
	{"unprotect", required_argument, NULL, OPTION_UNPROTECT},
	{"no-default-rules", no_argument, NULL, OPTION_NO_DEFAULT_RULES},
	{"cache", required_argument, NULL, OPTION_CACHE},
	{"notify-fd", required_argument, NULL, OPTION_NOTIFY_FD},
	{"record-fd", required_argument, NULL, OPTION_RECORD_FD},
	{"allow-degraded", no_argument, NULL, OPTION_ALLOW_DEGRADED},
	{"no-io-uring", no_argument, NULL, OPTION_NO_IO_URING},
	{"quiet", no_argument, NULL, OPTION_QUIET},
	{"verbose", no_argument, NULL, OPTION_VERBOSE},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

static int options_apply(void *context, int option, char *value)
{
	struct fs_options *options = context;

	switch (option) {
	case OPTION_FD:
		return option_parse_fd("--fd", value, &options->socket_fd);
	case OPTION_SOCKET:
		options->socket_path = value;
		return 0;
	case OPTION_ROOT_FD:
		return option_parse_fd("--root-fd", value, &options->root_fd);
	case OPTION_ROOT:
		return options_open_directory("share", value, &options->root_fd);
	case OPTION_UPPER_FD:
		return option_parse_fd("--upper-fd", value, &options->upper_fd);
	case OPTION_UPPER:
		return options_open_directory("put changes in", value, &options->upper_fd);
	case OPTION_BASE_FD:
		return option_parse_fd("--base-fd", value, &options->base_fd);
	case OPTION_READ_ONLY:
		options->read_only = true;
		return 0;
	case OPTION_GUEST_UID:
		return options_parse_id("--guest-uid", value, &options->guest_uid);
	case OPTION_GUEST_GID:
		return options_parse_id("--guest-gid", value, &options->guest_gid);
	case OPTION_HIDE:
		return policy_add_option(options->policy, POLICY_HIDE, "--hide", value);
	case OPTION_SHOW:
		return policy_add_option(options->policy, POLICY_SHOW, "--show", value);
	case OPTION_PROTECT:
		return policy_add_option(options->policy, POLICY_PROTECT, "--protect", value);
	case OPTION_UNPROTECT:
		return policy_add_option(options->policy, POLICY_UNPROTECT, "--unprotect", value);
	case OPTION_NO_DEFAULT_RULES:
		options->no_default_rules = true;
		return 0;
	case OPTION_CACHE:
		return options_parse_cache(value, &options->cache);
	case OPTION_RECORD_FD:
		return option_parse_fd("--record-fd", value, &options->record_fd);
	case OPTION_NOTIFY_FD:
		return option_parse_fd("--notify-fd", value, &options->notify_fd);
	case OPTION_ALLOW_DEGRADED:
		options->allow_degraded = true;
		return 0;
	case OPTION_NO_IO_URING:
		options->no_io_uring = true;
		return 0;
	case OPTION_QUIET:
		options->quiet = true;
		return 0;
	default:
		options->verbose = true;
		return 0;
	}
}

static const struct option_set option_set = {
	.usage = usage,
	.version = "mvagent-fs " MVAGENT_VERSION,
	.help = "mvagent-fs --help",
	.letters = "+:",
	.options = long_options,
	.apply = options_apply,
};

int fs_options_parse(struct fs_options *options, int argc, char **argv)
{
	int result;

	*options = (struct fs_options){
		.socket_fd = -1,
		.root_fd = -1,
		.upper_fd = -1,
		.base_fd = -1,
		.notify_fd = -1,
		.record_fd = -1,
		.guest_uid = geteuid(),
		.guest_gid = getegid(),
		.policy = policy_create(),
	};
	if (!options->policy)
		return log_errno(-ENOMEM, "no memory for the rules");
	result = option_set_parse(&option_set, argc, argv, options);
	if (result > 0)
		result = options_check(options);
	if (result > 0 && !options->no_default_rules && policy_add_defaults(options->policy)) {
		log_error("there are too many patterns to keep the built-in ones as well");
		result = -E2BIG;
	}
	if (result <= 0) {
		policy_destroy(options->policy);
		options->policy = NULL;
	}
	return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/fs/options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/version.h"

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
	"  --guest-uid U   who owns your files as the guest sees it (default: your user id)\n"
	"  --guest-gid G   and their group (default: your group id)\n"
	"  --no-io-uring   wait with epoll, as where io_uring is forbidden\n"
	"  --verbose       print counts of requests at the end\n"
	"  --help, --version\n";

static int options_parse_id(const char *option, const char *text, uint32_t *id)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || value >= UINT32_MAX) {
		log_error("%s needs a number of 0 to 4294967294, not '%s'", option, text);
		return -EINVAL;
	}
	*id = (uint32_t)value;
	return 0;
}

static int options_parse_fd(const char *option, const char *text, int *fd)
{
	int result = fd_parse(text);

	if (result < 0) {
		log_error("%s needs the number of an open descriptor, not '%s'", option, text);
		return result;
	}
	fd_close(fd);
	*fd = result;
	return 0;
}

static int options_open_root(const char *path, int *fd)
{
	int opened = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (opened < 0)
		return log_errno(-errno, "cannot share '%s'", path);
	fd_close(fd);
	*fd = opened;
	return 0;
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
	return 1;
}

enum {
	OPTION_FD = 1,
	OPTION_SOCKET,
	OPTION_ROOT_FD,
	OPTION_ROOT,
	OPTION_READ_ONLY,
	OPTION_GUEST_UID,
	OPTION_GUEST_GID,
	OPTION_NO_IO_URING,
	OPTION_VERBOSE,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{"fd", required_argument, NULL, OPTION_FD},
	{"socket", required_argument, NULL, OPTION_SOCKET},
	{"root-fd", required_argument, NULL, OPTION_ROOT_FD},
	{"root", required_argument, NULL, OPTION_ROOT},
	{"read-only", no_argument, NULL, OPTION_READ_ONLY},
	{"guest-uid", required_argument, NULL, OPTION_GUEST_UID},
	{"guest-gid", required_argument, NULL, OPTION_GUEST_GID},
	{"no-io-uring", no_argument, NULL, OPTION_NO_IO_URING},
	{"verbose", no_argument, NULL, OPTION_VERBOSE},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

/* Applies one option. 1: go on, 0: all is done, or -errno. */
static int options_apply(struct fs_options *options, int option)
{
	int error = 0;

	switch (option) {
	case OPTION_FD:
		error = options_parse_fd("--fd", optarg, &options->socket_fd);
		break;
	case OPTION_SOCKET:
		options->socket_path = optarg;
		break;
	case OPTION_ROOT_FD:
		error = options_parse_fd("--root-fd", optarg, &options->root_fd);
		break;
	case OPTION_ROOT:
		error = options_open_root(optarg, &options->root_fd);
		break;
	case OPTION_READ_ONLY:
		options->read_only = true;
		break;
	case OPTION_GUEST_UID:
		error = options_parse_id("--guest-uid", optarg, &options->guest_uid);
		break;
	case OPTION_GUEST_GID:
		error = options_parse_id("--guest-gid", optarg, &options->guest_gid);
		break;
	case OPTION_NO_IO_URING:
		options->no_io_uring = true;
		break;
	case OPTION_VERBOSE:
		options->verbose = true;
		break;
	case OPTION_HELP:
		fputs(usage, stdout);
		return 0;
	case OPTION_VERSION:
		puts("mvagent-fs " MVAGENT_VERSION);
		return 0;
	default:
		return -EINVAL; /* getopt_long has printed why */
	}
	return error ? error : 1;
}

int fs_options_parse(struct fs_options *options, int argc, char **argv)
{
	int option;

	*options = (struct fs_options){
		.socket_fd = -1,
		.root_fd = -1,
		.guest_uid = geteuid(),
		.guest_gid = getegid(),
	};
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		int result = options_apply(options, option);

		if (result <= 0)
			return result;
	}
	if (optind < argc) {
		log_error("unexpected argument '%s' (see --help)", argv[optind]);
		return -EINVAL;
	}
	return options_check(options);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/version.h"

static const char usage[] =
	"usage: mvagent-blk (--fd N | --socket PATH) (--image-fd N | --image PATH) [OPTION]...\n"
	"\n"
	"Serves an image as a read-only virtio block device, over vhost-user, until the front end\n"
	"hangs up.\n"
	"\n"
	"  --fd N          a connected vhost-user socket that was inherited\n"
	"  --socket PATH   listen at PATH for one front end (QEMU: -chardev socket,path=PATH)\n"
	"  --image-fd N    the image, inherited open for reading\n"
	"  --image PATH    the image: a file or a block device\n"
	"  --no-io-uring   wait with epoll, as where io_uring is forbidden\n"
	"  --verbose       print counts of requests at the end\n"
	"  --help, --version\n";

enum {
	OPTION_FD = 1,
	OPTION_SOCKET,
	OPTION_IMAGE_FD,
	OPTION_IMAGE,
	OPTION_NO_IO_URING,
	OPTION_VERBOSE,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{"fd", required_argument, NULL, OPTION_FD},
	{"socket", required_argument, NULL, OPTION_SOCKET},
	{"image-fd", required_argument, NULL, OPTION_IMAGE_FD},
	{"image", required_argument, NULL, OPTION_IMAGE},
	{"no-io-uring", no_argument, NULL, OPTION_NO_IO_URING},
	{"verbose", no_argument, NULL, OPTION_VERBOSE},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

static int parse_fd(const char *option, const char *text, int *fd)
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

static int open_image(const char *path, int *fd)
{
	/* Not blocking: the path may turn out to be a FIFO. */
	int opened = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (opened < 0)
		return log_errno(-errno, "cannot open the image '%s'", path);
	fd_close(fd);
	*fd = opened;
	return 0;
}

/* Applies one option. 1: go on, 0: all is done, or -errno. */
static int apply(struct blk_options *options, int option)
{
	int error = 0;

	switch (option) {
	case OPTION_FD:
		error = parse_fd("--fd", optarg, &options->socket_fd);
		break;
	case OPTION_SOCKET:
		options->socket_path = optarg;
		break;
	case OPTION_IMAGE_FD:
		error = parse_fd("--image-fd", optarg, &options->image_fd);
		break;
	case OPTION_IMAGE:
		error = open_image(optarg, &options->image_fd);
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
		puts("mvagent-blk " MVAGENT_VERSION);
		return 0;
	default:
		return -EINVAL; /* getopt_long has printed why */
	}
	return error ? error : 1;
}

static int check(const struct blk_options *options)
{
	if ((options->socket_fd >= 0) == (options->socket_path != NULL)) {
		log_error("give one of --fd N and --socket PATH (see --help)");
		return -EINVAL;
	}
	if (options->image_fd < 0) {
		log_error("give the image with --image PATH or --image-fd N (see --help)");
		return -EINVAL;
	}
	return 1;
}

int blk_options_parse(struct blk_options *options, int argc, char **argv)
{
	int option;

	*options = (struct blk_options){.socket_fd = -1, .image_fd = -1};
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		int result = apply(options, option);

		if (result <= 0)
			return result;
	}
	if (optind < argc) {
		log_error("unexpected argument '%s' (see --help)", argv[optind]);
		return -EINVAL;
	}
	return check(options);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/root/options.h"

#include <errno.h>
#include <fcntl.h>

#include "vmm/base/digest.h"
#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/option.h"
#include "vmm/base/version.h"

static const char usage[] =
	"usage: mvagent-blk (--fd N | --socket PATH) (--image-fd N | --image PATH | --host)\n"
	"                   [OPTION]...\n"
	"\n"
	"Serves an image, or the host's own directories as one, as a read-only virtio block "
	"device,\n"
	"over vhost-user, until the front end hangs up.\n"
	"\n"
	"  --fd N          a connected vhost-user socket that was inherited\n"
	"  --socket PATH   listen at PATH for one front end (QEMU: -chardev socket,path=PATH)\n"
	"  --image-fd N    the image, inherited open for reading\n"
	"  --image PATH    the image: a file or a block device\n"
	"  --image-bytes N the image is that long, and a tree of hashes (dm-verity) follows it\n"
	"  --verity-root H root of that tree, 64 hexadecimal digits: nothing else is served\n"
	"  --allow-degraded   serve even where the host allows neither namespaces nor Landlock\n"
	"  --host          /usr and what else belongs to it, as an EROFS image\n"
	"  --host-root DIR the same of another system, whose root directory is DIR\n"
	"  --add DIR       one more directory of the host\n"
	"  --hide PATTERN  what of the host stays outside\n"
	"  --cache-fd N    a directory of the user's where images of the host are kept\n"
	"  --ready-fd N    write a zero there (32 bits), and close it, when the device can be "
	"served\n"
	"  --progress      write there before how many names were met, now and then\n"
	"  --no-io-uring   wait with epoll, as where io_uring is forbidden\n"
	"  --verbose       print counts of requests at the end\n"
	"  --help, --version\n";

enum {
	OPTION_FD = OPTION_FIRST,
	OPTION_SOCKET,
	OPTION_IMAGE_FD,
	OPTION_IMAGE,
	OPTION_IMAGE_BYTES,
	OPTION_VERITY_ROOT,
	OPTION_ALLOW_DEGRADED,
	OPTION_HOST,
	OPTION_HOST_ROOT,
	OPTION_ADD,
	OPTION_HIDE,
	OPTION_CACHE_FD,
	OPTION_PROGRESS,
	OPTION_READY_FD,
	OPTION_NO_IO_URING,
	OPTION_VERBOSE,
};

static const struct option long_options[] = {
	{"fd", required_argument, NULL, OPTION_FD},
	{"socket", required_argument, NULL, OPTION_SOCKET},
	{"image-fd", required_argument, NULL, OPTION_IMAGE_FD},
	{"image", required_argument, NULL, OPTION_IMAGE},
	{"image-bytes", required_argument, NULL, OPTION_IMAGE_BYTES},
	{"verity-root", required_argument, NULL, OPTION_VERITY_ROOT},
	{"allow-degraded", no_argument, NULL, OPTION_ALLOW_DEGRADED},
	{"host", no_argument, NULL, OPTION_HOST},
	{"host-root", required_argument, NULL, OPTION_HOST_ROOT},
	{"add", required_argument, NULL, OPTION_ADD},
	{"hide", required_argument, NULL, OPTION_HIDE},
	{"cache-fd", required_argument, NULL, OPTION_CACHE_FD},
	{"progress", no_argument, NULL, OPTION_PROGRESS},
	{"ready-fd", required_argument, NULL, OPTION_READY_FD},
	{"no-io-uring", no_argument, NULL, OPTION_NO_IO_URING},
	{"verbose", no_argument, NULL, OPTION_VERBOSE},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

static int keep(const char **list, unsigned int *count, unsigned int limit, const char *option,
		const char *value)
{
	if (*count == limit) {
		log_error("%s %s: at most %u can be given", option, value, limit);
		return -E2BIG;
	}
	list[(*count)++] = value;
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

static int set_verity_root(struct blk_options *options, const char *value)
{
	options->is_verified = digest_from_hex(value, options->verity_root);
	if (options->is_verified)
		return 0;
	log_error("--verity-root %s: give 64 hexadecimal digits", value);
	return -EINVAL;
}

static int apply(void *context, int option, char *value)
{
	struct blk_options *options = context;

	switch (option) {
	case OPTION_FD:
		return option_parse_fd("--fd", value, &options->socket_fd);
	case OPTION_SOCKET:
		options->socket_path = value;
		return 0;
	case OPTION_IMAGE_FD:
		return option_parse_fd("--image-fd", value, &options->image_fd);
	case OPTION_IMAGE:
		return open_image(value, &options->image_fd);
	case OPTION_IMAGE_BYTES:
		return option_parse_number("--image-bytes", value, 1, LIMIT_IMAGE_BYTES,
					   &options->image_bytes);
	case OPTION_VERITY_ROOT:
		return set_verity_root(options, value);
	case OPTION_ALLOW_DEGRADED:
		options->allow_degraded = true;
		return 0;
	case OPTION_HOST:
		options->host = "/";
		return 0;
	case OPTION_HOST_ROOT:
		options->host = value;
		return 0;
	case OPTION_ADD:
		return keep(options->adds, &options->add_count, LIMIT_ROOT_ADDS, "--add", value);
	case OPTION_HIDE:
		return keep(options->hides, &options->hide_count, LIMIT_ROOT_HIDES, "--hide",
			    value);
	case OPTION_CACHE_FD:
		return option_parse_fd("--cache-fd", value, &options->cache_fd);
	case OPTION_PROGRESS:
		options->progress = true;
		return 0;
	case OPTION_READY_FD:
		return option_parse_fd("--ready-fd", value, &options->ready_fd);
	case OPTION_NO_IO_URING:
		options->no_io_uring = true;
		return 0;
	default:
		options->verbose = true;
		return 0;
	}
}

static const struct option_set option_set = {
	.usage = usage,
	.version = "mvagent-blk " MVAGENT_VERSION,
	.help = "mvagent-blk --help",
	.letters = "+:",
	.options = long_options,
	.apply = apply,
};

static int check(const struct blk_options *options)
{
	if ((options->socket_fd >= 0) == (options->socket_path != NULL)) {
		log_error("give one of --fd N and --socket PATH (see --help)");
		return -EINVAL;
	}
	if ((options->image_fd < 0) == !options->host) {
		log_error("give one of --image PATH, --image-fd N and --host (see --help)");
		return -EINVAL;
	}
	if (options->is_verified != (options->image_bytes != 0) ||
	    (options->is_verified && options->image_fd < 0) || options->image_bytes % 4096) {
		log_error("--verity-root and --image-bytes, of whole blocks of 4096 bytes, go "
			  "together with an image (see --help)");
		return -EINVAL;
	}
	if (!options->host && (options->add_count || options->hide_count)) {
		log_error("--add and --hide are for --host (see --help)");
		return -EINVAL;
	}
	return 1;
}

int blk_options_parse(struct blk_options *options, int argc, char **argv)
{
	int result;

	*options = (struct blk_options){
		.socket_fd = -1, .image_fd = -1, .cache_fd = -1, .ready_fd = -1};
	result = option_set_parse(&option_set, argc, argv, options);
	return result > 0 ? check(options) : result;
}

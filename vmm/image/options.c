/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/image/options.h"

#include <errno.h>
#include <stddef.h>

#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/base/option.h"
#include "vmm/base/version.h"

static const char usage[] =
	"usage: mvagent-image (--archive-fd N | --directory-fd N) --plain-fd N --contents-fd N\n"
	"                     --image-fd N --descriptor-fd N [OPTION]...\n"
	"\n"
	"Makes an image of an archive or a directory; mvagent image import starts it. All\n"
	"descriptors are inherited; it opens nothing but what is in the directory.\n"
	"\n"
	"  --archive-fd N     an archive of OCI, of docker save, or of a root file system\n"
	"  --directory-fd N   a directory that is the root file system\n"
	"  --plain-fd N       as the next three an empty file; here: the archive when unpacked\n"
	"  --contents-fd N    what is in the files\n"
	"  --image-fd N       the image\n"
	"  --descriptor-fd N  what it is\n"
	"  --maximum BYTES    files may have that much in them, all together\n"
	"  --all-root         all files of the directory belong to root in the image\n"
	"  --allow-degraded   go on where the host allows neither namespaces nor Landlock\n"
	"  --help, --version\n";

enum {
	OPTION_ARCHIVE_FD = OPTION_FIRST,
	OPTION_DIRECTORY_FD,
	OPTION_PLAIN_FD,
	OPTION_CONTENTS_FD,
	OPTION_IMAGE_FD,
	OPTION_DESCRIPTOR_FD,
	OPTION_MAXIMUM,
	OPTION_ALL_ROOT,
	OPTION_ALLOW_DEGRADED,
};

static const struct option long_options[] = {
	{"archive-fd", required_argument, NULL, OPTION_ARCHIVE_FD},
	{"directory-fd", required_argument, NULL, OPTION_DIRECTORY_FD},
	{"plain-fd", required_argument, NULL, OPTION_PLAIN_FD},
	{"contents-fd", required_argument, NULL, OPTION_CONTENTS_FD},
	{"image-fd", required_argument, NULL, OPTION_IMAGE_FD},
	{"descriptor-fd", required_argument, NULL, OPTION_DESCRIPTOR_FD},
	{"maximum", required_argument, NULL, OPTION_MAXIMUM},
	{"all-root", no_argument, NULL, OPTION_ALL_ROOT},
	{"allow-degraded", no_argument, NULL, OPTION_ALLOW_DEGRADED},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

static int apply(void *context, int option, char *value)
{
	struct import_options *options = context;

	switch (option) {
	case OPTION_ARCHIVE_FD:
		return option_parse_fd("--archive-fd", value, &options->archive_fd);
	case OPTION_DIRECTORY_FD:
		return option_parse_fd("--directory-fd", value, &options->directory_fd);
	case OPTION_PLAIN_FD:
		return option_parse_fd("--plain-fd", value, &options->plain_fd);
	case OPTION_CONTENTS_FD:
		return option_parse_fd("--contents-fd", value, &options->contents_fd);
	case OPTION_IMAGE_FD:
		return option_parse_fd("--image-fd", value, &options->image_fd);
	case OPTION_DESCRIPTOR_FD:
		return option_parse_fd("--descriptor-fd", value, &options->descriptor_fd);
	case OPTION_MAXIMUM:
		return option_parse_number("--maximum", value, 1, LIMIT_IMAGE_BYTES,
					   &options->maximum);
	case OPTION_ALL_ROOT:
		options->all_root = true;
		return 0;
	default:
		options->allow_degraded = true;
		return 0;
	}
}

static const struct option_set option_set = {
	.usage = usage,
	.version = "mvagent-image " MVAGENT_VERSION,
	.help = "mvagent-image --help",
	.letters = "+:",
	.options = long_options,
	.apply = apply,
};

int import_options_parse(struct import_options *options, int argc, char **argv)
{
	int result;

	*options = (struct import_options){
		.archive_fd = -1,
		.directory_fd = -1,
		.plain_fd = -1,
		.contents_fd = -1,
		.image_fd = -1,
		.descriptor_fd = -1,
		.maximum = LIMIT_IMAGE_DEFAULT_BYTES,
	};
	result = option_set_parse(&option_set, argc, argv, options);
	if (result <= 0)
		return result;
	if ((options->archive_fd < 0) != (options->directory_fd < 0) && options->plain_fd >= 0 &&
	    options->contents_fd >= 0 && options->image_fd >= 0 && options->descriptor_fd >= 0)
		return 1;
	log_error("give an archive or a directory, and all four files (see --help)");
	return -EINVAL;
}

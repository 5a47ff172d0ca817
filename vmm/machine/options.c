/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/base/version.h"

static const char usage[] =
	"usage: mvagent-vmm OPTIONS\n"
	"The machine of one run; started by mvagent, which hands it all it needs.\n"
	"  --monitor-fd N        socket to the supervisor\n"
	"  --kvm-fd N            /dev/kvm\n"
	"  --kernel-fd N         guest kernel (vmlinux)\n"
	"  --initrd-fd N         initramfs\n"
	"  --command-line TEXT   kernel command line\n"
	"  --memory MIB          guest memory\n"
	"  --cpus N              virtual processors\n"
	"  --blk-fd N            vhost-user socket of the root device\n"
	"  --share TAG:N         vhost-user socket of a share\n"
	"  --port PORT:N         socket that the guest reaches as vsock PORT of the host\n"
	"  --trap-registers      every device access leaves the guest (a fallback, for tests)\n"
	"  --no-io-uring         use epoll\n"
	"  --verbose             print what happens\n";

static int options_parse_number(const char *text, uint64_t minimum, uint64_t maximum,
				uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || *number < minimum || *number > maximum)
		return -EINVAL;
	return 0;
}

/* NAME:FD, split in place. */
static int options_split_fd(char *text, int *fd)
{
	char *colon = strrchr(text, ':');

	if (!colon)
		return -EINVAL;
	*colon = '\0';
	*fd = fd_parse(colon + 1);
	return *fd < 0 ? *fd : 0;
}

static int options_add_share(struct options *options, char *text)
{
	struct options_share *share = &options->shares[options->share_count];
	size_t length;

	if (options->share_count == LIMIT_SHARES || options_split_fd(text, &share->fd) < 0)
		return -EINVAL;
	length = strlen(text);
	if (length == 0 || length > sizeof(share->tag))
		return -EINVAL;
	memcpy(share->tag, text, length);
	options->share_count++;
	return 0;
}

static int options_add_port(struct options *options, char *text)
{
	struct options_port *port = &options->ports[options->port_count];
	uint64_t number;

	if (options->port_count == LIMIT_VSOCK_PORTS || options_split_fd(text, &port->fd) < 0 ||
	    options_parse_number(text, 1, UINT32_MAX - 1, &number) < 0)
		return -EINVAL;
	port->port = (uint32_t)number;
	options->port_count++;
	return 0;
}

enum option_value {
	OPTION_HELP = 'h',
	OPTION_VERSION = 'V',
	OPTION_MONITOR = 256,
	OPTION_KVM,
	OPTION_KERNEL,
	OPTION_INITRD,
	OPTION_COMMAND_LINE,
	OPTION_MEMORY,
	OPTION_CPUS,
	OPTION_BLK,
	OPTION_SHARE,
	OPTION_PORT,
	OPTION_TRAP,
	OPTION_NO_IO_URING,
	OPTION_VERBOSE,
};

static const struct option long_options[] = {
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"monitor-fd", required_argument, NULL, OPTION_MONITOR},
	{"kvm-fd", required_argument, NULL, OPTION_KVM},
	{"kernel-fd", required_argument, NULL, OPTION_KERNEL},
	{"initrd-fd", required_argument, NULL, OPTION_INITRD},
	{"command-line", required_argument, NULL, OPTION_COMMAND_LINE},
	{"memory", required_argument, NULL, OPTION_MEMORY},
	{"cpus", required_argument, NULL, OPTION_CPUS},
	{"blk-fd", required_argument, NULL, OPTION_BLK},
	{"share", required_argument, NULL, OPTION_SHARE},
	{"port", required_argument, NULL, OPTION_PORT},
	{"trap-registers", no_argument, NULL, OPTION_TRAP},
	{"no-io-uring", no_argument, NULL, OPTION_NO_IO_URING},
	{"verbose", no_argument, NULL, OPTION_VERBOSE},
	{NULL, 0, NULL, 0},
};

/* Returns 0 or a negative errno for a value that cannot be. */
static int options_set(struct options *options, int option, char *value)
{
	uint64_t number = 0;
	int error = 0;

	switch (option) {
	case OPTION_MONITOR:
		error = options->monitor_fd = fd_parse(value);
		break;
	case OPTION_KVM:
		error = options->kvm_fd = fd_parse(value);
		break;
	case OPTION_KERNEL:
		error = options->kernel_fd = fd_parse(value);
		break;
	case OPTION_INITRD:
		error = options->initrd_fd = fd_parse(value);
		break;
	case OPTION_BLK:
		error = options->blk_fd = fd_parse(value);
		break;
	case OPTION_COMMAND_LINE:
		options->command_line = value;
		break;
	case OPTION_MEMORY:
		error = options_parse_number(value, LIMIT_MEMORY_MIN_MIB, 1ULL << 24, &number);
		options->memory_mib = number;
		break;
	case OPTION_CPUS:
		error = options_parse_number(value, 1, LIMIT_VCPUS, &number);
		options->vcpu_count = (unsigned int)number;
		break;
	case OPTION_SHARE:
		error = options_add_share(options, value);
		break;
	case OPTION_PORT:
		error = options_add_port(options, value);
		break;
	case OPTION_TRAP:
		options->trap_registers = true;
		break;
	case OPTION_NO_IO_URING:
		options->no_io_uring = true;
		break;
	default:
		options->verbose = true;
		break;
	}
	return error < 0 ? error : 0;
}

static const char *options_missing(const struct options *options)
{
	if (options->monitor_fd < 0)
		return "--monitor-fd";
	if (options->kvm_fd < 0)
		return "--kvm-fd";
	if (options->kernel_fd < 0)
		return "--kernel-fd";
	if (options->initrd_fd < 0)
		return "--initrd-fd";
	return NULL;
}

enum options_result options_parse(struct options *options, int argc, char **argv)
{
	const char *missing;
	int option, index;

	*options = (struct options){.monitor_fd = -1,
				    .kvm_fd = -1,
				    .kernel_fd = -1,
				    .initrd_fd = -1,
				    .blk_fd = -1,
				    .memory_mib = 512,
				    .vcpu_count = 1,
				    .command_line = ""};
	while ((option = getopt_long(argc, argv, "hV", long_options, &index)) != -1) {
		if (option == OPTION_HELP) {
			fputs(usage, stdout);
			return OPTIONS_DONE;
		}
		if (option == OPTION_VERSION) {
			puts("mvagent-vmm " MVAGENT_VERSION);
			return OPTIONS_DONE;
		}
		if (option == '?')
			return OPTIONS_ERROR;
		if (options_set(options, option, optarg) < 0) {
			log_error("--%s does not take the value '%s'; see --help",
				  long_options[index].name, optarg);
			return OPTIONS_ERROR;
		}
	}
	if (optind != argc) {
		log_error("unexpected argument '%s'; see --help", argv[optind]);
		return OPTIONS_ERROR;
	}
	missing = options_missing(options);
	if (missing) {
		log_error("%s is needed; this program is started by mvagent", missing);
		return OPTIONS_ERROR;
	}
	return OPTIONS_RUN;
}

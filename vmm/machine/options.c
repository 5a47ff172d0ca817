/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/machine/options.h"

#include <errno.h>
#include <string.h>

#include "vmm/base/log.h"
#include "vmm/base/option.h"
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
	"  --lender PORT:N       socket to mvagent-relay, for connections of the guest to vsock "
	"PORT\n"
	"  --trap-registers      every device access leaves the guest (a fallback, for tests)\n"
	"  --allow-degraded      go on where the host allows neither namespaces nor Landlock\n"
	"  --no-io-uring         use epoll\n"
	"  --verbose             print what happens\n";

/* NAME:FD, split in place. */
static int options_split_fd(const char *option, char *text, int *fd)
{
	char *colon = strrchr(text, ':');

	if (!colon) {
		log_error("%s needs a name and a descriptor, NAME:N, not '%s'", option, text);
		return -EINVAL;
	}
	*colon = '\0';
	*fd = -1;
	return option_parse_fd(option, colon + 1, fd);
}

static int options_add_share(struct options *options, char *text)
{
	struct options_share *share = &options->shares[options->share_count];
	size_t length;
	int error;

	if (options->share_count == LIMIT_SHARES) {
		log_error("--share: there can be %d at most", LIMIT_SHARES);
		return -E2BIG;
	}
	error = options_split_fd("--share", text, &share->fd);
	if (error)
		return error;
	length = strlen(text);
	if (length == 0 || length > sizeof(share->tag)) {
		log_error("--share needs a tag of 1 to %zu bytes, not '%s'", sizeof(share->tag),
			  text);
		return -EINVAL;
	}
	memcpy(share->tag, text, length);
	options->share_count++;
	return 0;
}

/* PORT:FD */
static int options_read_port(const char *option, char *text, struct options_port *port)
{
	uint64_t number;
	int error = options_split_fd(option, text, &port->fd);

	error = error ? error : option_parse_number(option, text, 1, UINT32_MAX - 1, &number);
	if (!error)
		port->port = (uint32_t)number;
	return error;
}

static int options_add_port(struct options *options, char *text)
{
	int error;

	if (options->port_count == LIMIT_VSOCK_PORTS) {
		log_error("--port: there can be %d at most", LIMIT_VSOCK_PORTS);
		return -E2BIG;
	}
	error = options_read_port("--port", text, &options->ports[options->port_count]);
	if (!error)
		options->port_count++;
	return error;
}

static int options_set_memory(struct options *options, const char *text)
{
	return option_parse_number("--memory", text, LIMIT_MEMORY_MIN_MIB, 1ULL << 24,
				   &options->memory_mib);
}

static int options_set_cpus(struct options *options, const char *text)
{
	uint64_t number;
	int error = option_parse_number("--cpus", text, 1, LIMIT_VCPUS, &number);

	if (!error)
		options->vcpu_count = (unsigned int)number;
	return error;
}

enum {
	OPTION_MONITOR = OPTION_FIRST,
	OPTION_KVM,
	OPTION_KERNEL,
	OPTION_INITRD,
	OPTION_COMMAND_LINE,
	OPTION_MEMORY,
	OPTION_CPUS,
	OPTION_BLK,
	OPTION_SHARE,
	OPTION_PORT,
	OPTION_LENDER,
	OPTION_TRAP,
	OPTION_ALLOW_DEGRADED,
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
	{"lender", required_argument, NULL, OPTION_LENDER},
	{"trap-registers", no_argument, NULL, OPTION_TRAP},
	{"allow-degraded", no_argument, NULL, OPTION_ALLOW_DEGRADED},
	{"no-io-uring", no_argument, NULL, OPTION_NO_IO_URING},
	{"verbose", no_argument, NULL, OPTION_VERBOSE},
	{NULL, 0, NULL, 0},
};

static int options_apply(void *context, int option, char *value)
{
	struct options *options = context;

	switch (option) {
	case OPTION_MONITOR:
		return option_parse_fd("--monitor-fd", value, &options->monitor_fd);
	case OPTION_KVM:
		return option_parse_fd("--kvm-fd", value, &options->kvm_fd);
	case OPTION_KERNEL:
		return option_parse_fd("--kernel-fd", value, &options->kernel_fd);
	case OPTION_INITRD:
		return option_parse_fd("--initrd-fd", value, &options->initrd_fd);
	case OPTION_BLK:
		return option_parse_fd("--blk-fd", value, &options->blk_fd);
	case OPTION_COMMAND_LINE:
		options->command_line = value;
		return 0;
	case OPTION_MEMORY:
		return options_set_memory(options, value);
	case OPTION_CPUS:
		return options_set_cpus(options, value);
	case OPTION_SHARE:
		return options_add_share(options, value);
	case OPTION_PORT:
		return options_add_port(options, value);
	case OPTION_LENDER:
		return options_read_port("--lender", value, &options->lender);
	case OPTION_TRAP:
		options->trap_registers = true;
		return 0;
	case OPTION_ALLOW_DEGRADED:
		options->allow_degraded = true;
		return 0;
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
	.version = "mvagent-vmm " MVAGENT_VERSION,
	.help = "mvagent-vmm --help",
	.letters = "+:hV",
	.options = long_options,
	.apply = options_apply,
};

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
	int result;

	*options = (struct options){.monitor_fd = -1,
				    .kvm_fd = -1,
				    .kernel_fd = -1,
				    .initrd_fd = -1,
				    .blk_fd = -1,
				    .memory_mib = 512,
				    .vcpu_count = 1,
				    .command_line = ""};
	result = option_set_parse(&option_set, argc, argv, options);
	if (result <= 0)
		return result < 0 ? OPTIONS_ERROR : OPTIONS_DONE;
	missing = options_missing(options);
	if (missing) {
		log_error("%s is needed; this program is started by mvagent", missing);
		return OPTIONS_ERROR;
	}
	return OPTIONS_RUN;
}

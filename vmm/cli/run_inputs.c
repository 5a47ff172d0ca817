/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/cli/run_inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/types.h>

#include "vmm/base/fd.h"
#include "vmm/base/log.h"
#include "vmm/cli/cache_directory.h"
#include "vmm/cli/kvm_probe.h"

static int inputs_open_file(const char *given, const char *option, const struct installation *where,
			    const char *installed, int *fd)
{
	char path[PATH_MAX];

	if (!given && installation_file(where, installed, path) < 0)
		return -ENAMETOOLONG;
	*fd = open(given ? given : path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (*fd >= 0)
		return 0;
	if (given)
		return log_errno(-errno, "%s %s", option, given);
	log_errno(-errno, "cannot open %s", path);
	if (errno == ENOENT)
		log_error(
			"this installation is not complete: run 'make' (or 'make install') again");
	return -ENOENT;
}

/* What a file must begin with to be of use; the parts that read it check the rest. */
struct file_kind {
	const char *name; /* "an EROFS image" */
	off_t offset;
	uint8_t magic[4];
};

static const struct file_kind kernel_kind = {
	"an uncompressed vmlinux (ELF)", 0, {0x7f, 'E', 'L', 'F'}};
/* EROFS_SUPER_OFFSET and EROFS_SUPER_MAGIC_V1, little endian. */
static const struct file_kind image_kind = {"an EROFS image", 1024, {0xe2, 0xe1, 0xf5, 0xe0}};

static int inputs_check_file(int fd, const char *given, const char *option,
			     const struct file_kind *kind)
{
	uint8_t magic[sizeof(kind->magic)];
	int error = fd_pread_full(fd, magic, sizeof(magic), kind->offset);

	if (!error && memcmp(magic, kind->magic, sizeof(magic)) == 0)
		return 0;
	log_error("%s%s%s is not %s", given ? option : "the installation's file for ",
		  given ? " " : option, given ? given : "", kind->name);
	return -EINVAL;
}

static int inputs_open_image(struct run_inputs *inputs, const char *root)
{
	inputs->image_fd = run_image_open(&inputs->image, root);
	if (inputs->image_fd < 0)
		return inputs->image_fd;
	return inputs_check_file(inputs->image_fd, root, "--root", &image_kind);
}

int run_inputs_open(struct run_inputs *inputs, const struct run_options *options,
		    const struct installation *where)
{
	struct kvm_probe probe;
	int error;

	*inputs = RUN_INPUTS_NONE;
	error = inputs_open_file(options->kernel, "--kernel", where, "vmlinux", &inputs->kernel_fd);
	if (!error)
		error = inputs_check_file(inputs->kernel_fd, options->kernel, "--kernel",
					  &kernel_kind);
	if (!error)
		error = inputs_open_file(NULL, NULL, where, "initramfs.cpio", &inputs->initrd_fd);
	if (!error && options->root.image)
		error = inputs_open_image(inputs, options->root.image);
	if (error)
		return error;
	if (!options->root.image)
		inputs->cache_fd = cache_directory_open("root");
	kvm_probe(&probe, 0);
	inputs->kvm_fd = probe.fd;
	if (probe.state == KVM_STATE_HARDWARE)
		return 0;
	log_error("%s", probe.sentence);
	return -ENODEV;
}

void run_inputs_close(struct run_inputs *inputs)
{
	fd_close(&inputs->kvm_fd);
	fd_close(&inputs->kernel_fd);
	fd_close(&inputs->initrd_fd);
	fd_close(&inputs->image_fd);
	fd_close(&inputs->cache_fd);
}

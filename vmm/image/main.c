/* SPDX-License-Identifier: Apache-2.0 */
/* mvagent-image: makes an image of an archive that is not trusted. */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "vmm/base/limits.h"
#include "vmm/base/log.h"
#include "vmm/image/import.h"
#include "vmm/image/layer.h"
#include "vmm/image/options.h"
#include "vmm/jail/capabilities.h"
#include "vmm/jail/filter.h"
#include "vmm/jail/jail.h"

/* It has its files already. Only a directory is read name by name: below it, and with root's power
 * to read if root started this. */
static int confine(const struct import_options *options)
{
	const struct jail_directory directory = {.fd = options->directory_fd};
	bool has_directory = options->directory_fd >= 0;
	int error = jail_enter(&(struct jail){
		.directories = &directory,
		.directory_count = has_directory ? 1 : 0,
		.capabilities = has_directory ? CAPABILITY_BIT(CAP_DAC_READ_SEARCH) : 0,
		.keep_user = has_directory,
		.allow_degraded = options->allow_degraded,
	});

	return error ? error
		     : jail_seal(has_directory ? filter_image_directory : filter_image,
				 options->allow_degraded);
}

/* What archives make of this process's memory has a bound, too: dictionaries of xz have 4 GiB. */
static int limit_memory(void)
{
#ifndef __SANITIZE_ADDRESS__ /* whose shadow is larger than any bound */
	const struct rlimit limit = {LIMIT_IMAGE_MEMORY_BYTES, LIMIT_IMAGE_MEMORY_BYTES};

	if (setrlimit(RLIMIT_AS, &limit))
		return log_errno(-errno, "cannot bound the memory of mvagent-image");
#endif
	return 0;
}

int main(int argc, char **argv)
{
	struct import_options options;
	int result = import_options_parse(&options, argc, argv);

	if (result <= 0)
		return result ? EXIT_FAILURE : EXIT_SUCCESS;
	layer_prepare();
	if (limit_memory() || confine(&options))
		return EXIT_FAILURE;
	return import_run(&options) ? EXIT_FAILURE : EXIT_SUCCESS;
}

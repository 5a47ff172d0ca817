/* SPDX-License-Identifier: Apache-2.0 */
/* mvagent-image: makes an image of an archive that is not trusted. */
#include <stdlib.h>

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

int main(int argc, char **argv)
{
	struct import_options options;
	int result = import_options_parse(&options, argc, argv);

	if (result <= 0)
		return result ? EXIT_FAILURE : EXIT_SUCCESS;
	layer_prepare();
	if (confine(&options))
		return EXIT_FAILURE;
	return import_run(&options) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a run starts from, opened before anything is started. */
#ifndef MVAGENT_CLI_RUN_INPUTS_H
#define MVAGENT_CLI_RUN_INPUTS_H

#include "vmm/cli/installation.h"
#include "vmm/cli/run_image.h"
#include "vmm/cli/run_options.h"

/* Descriptors; -1: not open. */
struct run_inputs {
	int kvm_fd;
	int kernel_fd;
	int initrd_fd;
	int image_fd; /* -1 also where the root is the host's own */
	int cache_fd; /* of that; -1: there is no cache */
	struct run_image image;
};

#define RUN_INPUTS_NONE ((struct run_inputs){-1, -1, -1, -1, -1, {0}})

/* Opens what the options name, else the installation's own, and /dev/kvm. 0 or -errno with the
 * sentence printed. Close in every case; what is known of the image stays until run_image_free. */
int run_inputs_open(struct run_inputs *inputs, const struct run_options *options,
		    const struct installation *where);
void run_inputs_close(struct run_inputs *inputs);

#endif

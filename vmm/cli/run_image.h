/* SPDX-License-Identifier: Apache-2.0 */
/* The image of --root: a file as it is, or one of the user's store with what it says of its
 * command. */
#ifndef MVAGENT_CLI_RUN_IMAGE_H
#define MVAGENT_CLI_RUN_IMAGE_H

#include <stdbool.h>

#include "vmm/base/digest.h"
#include "vmm/cli/process.h"
#include "vmm/image/descriptor.h"

struct run_image {
	bool is_stored; /* then the next two are known */
	uint8_t digest[SHA256_BYTES];
	struct image_descriptor descriptor;
	char **command; /* what the image has run when nothing else is said; NULL-terminated; the
			   texts are the descriptor's */
};

/* Opens what --root names, for reading: the image of that name if there is one, or else the file.
 * Descriptor, or -errno with the sentence printed. run_image_free in every case. */
int run_image_open(struct run_image *image, const char *root);
void run_image_free(struct run_image *image);

/* What the image says of its command; NULL: nothing. */
const struct image_settings *run_image_settings(const struct run_image *image);

/* Adds what mvagent-blk has to know of it, beside the file. */
void run_image_plan(const struct run_image *image, struct process_plan *plan);

#endif

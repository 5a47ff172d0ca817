/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an image of the store from an archive or a directory, by mvagent-image. */
#ifndef MVAGENT_CLI_IMAGE_IMPORT_H
#define MVAGENT_CLI_IMAGE_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/sha256.h"

struct image_import {
	const char *name; /* of the image */
	int source_fd;    /* an archive (file or pipe), or a directory */
	uint64_t maximum; /* bytes of contents */
	bool allow_degraded;
};

/* Opens the store, made if it is not there, for an import, and keeps others from changing it and
 * signals from ending this process. Descriptor or -errno with the sentence printed. */
int image_import_begin(void);

/* Imports, and names what came of it: @digest. 0, -EINTR (a signal ended it) or -errno; the
 * sentence is printed. */
int image_import(int store_fd, const struct image_import *import, uint8_t digest[SHA256_BYTES]);

#endif

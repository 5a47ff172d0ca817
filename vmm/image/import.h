/* SPDX-License-Identifier: Apache-2.0 */
/* From an archive or a directory to an image: all of what mvagent-image does. */
#ifndef MVAGENT_IMAGE_IMPORT_H
#define MVAGENT_IMAGE_IMPORT_H

#include "vmm/image/options.h"

/* Reads what @options names and writes image and descriptor. 0 or -errno with the sentence printed.
 */
int import_run(const struct import_options *options);

#endif

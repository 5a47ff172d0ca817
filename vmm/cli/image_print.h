/* SPDX-License-Identifier: Apache-2.0 */
/* What `mvagent image` prints of the store. Each: 0 or -errno with the sentence printed. */
#ifndef MVAGENT_CLI_IMAGE_PRINT_H
#define MVAGENT_CLI_IMAGE_PRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/digest.h"

/* "NAME@sha256:DIGEST", which --root takes. */
int image_print_pin(const char *name, const uint8_t digest[SHA256_BYTES]);

/* All images; none if @store_fd is negative. */
int image_print_list(int store_fd, bool json);

/* One of them. */
int image_print_image(int store_fd, const char *name, const uint8_t digest[SHA256_BYTES],
		      bool json);

#endif

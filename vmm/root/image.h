/* SPDX-License-Identifier: Apache-2.0 */
/* An image file as the content of a root device. */
#ifndef MVAGENT_ROOT_IMAGE_H
#define MVAGENT_ROOT_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/root/content.h"

struct image {
	int fd;
	bool no_nowait;
	bool complained;
};

/* Checks that @fd is a file or block device, open for reading, of whole sectors and at least one,
 * and stores their count. Takes O_NONBLOCK off it, so that reads wait for the disk. 0 or -errno,
 * with the sentence printed. */
int image_measure(int fd, uint64_t *sectors);

/* The content of @fd, which stays the caller's, as @image is while it is used. */
struct content image_content(struct image *image, int fd, uint64_t sectors);

#endif

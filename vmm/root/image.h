/* SPDX-License-Identifier: Apache-2.0 */
/* What can be served as a root device. */
#ifndef MVAGENT_ROOT_IMAGE_H
#define MVAGENT_ROOT_IMAGE_H

#include <stdint.h>

/* Checks that @fd is a file or block device, open for reading, of whole sectors and at least one,
 * and stores their count. Takes O_NONBLOCK off it, so that reads wait for the disk. 0 or -errno,
 * with the sentence printed. */
int image_measure(int fd, uint64_t *sectors);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of the host as the one layer of an image. */
#ifndef MVAGENT_IMAGE_DIRECTORY_H
#define MVAGENT_IMAGE_DIRECTORY_H

#include <stdbool.h>

#include "vmm/image/layer.h"

/* Reads all that is in the directory, on its own file system, following no link. @all_root: whoever
 * owns a file, in the image it is root's. 0 or -errno with the sentence printed. */
int directory_apply(int fd, bool all_root, const struct layer_target *target);

#endif

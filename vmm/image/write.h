/* SPDX-License-Identifier: Apache-2.0 */
/* Puts an image together: file system, tree of hashes, descriptor. */
#ifndef MVAGENT_IMAGE_WRITE_H
#define MVAGENT_IMAGE_WRITE_H

#include "vmm/image/contents.h"
#include "vmm/image/descriptor.h"
#include "vmm/image/merge.h"

/* Writes the file system and its tree of hashes to @image_fd, which is empty and open for reading
 * and writing. Sets all of @descriptor but its settings. 0 or -errno with the sentence printed. */
int image_write(const struct merge *merge, const struct contents *contents, int image_fd,
		struct image_descriptor *descriptor);

#endif

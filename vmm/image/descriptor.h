/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an image is, as one text of JSON: how long it is, the root of its tree of hashes
 * (vmm/root/verity.h), and how its command is run. The SHA-256 of this text is the image's digest:
 * it stands for every byte of the image and for all of its settings, and is known without reading
 * the image.
 */
#ifndef MVAGENT_IMAGE_DESCRIPTOR_H
#define MVAGENT_IMAGE_DESCRIPTOR_H

#include <stddef.h>
#include <stdint.h>

#include "vmm/base/digest.h"
#include "vmm/image/settings.h"

struct image_descriptor {
	uint64_t bytes; /* of the file system; whole blocks of the tree's */
	uint8_t verity_root[SHA256_BYTES];
	struct image_settings settings;
};

/* The text, allocated. The same descriptor gives the same text. 0 or -ENOMEM. */
int image_descriptor_format(const struct image_descriptor *descriptor, char **text);

/* Reads it, with free by image_descriptor_free in every case. 0, -EINVAL: it is not one, or
 * -ENOMEM. */
int image_descriptor_parse(const char *text, size_t length, struct image_descriptor *descriptor);
void image_descriptor_free(struct image_descriptor *descriptor);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image file with its tree of hashes (verity.h) as the content of a root device. What the guest
 * gets was compared with the root of the tree each time, in memory that nobody else can write to:
 * the file may have been changed before or while it is served.
 */
#ifndef MVAGENT_ROOT_VERIFIED_IMAGE_H
#define MVAGENT_ROOT_VERIFIED_IMAGE_H

#include <stdint.h>

#include "vmm/base/sha256.h"
#include "vmm/root/content.h"

struct verified_image;

/* @fd, which stays the caller's, begins with @bytes of image. @spoiled is called once, when the
 * image turned out to be another, or cannot be read: the sentence is printed, and the guest gets
 * errors from there on. 0 or -errno with the sentence printed. */
int verified_image_create(struct verified_image **image, int fd, uint64_t bytes,
			  const uint8_t root[SHA256_BYTES], void (*spoiled)(void *context),
			  void *context);
void verified_image_destroy(struct verified_image *image);

struct content verified_image_content(struct verified_image *image);

#endif

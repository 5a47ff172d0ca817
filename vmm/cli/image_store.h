/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's images: one directory, mvagent/images of $XDG_DATA_HOME or ~/.local/share, closed to
 * all others. In it, for each image, whose digest is the SHA-256 of its descriptor
 * (vmm/image/descriptor.h):
 *
 *     DIGEST.json    the descriptor
 *     DIGEST.image   the file system, and its tree of hashes behind it
 *     NAME.name      "sha256:DIGEST": a name for it
 *
 * Files appear whole or not at all. Nothing in it is believed but what the digest vouches for.
 */
#ifndef MVAGENT_CLI_IMAGE_STORE_H
#define MVAGENT_CLI_IMAGE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/base/digest.h"
#include "vmm/image/descriptor.h"

/* What a user calls an image: a name, a digest, or both. */
struct image_reference {
	char name[LIMIT_IMAGE_NAME_BYTES + 1]; /* empty: by digest alone */
	bool is_pinned;
	uint8_t digest[SHA256_BYTES]; /* if it is pinned */
};

/* Reads NAME, NAME@sha256:DIGEST or sha256:DIGEST. False: it has no such form. */
bool image_reference_parse(const char *text, struct image_reference *reference);

/* Opens the store, making it if @make. A descriptor, -ENOENT without a sentence (there is none, and
 * it is not to be made), or -errno with the sentence printed. */
int image_store_open(bool make);

/* Waits until nobody else changes the store; until the descriptor is closed nobody else will. 0 or
 * -errno, as above. */
int image_store_lock(int store_fd);

/* The digest that a name stands for. 0, -ENOENT without a sentence, or -errno. */
int image_store_find_name(int store_fd, const char *name, uint8_t digest[SHA256_BYTES]);

/* The digest of what a reference stands for. 0, or -errno: -ENOENT without a sentence when the name
 * or the digest is not there, else (it is pinned, and the name stands for something else) printed.
 */
int image_store_resolve(int store_fd, const struct image_reference *reference,
			uint8_t digest[SHA256_BYTES]);

/* Reads a descriptor and checks that it is what the digest says. 0 or -errno with the sentence
 * printed; image_descriptor_free in every case. */
int image_store_read(int store_fd, const uint8_t digest[SHA256_BYTES],
		     struct image_descriptor *descriptor);

/* Opens the file system of an image. Descriptor or -errno with the sentence printed. */
int image_store_open_image(int store_fd, const uint8_t digest[SHA256_BYTES]);

/* Files in the making, of a store that is locked. */
struct image_store_new {
	int image_fd;
	int descriptor_fd;
};

/* 0 or -errno with the sentence printed. */
int image_store_begin(int store_fd, struct image_store_new *files);

/* A file without a name, for what is needed on the way. Descriptor or -errno, as above. */
int image_store_scratch(int store_fd);

/* Reads the descriptor that was written, puts both files in place under the digest of it, and gives
 * that. 0 or -errno with the sentence printed. */
int image_store_finish(int store_fd, struct image_store_new *files, uint8_t digest[SHA256_BYTES]);

/* Gives up what was begun, if it was not finished. */
void image_store_abort(int store_fd, struct image_store_new *files);

/* Lets a name stand for a digest; removes what it stood for if it has no other name. 0 or -errno
 * with the sentence printed. */
int image_store_set_name(int store_fd, const char *name, const uint8_t digest[SHA256_BYTES]);

/* Removes a name, and its image if it has no other. 0, -ENOENT without a sentence, or -errno. */
int image_store_remove_name(int store_fd, const char *name);

/* All names, sorted; allocated, NULL-terminated (image_strings_free). NULL: out of memory. */
char **image_store_names(int store_fd);

/* Bytes that the image takes on the disk; 0 if it cannot be looked at. When it was imported. */
uint64_t image_store_usage(int store_fd, const uint8_t digest[SHA256_BYTES], int64_t *imported);

#endif

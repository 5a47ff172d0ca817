/* SPDX-License-Identifier: Apache-2.0 */
/* One file of the cache: how an image lies in it. */
#ifndef MVAGENT_ROOT_HOST_CACHE_FILE_H
#define MVAGENT_ROOT_HOST_CACHE_FILE_H

#include <stddef.h>

#include "vmm/root/host_image.h"

#define HOST_CACHE_PREFIX "host-"

/* Maps a file and fills @image with pointers into it, if it is whole and made for @key. Numbers in
 * it are not checked yet: see host_check.h. 0 or -errno. */
int host_cache_file_map(int fd, const char *key, size_t key_length, struct host_image *image);

/* Writes an image to an empty file. 0 or -errno. */
int host_cache_file_write(int fd, const char *key, size_t key_length,
			  const struct host_image *image);

/* Removes the oldest files of the cache, so that with the next one there are HOST_CACHE_FILES. */
#define HOST_CACHE_FILES 4U
void host_cache_file_prune(int directory_fd);

#endif

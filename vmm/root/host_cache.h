/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of the host's directories that are kept from run to run, each in one file of the user's
 * cache directory, laid out as it is used: it is mapped, not read. The name is a hash of all that
 * the image depends on beside the directories' contents; the file has it in full. Deleting any of
 * it at any time does no harm.
 */
#ifndef MVAGENT_ROOT_HOST_CACHE_H
#define MVAGENT_ROOT_HOST_CACHE_H

#include "vmm/root/host_image.h"

struct host_cache;

/* Takes a directory into use, for the images of a plan. It must be the user's own, and closed to
 * all others; else, and when @directory_fd is -1, there is no cache: *cache is NULL. @directory_fd
 * stays the caller's. 0 or -errno with the sentence printed. */
int host_cache_open(struct host_cache **cache, int directory_fd, const struct host_plan *plan);
void host_cache_close(struct host_cache *cache);

/* Fills @image with the one that is kept, when it is good and all directories are as they were.
 * Otherwise returns -ENOENT, and the file is not there any more. NULL has none. */
int host_cache_load(struct host_cache *cache, const struct host_plan *plan,
		    struct host_image *image);

/* Keeps the image for later runs, and not more than a few others. @second: of the clock, before the
 * directories were read. When that fails there is no cache, and nobody need know. NULL is ignored.
 */
void host_cache_save(struct host_cache *cache, const struct host_image *image, int64_t second);

/* mvagent-blk's exit status when the image was not the host's any more: a file changed in place,
 * which leaves no trace in its directory. Whoever started it removes what is kept; by then the
 * process may not any more. */
#define HOST_CACHE_OUTDATED 3

#endif

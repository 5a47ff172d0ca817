/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an image that was kept from an earlier run is sound, and still the host's. */
#ifndef MVAGENT_ROOT_HOST_CHECK_H
#define MVAGENT_ROOT_HOST_CHECK_H

#include <stdbool.h>

#include "vmm/root/host_image.h"

/* Whether the root and the numbers of blocks lead to where they may: it was read from a file. First
 * of the two: the next one looks at all other nodes. */
bool host_check_numbers(const struct host_image *image, const struct host_plan *plan);

/* Whether all nodes are sound, and all directories as they were (inode, mtime, ctime), and the
 * files of those sources that say so: what was made, removed, renamed or replaced anywhere is found
 * by that. A file that was written to in place is not; it is refused when it is read. */
bool host_check_directories(const struct host_image *image, const struct host_plan *plan);

/* Whether something changed so shortly before the image was made, at @second of the clock, that
 * one more change might have left no trace in its times. */
bool host_check_is_settled(const struct host_image *image, int64_t second);

#endif

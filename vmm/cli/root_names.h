/* SPDX-License-Identifier: Apache-2.0 */
/* Names for `mvagent root show --verbose`: what was left out, and what of a listed directory
 * enters. */
#ifndef MVAGENT_CLI_ROOT_NAMES_H
#define MVAGENT_CLI_ROOT_NAMES_H

#include "vmm/base/limits.h"
#include "vmm/root/host_image.h"

#define ROOT_NAMES_COUNTS (sizeof(struct host_counts) / sizeof(uint64_t))

/* The first names of each count of host_counts; what comes after is only counted there. */
struct root_names {
	char *names[ROOT_NAMES_COUNTS][LIMIT_ROOT_SHOWN];
	unsigned int counts[ROOT_NAMES_COUNTS];
};

/* host_progress.left_out, with struct root_names as context. */
void root_names_left_out(void *context, const char *path, size_t count);
void root_names_destroy(struct root_names *names);

/* Of a directory of the host of which only listed names enter (index in the plan): gives the path
 * of each that is there, below that directory and safe to print, with a slash behind that of a
 * directory, to @show. At most LIMIT_ROOT_SHOWN of them. Returns how many more there are. */
unsigned int root_names_entered(const struct host_image *image, unsigned int source,
				void (*show)(void *context, const char *path), void *context);

#endif

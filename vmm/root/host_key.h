/* SPDX-License-Identifier: Apache-2.0 */
/* All that an image of the host depends on, beside the contents of its directories, as a text. */
#ifndef MVAGENT_ROOT_HOST_KEY_H
#define MVAGENT_ROOT_HOST_KEY_H

#include <stddef.h>

#include "vmm/root/host_plan.h"

/* The text for a plan: the format, the user, the plan, and what is mounted below its directories.
 * Allocated; 0 or -ENOMEM. */
int host_key_make(const struct host_plan *plan, char **key, size_t *length);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* --host: plan, image and content together, from the options of mvagent-blk. */
#ifndef MVAGENT_ROOT_HOST_ROOT_H
#define MVAGENT_ROOT_HOST_ROOT_H

#include <stdbool.h>

#include "vmm/root/content.h"
#include "vmm/root/host_plan.h"
#include "vmm/root/options.h"

struct host_root;

/* Makes the image of the host's directories, with progress told to who waits for it.
 * 0 or -errno with the sentence printed. */
int host_root_create(struct host_root **root, const struct blk_options *options);
void host_root_destroy(struct host_root *root);

struct content host_root_content(const struct host_root *root);
const struct host_plan *host_root_plan(const struct host_root *root);

/* Whether a file was asked for that is not what it was in the image. */
bool host_root_is_outdated(const struct host_root *root);

/* SHA-256 of the image's metadata: SHA256_BYTES. */
const uint8_t *host_root_metadata_hash(const struct host_root *root);

/* Prints counts (log_info). */
void host_root_report(const struct host_root *root);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image of the host's directories as the content of a root device. A file is opened when the
 * guest reads it first, and must be what it was when the metadata was made: before each read, and
 * after it. Otherwise the guest gets an error, and the user one line for each such file.
 */
#ifndef MVAGENT_ROOT_HOST_CONTENT_H
#define MVAGENT_ROOT_HOST_CONTENT_H

#include "vmm/root/content.h"
#include "vmm/root/host_image.h"
#include "vmm/root/host_plan.h"

struct host_content;

struct host_content_counters {
	uint64_t metadata; /* reads of it, and of files */
	uint64_t contents;
	uint64_t opened;
	uint64_t changed; /* files that were refused */
};

/* Takes a plan and its image, which stay the caller's, into use. Keeps at most @descriptors files
 * open, which is more than LIMIT_BLK_INFLIGHT. 0 or -errno with the sentence printed. */
int host_content_create(struct host_content **content, const struct host_plan *plan,
			const struct host_image *image, unsigned int descriptors);
void host_content_destroy(struct host_content *content);

struct content host_content_of(struct host_content *content);
struct host_content_counters host_content_counters(const struct host_content *content);

#endif

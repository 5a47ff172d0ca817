/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The back end's own mappings of guest memory, made from the descriptors that the front end sends.
 * Each region is checked against the file behind it before anything of it can be touched.
 */
#ifndef MVAGENT_VIRTIO_VHOST_MEMORY_H
#define MVAGENT_VIRTIO_VHOST_MEMORY_H

#include <stddef.h>

#include "vmm/virtio/mapping.h"
#include "vmm/virtio/memory.h"
#include "vmm/virtio/vhost_message.h"

/* regions[i] of the memory lies in mappings[i]. Zero is the empty table. */
struct vhost_memory {
	struct guest_memory memory;
	struct mapping mappings[LIMIT_MEMORY_REGIONS];
};

/* Maps @region from @fd, which stays the caller's, and adds it. Returns 0; -EINVAL when the region
 * is empty, wraps, overlaps another or is not wholly inside the file; -ENOSPC when there are
 * LIMIT_MEMORY_REGIONS already; or what mmap said. */
int vhost_memory_add(struct vhost_memory *table, const struct vhost_memory_region *region, int fd);

/* Unmaps the region with the addresses and size of @region. 0 or -ENOENT. */
int vhost_memory_remove(struct vhost_memory *table, const struct vhost_memory_region *region);

/* Unmaps all. */
void vhost_memory_clear(struct vhost_memory *table);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Guest RAM: one sealed memfd, mapped once here and by each device process that is handed it. */
#ifndef MVAGENT_MACHINE_RAM_H
#define MVAGENT_MACHINE_RAM_H

#include <stdint.h>

#include "vmm/virtio/mapping.h"
#include "vmm/virtio/memory.h"

struct ram {
	int fd; /* the memfd; its size is sealed */
	uint64_t size;
	uint8_t *host;          /* the whole memfd */
	struct mapping mapping; /* of it */
	struct guest_memory memory;
};

/* Makes @size bytes (a multiple of the page size) of guest RAM: below the device hole, and above 4
 * GiB what is left. Nothing is populated yet. Returns 0 or -errno with the sentence printed. */
int ram_create(struct ram *ram, uint64_t size);
void ram_destroy(struct ram *ram);

#endif

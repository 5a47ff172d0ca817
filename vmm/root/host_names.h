/* SPDX-License-Identifier: Apache-2.0 */
/* The names of one directory: what getdents64(2) gives, and what the plan adds. */
#ifndef MVAGENT_ROOT_HOST_NAMES_H
#define MVAGENT_ROOT_HOST_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "vmm/root/host_plan.h"

struct host_name {
	size_t place; /* in the buffer */
	uint8_t length;
	uint16_t plan; /* the plan's entry; 0: the host's own */
};

/* Used for one directory after the other; zero at first. */
struct host_names {
	struct host_name *list;
	size_t count;
	size_t capacity;
	char *buffer; /* the names, each with its NUL */
	size_t used;
	size_t size;
};

/* Fills @names with those of the directory (-1: none) and of the plan's entry (which win), sorted
 * by their bytes. 0 or -errno. */
int host_names_gather(struct host_names *names, int directory_fd, const struct host_plan *plan,
		      uint16_t entry, int has_entry);

static inline const char *host_names_text(const struct host_names *names, size_t index)
{
	return names->buffer + names->list[index].place;
}

void host_names_free(struct host_names *names);

#endif

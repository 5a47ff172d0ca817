/* SPDX-License-Identifier: Apache-2.0 */
/* Tells when the guest's memory runs short, so that an end by want of it is no riddle. */
#ifndef GUEST_MEMORY_WATCH_H
#define GUEST_MEMORY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "vmm/wire/session.h"

/* How often to look, milliseconds. */
#define MEMORY_WATCH_MS 1000

struct memory_watch {
	int meminfo_fd; /* -1: not watching */
	int vmstat_fd;
	bool told[SESSION_MEMORY_OUT + 1]; /* by enum session_memory */
};

#define MEMORY_WATCH_NONE ((struct memory_watch){.meminfo_fd = -1, .vmstat_fd = -1})

/* 0 or -errno. */
int memory_watch_open(struct memory_watch *watch);
void memory_watch_close(struct memory_watch *watch);

/* What is to be told now and was not yet: an enum session_memory, or 0. To be asked again until 0.
 */
uint32_t memory_watch_look(struct memory_watch *watch);

/* Percent of the memory that are in use, from the text of /proc/meminfo; 0 when it is another. */
unsigned int memory_watch_percent(const char *meminfo);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How the machine ended: the first reason given wins, whichever thread gives it. */
#ifndef MVAGENT_MACHINE_ENDING_H
#define MVAGENT_MACHINE_ENDING_H

#include <pthread.h>
#include <stdbool.h>

#include "vmm/wire/monitor.h"

struct ending {
	pthread_mutex_t lock;
	bool given;
	enum monitor_reason reason;
	char text[MONITOR_TEXT_BYTES];
	int event_fd; /* signalled when a reason was given; watched by the main loop */
};

/* Returns 0 or -errno. */
int ending_create(struct ending *ending);
void ending_destroy(struct ending *ending);

/* Gives a reason and a sentence. Later ones are ignored. Any thread. */
void ending_give(struct ending *ending, enum monitor_reason reason, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif

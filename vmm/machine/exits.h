/* SPDX-License-Identifier: Apache-2.0 */
/* Userspace exits, counted by what they were for, so that a budget can be kept. */
#ifndef MVAGENT_MACHINE_EXITS_H
#define MVAGENT_MACHINE_EXITS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vmm/base/limits.h"
#include "vmm/wire/monitor.h"

#define EXITS_REGISTERS                                                                      \
	65U             /* 64 words from 0, and one for the configuration space and the rest \
			 */
#define EXITS_PORTS 32U /* different ports told apart */

struct exits {
	pthread_mutex_t lock;
	struct monitor_counters counters;
	uint32_t device_writes[LIMIT_MMIO_DEVICES][EXITS_REGISTERS];
	uint32_t device_reads[LIMIT_MMIO_DEVICES][EXITS_REGISTERS];
	struct {
		uint16_t port;
		uint32_t count;
	} ports[EXITS_PORTS];
};

void exits_create(struct exits *exits);

/* Count one exit. Any thread. */
void exits_count_port(struct exits *exits, uint16_t port);
void exits_count_mmio(struct exits *exits, uint64_t gpa, bool is_write);
void exits_count_interrupted(struct exits *exits);
void exits_count_other(struct exits *exits);

/* A consistent copy of the totals. */
struct monitor_counters exits_read(struct exits *exits);

/* Prints one line for each port and device register that was hit, at LOG_VERBOSE. */
void exits_log(struct exits *exits);

#endif

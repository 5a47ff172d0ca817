/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The write-only kernel console: an 8250 at port 0x3f8 as far as earlyprintk needs one (transmit
 * register and "transmitter empty"). Bytes go to the supervisor in packets; there is no way in.
 */
#ifndef MVAGENT_MACHINE_CONSOLE_H
#define MVAGENT_MACHINE_CONSOLE_H

#include <pthread.h>
#include <stdint.h>

#include "vmm/wire/monitor.h"

#define CONSOLE_PORT       0x3f8U
#define CONSOLE_PORT_COUNT 8U

struct console {
	pthread_mutex_t lock;
	int monitor_fd; /* the supervisor's; not owned */
	uint64_t total_bytes;
	uint8_t line_control;         /* bit 7: offset 0 is the divisor, not the transmitter */
	struct monitor_packet packet; /* being filled */
};

void console_create(struct console *console, int monitor_fd);

/* An access to @port - CONSOLE_PORT. Any thread. */
void console_write(struct console *console, uint16_t offset, uint8_t value);
uint8_t console_read(uint16_t offset);

/* Sends what has been collected. Bytes that the supervisor has no room for are dropped: the guest
 * must not be able to stop the machine by printing. */
void console_flush(struct console *console);

uint64_t console_bytes(struct console *console);

#endif

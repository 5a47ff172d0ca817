/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAB_WIRE_H
#define LAB_WIRE_H

#include <stdint.h>

/*
 * What the driver (driver.c, on the real host) and the agent (agent.c, PID 1 of the lab host) say
 * to each other over four virtio-serial ports. Every message is a 32-bit length and that many
 * bytes; both ends are x86-64, so integers travel in native order.
 *
 * A stream port carries the bytes of one standard stream in one direction; length 0 is end of file.
 * In the other direction it carries at most one message, of length 0: the reader is gone.
 */
enum lab_port {
	LAB_PORT_CONTROL = 1, /* port 0 is reserved for a console (virtio 1.2, 5.3.2) */
	LAB_PORT_STDIN,
	LAB_PORT_STDOUT,
	LAB_PORT_STDERR,
	LAB_PORT_END,
};

#define LAB_CHUNK_MAX   32768u     /* the largest stream message */
#define LAB_CONTROL_MAX (8u << 20) /* arguments and environment: the kernel allows 6 MiB */

enum lab_message {
	LAB_READY = 1, /* to the driver, no more than this: send LAB_START now */
	LAB_START,     /* to the agent: struct lab_start, then strings */
	LAB_RESIZE,    /* to the agent: struct lab_resize */
	LAB_EXIT,      /* to the driver: struct lab_exit; the last message */
	LAB_FAILED,    /* to the driver: a sentence without a final zero; the last message */
};

/* Followed by NUL-terminated strings: cwd, modules, then each list in the order of its count. */
struct lab_start {
	uint32_t type;
	uint32_t reserved;
	int64_t seconds; /* the real host's time of day: the emulated clock chip is seconds late */
	int64_t nanoseconds;
	uint32_t as_user; /* run the command as uid 1000 */
	uint32_t pty;     /* one terminal in place of three pipes */
	uint16_t rows, columns;
	uint32_t read_only_count;  /* directories to show although /tmp, /run or /dev hides them */
	uint32_t read_write_count; /* directories to mount writable; 9p tags rw0, rw1, ... */
	uint32_t environment_count;
	uint32_t argument_count;
};

struct lab_resize {
	uint32_t type;
	uint16_t rows, columns;
};

struct lab_exit {
	uint32_t type;
	uint32_t wait_status; /* as from waitpid() */
};

#endif

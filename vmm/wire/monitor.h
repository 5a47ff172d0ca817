/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor and mvagent-vmm say to each other, over a SOCK_SEQPACKET pair: one structure
 * a packet. Both are ours, started together from one build, so the structures travel as they are.
 */
#ifndef MVAGENT_WIRE_MONITOR_H
#define MVAGENT_WIRE_MONITOR_H

#include <stdint.h>

enum monitor_type {
	/* mvagent-vmm to supervisor */
	MONITOR_RUNNING = 1, /* the first KVM_RUN is about to happen; value: monotonic ns */
	MONITOR_WALLS,       /* value: enum jail_wall, what mvagent-vmm is confined by */
	MONITOR_COUNTERS,    /* answer to MONITOR_COUNT */
	MONITOR_CONSOLE,     /* text: bytes of the guest's kernel console */
	MONITOR_FRAME,       /* text: the struct frame_summary of the first frame of a kind */
	MONITOR_ENDED,       /* the last packet: reason, text, counters */
	/* supervisor to mvagent-vmm */
	MONITOR_COUNT,
	MONITOR_STOP,
};

enum monitor_reason {
	MONITOR_REASON_STOPPED = 1,    /* the supervisor asked for it */
	MONITOR_REASON_RESET,          /* the guest reset the machine */
	MONITOR_REASON_PANIC,          /* the guest kernel reported a panic */
	MONITOR_REASON_TRIPLE_FAULT,   /* KVM_EXIT_SHUTDOWN */
	MONITOR_REASON_INTERNAL_ERROR, /* KVM could not go on: KVM_EXIT_INTERNAL_ERROR,
					  FAIL_ENTRY... */
	MONITOR_REASON_DEVICE_LOST,    /* a device process hung up */
	MONITOR_REASON_HOST_ERROR,     /* a system call of mvagent-vmm failed */
};

/* Userspace exits of KVM_RUN since the first, and what devices counted. */
struct monitor_counters {
	uint64_t exits;      /* port_io, mmio_reads, mmio_writes and other */
	uint64_t port_io;    /* KVM_EXIT_IO */
	uint64_t mmio_reads; /* KVM_EXIT_MMIO */
	uint64_t mmio_writes;
	uint64_t interrupted; /* EINTR: kicked out by us */
	uint64_t other;
	uint64_t console_bytes;
	uint64_t frames_dropped; /* by the network card */
	uint64_t bytes_dropped;
	uint64_t frames_untold; /* of kinds for which there was no MONITOR_FRAME */
};

#define MONITOR_TEXT_BYTES 1024

struct monitor_packet {
	uint32_t type;
	uint32_t reason;
	uint64_t value;
	struct monitor_counters counters;
	uint32_t text_length;
	char text[MONITOR_TEXT_BYTES]; /* a sentence, or console bytes; not terminated */
};

#endif
